"""How much a well-written kernel should gain over a problem's start: the start's measured time over the attainable one.

It says how hard rewards are to get that compare with the start: a plain convolution may be made a hundred times faster
in many ways, a reduction that already reads at half of the memory's speed in few. Measured on an H200 at size full;
made by `benchmarks/headroom.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from kernelblaster.paths import data_dir
from kernelblaster.problems.problem import Precision, Problem

LITTLE, MUCH = 10.0, 150.0


class HeadroomList(StrEnum):
    """Task lists by headroom, of the problems whose start was measured."""

    LITTLE = "headroom-little"
    """Below `LITTLE` times: hardest for a reward that compares with the start."""
    MIDDLE = "headroom-middle"
    MUCH = "headroom-much"
    """From `MUCH` times on: most kernels without a blunder get all of such a reward."""


class Headroom(BaseModel):
    """Of one problem."""

    model_config = ConfigDict(frozen=True)

    problem: str
    name: str
    precision: Precision
    start_us: float
    attainable_us: float

    @property
    def times(self) -> float:
        """How much faster than the start a well-written kernel should be."""
        return self.start_us / self.attainable_us

    @property
    def list(self) -> HeadroomList:
        """The task list that the problem is in."""
        if self.times < LITTLE:
            return HeadroomList.LITTLE
        return HeadroomList.MIDDLE if self.times < MUCH else HeadroomList.MUCH


class HeadroomTable(BaseModel):
    """Those of a GPU."""

    model_config = ConfigDict(frozen=True)

    format: Literal["kernelblaster-headroom-1"] = "kernelblaster-headroom-1"
    gpu: str
    workload: str
    problems: Mapping[str, Headroom]
    """By `Problem.definition_digest`."""


def headroom_path() -> Path:
    """The file that ships."""
    return data_dir() / "baselines" / "h200" / "headroom.json"


@cache
def shipped_headroom() -> Mapping[str, Headroom]:
    """By `Problem.definition_digest`."""
    return HeadroomTable.model_validate_json(headroom_path().read_bytes()).problems


def headroom_list(problem: Problem) -> HeadroomList | None:
    """The list that a problem is in; None where its start was not measured, or is of another definition by now."""
    found = shipped_headroom().get(problem.definition_digest)
    return None if found is None else found.list
