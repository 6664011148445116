"""A recorder that is started once for all candidates of the tests, and a recording made earlier."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from recorder_support import FIXTURES, Answers, Recorded

from kernelblaster.python_candidates.plan import CandidateRecording, RecordingRequest
from kernelblaster.python_candidates.recording import has_triton


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    if not has_triton():
        pytest.skip("needs Triton")
    return Answers(tmp_path)


@pytest.fixture(scope="session")
def recorded() -> Recorded:
    stored = json.loads((FIXTURES / "recordings" / "vector_add_fp16.json").read_text(encoding="utf-8"))
    return Recorded(
        RecordingRequest.model_validate(stored["request"]), CandidateRecording.model_validate(stored["recording"])
    )
