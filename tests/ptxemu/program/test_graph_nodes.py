"""Nodes of graphs are asked for what they are made of, changed, and looked at, as ordinary programs do."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

import ptxemu
from ptxemu.command import main

pytestmark = [pytest.mark.nvcc, needs_tools]
SOURCE = Path(__file__).with_name("programs") / "graph_nodes.cu"
CASES = ["kernel", "copies", "symbols", "events", "edges", "child", "captured", "any_kind"]


@pytest.fixture(scope="module")
def program() -> ptxemu.EmulatedProgram:
    return ptxemu.build(SOURCE)


@pytest.mark.parametrize("case", CASES)
def test_cases_end_as_on_a_gpu(program: ptxemu.EmulatedProgram, case: str) -> None:
    quiet = ptxemu.Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert program.run([case], timeout_s=TIMEOUT_S, streams=quiet).exit_code == 0


def test_an_allocation_in_a_graph_is_refused_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(SOURCE), "--", "allocates"]) == 4
    assert "an allocation in a graph" in capfd.readouterr().err
