"""What a program is told about occupancy: what ptxas and the occupancy calculator say."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryFile

import pytest
from emulator_support import TIMEOUT_S, needs_tools

from ptxemu.model.occupancy import occupancy, sm_limits
from ptxemu.program.run import EmulatedProgram, Streams

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "occupancy.cu"
KERNELS = ("hungry<4>", "hungry<24>", "hungry<96>")


@pytest.fixture(scope="module")
def program() -> EmulatedProgram:
    return EmulatedProgram.build(SOURCE)


@pytest.fixture(scope="module")
def answers(program: EmulatedProgram) -> list[list[str]]:
    """Words of each line that the program prints."""
    with TemporaryFile("w+", encoding="utf-8") as printed:
        program.run(timeout_s=TIMEOUT_S, streams=Streams(stdout=printed))
        printed.seek(0)
        return [line.split() for line in printed]


def test_attributes_are_those_that_ptxas_reports(program: EmulatedProgram, answers: list[list[str]]) -> None:
    told = {words[1]: (int(words[2]), int(words[3])) for words in answers if words[0] == "kernel"}
    reported = {
        name: (one.registers, one.shared_bytes)
        for one in program.built.units[0].resources
        for name in KERNELS
        if name in one.name
    }
    assert told == reported
    assert len({registers for registers, _ in told.values()}) == len(KERNELS)


def test_blocks_are_those_of_the_occupancy_calculator(program: EmulatedProgram, answers: list[list[str]]) -> None:
    kernels = {words[1]: (int(words[2]), int(words[3])) for words in answers if words[0] == "kernel"}
    limits, limited = sm_limits("sm_90"), set()
    asked = [words for words in answers if words[0] in kernels]
    assert len(asked) == len(KERNELS) * 11 * 5
    for name, threads, dynamic, blocks in asked:
        registers, static = kernels[name]
        fit = occupancy(limits, threads=int(threads), registers=registers, shared_bytes=static + int(dynamic))
        assert int(blocks) == fit.blocks_per_sm, (name, threads, dynamic)
        limited.add(fit.limiter)
    assert len(limited) >= 3


def test_a_block_that_its_registers_do_not_fit_is_refused(answers: list[list[str]]) -> None:
    largest = {words[1]: int(words[4]) for words in answers if words[0] == "kernel"}
    assert largest["hungry<4>"] == 1024
    assert largest["hungry<96>"] < 1024
    assert [words[1] for words in answers if words[0] == "launch"] == ["cudaErrorLaunchOutOfResources", "cudaSuccess"]
