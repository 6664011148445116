"""What judges in processes of the tests; importable by a process of its own."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from kernelblaster.errors import DeviceError, DeviceMemoryFull, ProblemError


class Answer(NamedTuple):
    """What stands for an evaluation: who judged, and what a source asked for."""

    process: int
    told: int | str
    found_no_memory: bool = False


class Judge:
    """Does what a source says. Answers with its process, and with how often it has been asked."""

    def __init__(self) -> None:
        self.asked = 0

    def evaluate(self, problem: Any, source: str, **how: Any) -> Answer:
        self.asked += 1
        word, _, place = source.partition(" ")
        if word == "die" or (word == "die_once" and _first(place)):
            os.kill(os.getpid(), signal.SIGKILL)
        if word == "lost":
            raise DeviceError("the GPU is lost", hint="reset it")
        if word == "wrong":
            raise ProblemError("the reference fails", hint="mend it")
        if word == "full" and _first(place):
            raise DeviceMemoryFull("no room", hint="wait")
        if word == "gpu":
            return Answer(os.getpid(), os.environ["CUDA_VISIBLE_DEVICES"])
        return Answer(os.getpid(), self.asked, found_no_memory=word == "short" and _first(place))

    def sweep(self, problem: Any, sources: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
        return os.getpid(), sources

    def sanitize(self, problem: Any, source: str) -> list[str]:
        return [source]


def _first(place: str) -> bool:
    """Whether nobody has been here before."""
    first = not Path(place).exists()
    Path(place).touch()
    return first


@contextmanager
def judge() -> Iterator[Judge]:
    """One of them."""
    yield Judge()


@contextmanager
def refused() -> Iterator[Judge]:
    """None: the device cannot be opened."""
    raise DeviceError("no GPU", hint="buy one")
    yield


@dataclass(frozen=True)
class Named:
    """What stands for a problem."""

    id: str


if __name__ == "__main__":  # asks one process, says which it is, and waits to be killed
    from kernelblaster.runs.judging_processes import JudgingProcesses

    device: Any = None
    problem: Any = Named("level1/001")
    with JudgingProcesses(device, judge, 1) as judges:
        answer: Any = judges.sweep(problem, [])
        print(answer[0], flush=True)
        time.sleep(60)
