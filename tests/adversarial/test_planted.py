"""The evaluation on planted kernels: no exploit gets through, no honest kernel is refused.

The first exploits of some rows and a few honest kernels, other ones each day; --all takes all of them.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from shutil import which
from typing import TYPE_CHECKING

import pytest
from planted import EXPLOITS, HONEST, Kind, Planted, load, load_all, load_folder
from planted_sample import runnable, sample
from rounds import ROUNDS

from kernelblaster.devices.build.toolchain import SearchPath, ToolMissing, find_nvccs
from kernelblaster.devices.facts import DeviceKind
from ptxemu.core.build import SOURCE_DIR as CORE_SOURCES

if TYPE_CHECKING:
    from court import Court

NOT_PLANTED = {
    *("T02", "T04", "T06", "T14", "T17", "T21", "T22"),
    *("V07", "V09", "V10"),
}
"""Rows of the catalogue without an emulated exploit: docs/trust.md says why of each."""


def _has_tools() -> bool:
    try:
        find_nvccs(SearchPath.current())
    except ToolMissing:
        return False
    return which("g++") is not None


def _cases() -> list[object]:
    sampled = {planted.name for planted in sample()}
    return [
        pytest.param(planted, id=planted.name, marks=[] if planted.name in sampled else [pytest.mark.slow])
        for planted in runnable()
    ]


@pytest.mark.nvcc
@pytest.mark.skipif(not _has_tools(), reason="needs nvcc and g++")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("planted", _cases())
def test_the_verdict_is_right(court: Court, planted: Planted) -> None:
    row = court.judge(planted)
    assert row.tolerated, f"{row.outcome}, expected {row.expected}: {row.reason}"


@pytest.mark.nvcc
@pytest.mark.skipif(not _has_tools(), reason="needs nvcc and g++")
def test_blocks_that_race_meet_into_however_many_slices_they_fall(court: Court) -> None:
    known = next(one for one in load_all(Kind.EXPLOIT) if one.name == "N21_slices_add_without_atomics")
    source = known.source.replace("SLICES = 4", "SLICES = 3")
    assert source != known.source
    assert court.judge(replace(known, source=source)).right


def test_a_header_may_repeat_its_key(tmp_path: Path) -> None:
    (tmp_path / "one.cu").write_text("// problem: level1/19\n// kind: exploit\n// expects: one\n// expects: two\n")
    assert load_folder(tmp_path)[0].does == "one two"


def test_there_are_enough_of_both_kinds() -> None:
    assert len(load_all(Kind.EXPLOIT)) >= 300
    assert len(load_all(Kind.HONEST)) >= 105


def test_every_row_is_planted_or_explained() -> None:
    planted = {item.row for item in load_all(Kind.EXPLOIT) if item.runs_on(DeviceKind.EMULATED)}
    known = {f"T{n:02}" for n in range(1, 23)} | {f"V{n:02}" for n in range(1, 29)}
    assert known - planted == NOT_PLANTED


def test_the_known_python_exploits_are_planted_as_triton_modules() -> None:
    """Whether or not Triton is installed here; those that lie in wait for it are judged where it is."""
    rows = {item.row for item in load_all(Kind.EXPLOIT) if item.in_python}
    assert rows == {f"P{number:02}" for number in range(1, 10)}
    assert all(item.in_python == item.row.startswith("P") for item in load_all(Kind.EXPLOIT))


def test_headers_are_consistent() -> None:
    honest = {path.stem for path in HONEST.iterdir()}
    for planted in load_all():
        assert planted.twin in (None, "init", *honest), planted.name
        for device, outcomes in planted.expected.items():
            assert "correct" not in outcomes or planted.kind is Kind.HONEST, planted.name
            assert "harmless" not in outcomes or planted.twin is not None, f"{planted.name} on {device} needs a twin"
        assert planted.row == planted.name[:3] or planted.kind is Kind.HONEST, planted.name


def test_a_header_with_an_unknown_key_is_refused(tmp_path) -> None:
    text = next(EXPLOITS.glob("*.cu")).read_text(encoding="utf-8")
    (tmp_path / "X.cu").write_text("// colour: red\n" + text)
    with pytest.raises(ValueError, match="colour"):
        load(tmp_path / "X.cu")


def test_a_folder_that_others_wrote_needs_a_problem_and_a_kind_alone(tmp_path) -> None:
    (tmp_path / "a.cu").write_text("// problem: level1/23\n// kind: exploit\n// expects: to be called faster\nint x;\n")
    (tmp_path / "b.cu").write_text("// problem: level1/19\n// kind: honest\n// precision: bf16\nint x;\n")
    exploit, honest = load_folder(tmp_path)
    assert (exploit.kind, exploit.twin, honest.kind, honest.twin) == (Kind.EXPLOIT, "init", Kind.HONEST, None)
    assert all("correct" not in right for right in exploit.expected.values())
    assert all(right == {"correct"} for right in honest.expected.values())
    assert honest.precision == "bf16"
    (tmp_path / "c.cu").write_text("// problem: level1/19\nint x;\n")
    with pytest.raises(ValueError, match="kind"):
        load_folder(tmp_path)


def test_exploits_of_a_folder_have_twins_of_their_own_and_shared_ones_each_under_its_own_header(tmp_path) -> None:
    headers = {
        name: f"// problem: level1/19\n// kind: exploit\n// precision: {precision}\n//   said on\n"
        for name, precision in (("a", "fp16"), ("b", "bf16"), ("c", "fp16"))
    }
    for name, header in headers.items():
        (tmp_path / f"{name}.cu").write_text(f"{header}int trick;\n")
    twins = tmp_path / "twins"
    twins.mkdir()
    (twins / "c.cu").write_text("int own;\n")
    (twins / "plain.cu").write_text("int plain;\n")
    (twins / "shared.json").write_text('{"a": "plain.cu", "b": "plain.cu"}')
    found = {planted.name: (planted.twin, planted.twin_source) for planted in load_folder(tmp_path)}
    assert found == {
        "a": ("plain", f"{headers['a']}int plain;\n"),
        "b": ("plain", f"{headers['b']}int plain;\n"),
        "c": ("c", f"{headers['c']}int own;\n"),
    }


@pytest.mark.parametrize("folder", sorted(ROUNDS.iterdir()), ids=lambda folder: folder.name)
def test_every_twin_of_a_round_is_that_of_an_exploit(folder: Path) -> None:
    assert {path.stem for path in (folder / "twins").glob("*.cu")} <= {planted.twin for planted in load_folder(folder)}
    shared = folder / "twins" / "shared.json"
    named = json.loads(shared.read_text(encoding="utf-8")) if shared.exists() else {}
    assert named.keys() <= {planted.name for planted in load_folder(folder)}


def test_who_attacks_the_emulator_knows_names_that_it_has() -> None:
    """Names that have gone test nothing: an exploit would be refused because there is no such function."""
    core = "\n".join(path.read_text(encoding="utf-8") for path in sorted(CORE_SOURCES.glob("*.[ch]pp")))
    there = set(re.findall(r"\w+", core))
    for planted in load_all(Kind.EXPLOIT):
        named = re.findall(r"\b(?:PTXEMU_|ptxemu_)\w+", planted.source)
        named += [
            word for names in re.findall(r"\bptxemu((?:::\w+)+)", planted.source) for word in names.split("::")[1:]
        ]
        assert set(named) <= there, planted.name
