"""What tests of Python candidates share: a recorder that imports torch once for many, and what was recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.python_candidates.plan import (
    ANSWER,
    CANDIDATE,
    REQUEST,
    CandidateRecording,
    RecordedGpu,
    RecorderAnswer,
    RecordingRequest,
)
from kernelblaster.python_candidates.recording import extents_of

FIXTURES = Path(__file__).parents[1] / "fixtures"
GPU = RecordedGpu(
    name="NVIDIA H200",
    capability=90,
    sm_count=132,
    memory_bytes=141 << 30,
    l2_bytes=60 << 20,
    shared_per_block=232448,
)
_FORKS = """
import os, sys
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from kernelblaster.python_candidates.recorder import main
with FakeTensorMode():
    torch.empty(1)  # imports what takes seconds, once
for directory in sys.argv[1:]:
    if os.fork() == 0:
        os.chdir(directory)
        os.environ["TRITON_CACHE_DIR"] = os.path.join(directory, "triton")
        main()
        os._exit(0)
    os.wait()
"""


def vector_add() -> Problem:
    return load_problem(FIXTURES / "problems" / "vector_add")


def request_for(precision: Precision) -> RecordingRequest:
    """The size that the problem declares, and one that it does not."""
    declared = extents_of(vector_add(), "small", precision)
    return RecordingRequest(gpu=GPU, extents=(declared,))


@dataclass(frozen=True)
class Answers:
    """What a recorder says of candidates; started anew for each call, without isolation, importing torch once."""

    directory: Path

    def of(self, sources: Mapping[str, str], request: RecordingRequest) -> dict[str, RecorderAnswer]:
        """By the names of the sources."""
        places = {}
        for number, (name, source) in enumerate(sources.items()):
            place = self.directory / str(number)
            place.mkdir()
            (place / CANDIDATE).write_text(source, encoding="utf-8")
            (place / REQUEST).write_text(request.model_dump_json(), encoding="utf-8")
            places[name] = place
        subprocess.run(
            [sys.executable, "-c", _FORKS, *map(str, places.values())],
            check=True,
            timeout=300,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        return {
            name: RecorderAnswer.model_validate_json((place / ANSWER).read_text(encoding="utf-8"))
            for name, place in places.items()
        }


@dataclass(frozen=True)
class Recorded:
    """A recording of the honest candidate for sm_90, by Triton 3.6, and what was asked for."""

    request: RecordingRequest
    recording: CandidateRecording
