"""Attributes of the device: an H200's as one answered Nsight Compute; else known from a source, or refused by name."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from emulator_support import TIMEOUT_S, needs_tools

from ptxemu.command import main
from ptxemu.model.architecture import gpu_model, gpu_names
from ptxemu.model.attributes import attribute_numbers, attribute_values
from ptxemu.program.run import EmulatedProgram, Streams

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "attributes.cu"
CAPTURE = Path(__file__).parents[2] / "fixtures" / "ncu" / "h200_probe.csv"
OTHER_NAMES = {
    "gpu_pci_subsystem_id": "gpu_pci_sub_system_id",
    "virtual_memory_management_supported": "virtual_address_management_supported",
}
"""Names by which Nsight Compute calls an attribute that cuda.h calls otherwise."""


def captured() -> dict[str, str]:
    rows = csv.reader(line for line in CAPTURE.read_text(encoding="utf-8").splitlines() if line.startswith('"'))
    names, _, values = (next(rows) for _ in range(3))
    prefix = "device__attribute_"
    told = zip(names, values, strict=True)
    return {name.removeprefix(prefix): value.replace(",", "") for name, value in told if name.startswith(prefix)}


def named_in_header(program: EmulatedProgram) -> set[int]:
    """Numbers of attributes in the toolkit's cuda.h."""
    header = next(path for one in program.toolkit.include_dirs if (path := one / "cuda.h").is_file())
    text = header.read_text(encoding="utf-8", errors="replace")
    return {int(number) for number in re.findall(r"CU_DEVICE_ATTRIBUTE_\w+\s*=\s*(\d+)", text)}


def test_an_h200_answers_as_the_captured_one() -> None:
    program, (attributes, properties, missing) = asked("sm_90")
    told, numbers = captured(), attribute_numbers()
    assert set(numbers.values()) >= named_in_header(program)
    wanted = {name: int(told[known]) for name in numbers if (known := OTHER_NAMES.get(name, name)) in told}
    assert len(wanted) > 120
    assert {name: attributes.get(numbers[name]) for name in wanted} == wanted
    assert {numbers[name] for name in numbers.keys() - wanted.keys()} == missing
    assert all(int(told[name]) == value for name, value in properties)


@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_89", "sm_100"])
def test_every_attribute_is_answered_or_refused_by_name(arch: str) -> None:
    program, (attributes, properties, missing) = asked(arch)
    assert attributes.keys() | missing == named_in_header(program)
    assert not attributes.keys() & missing
    facts = program.gpu.facts(cuda_version=None)
    numbers = attribute_numbers()
    assert attributes[numbers["multiprocessor_count"]] == facts.sm_count
    assert attributes[numbers["clock_rate"]] == facts.clock_mhz * 1000
    assert attributes[numbers["l2_cache_size"]] == facts.l2_bytes
    assert attributes[numbers["max_shared_memory_per_block_optin"]] == facts.shared_per_block
    assert {value for name, value in properties if name == "total_memory"} == {facts.memory_bytes}
    others = [(name, value) for name, value in properties if name != "total_memory"]
    assert others == [(name, attributes.get(numbers[name], 0)) for name, _ in others]


def test_what_is_refused_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    number = attribute_numbers()["numa_id"]
    assert main([str(SOURCE), "--", str(number)]) == 4
    assert "numa_id" in capfd.readouterr().err
    assert main([str(SOURCE), "--", "9999"]) == 0  # no attribute: an error of the program's, as on a GPU
    assert "attribute 9999 1 -1 1 -1" in capfd.readouterr().out


def test_memory_clock_and_bus_give_the_bandwidth_of_the_gpu() -> None:
    with_bus = [name for name in gpu_names() if "global_memory_bus_width" in attribute_values(name)]
    assert len(with_bus) > 5
    for name in with_bus:
        values = attribute_values(name)
        bandwidth = 2 * values["memory_clock_rate"] * 1e3 * values["global_memory_bus_width"] / 8
        assert bandwidth == pytest.approx(gpu_model(name).gpu.dram_peak, rel=5e-3), name


def asked(arch: str) -> tuple[EmulatedProgram, tuple[dict[int, int], list[tuple[str, int]], set[int]]]:
    """What a program is told: attributes by number, properties, and numbers of those that were refused."""
    program = EmulatedProgram.build(SOURCE, arch=arch)
    with TemporaryFile("w+", encoding="utf-8") as printed:
        result = program.run(timeout_s=TIMEOUT_S, streams=Streams(stdout=printed))
        printed.seek(0)
        assert result.exit_code == 0
        lines = [line.split() for line in printed]
    attributes = {}
    for words in lines:
        if words[0] == "attribute":
            number, *by_runtime, result_code, by_driver = (int(word) for word in words[1:])
            assert by_runtime == [result_code, by_driver], words
            if result_code == 0:
                attributes[number] = by_driver
    properties = [(words[1], int(words[2])) for words in lines if words[0] == "property"]
    by_number = {number: name for name, number in attribute_numbers().items()}
    missing = {number for number in by_number if f"device attribute {number} ({by_number[number]})" in result.missing}
    assert len(missing) == len(result.missing)
    return program, (attributes, properties, missing)
