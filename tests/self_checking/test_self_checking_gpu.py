"""The fixture's libtorch driver as it is, on a GPU."""

from __future__ import annotations

import pytest
import torch
from self_checking_support import FIXTURE

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.cuda.probe import detect_gpu
from kernelblaster.devices.profiles import ProfileSource
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.problems.loader import load_problem
from kernelblaster.runs.evaluations import open_evaluator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(detect_gpu() is None, reason="no NVIDIA GPU"),
    pytest.mark.skipif(torch.version.cuda is None, reason="PyTorch without CUDA"),
]
PROBLEM = load_problem(FIXTURE / "level1" / "019_ReLU")


@pytest.fixture(scope="module")
def judge() -> Evaluator:
    config = RunConfig(device="cuda", evaluation=EvaluationConfig(max_seconds_timing=1.0))
    with open_evaluator(config, lambda _: None) as evaluator:
        yield evaluator


def candidate(name: str) -> str:
    return (FIXTURE / "candidates" / f"{name}.cu").read_text()


def test_an_honest_candidate_is_timed_and_profiled(judge: Evaluator) -> None:
    found = judge.evaluate(PROBLEM, candidate("honest"), baseline=PROBLEM.init_path.read_text())
    assert (found.verdict, found.reason) == (Verdict.CORRECT, "")
    assert found.weakly_verified
    assert found.comparison.decision is not Decision.SLOWER
    assert found.profile.source in (ProfileSource.NCU, ProfileSource.EVENTS)
    if found.profile.source is ProfileSource.NCU:
        assert [kernel.name.partition("(")[0] for kernel in found.profile.kernels] == ["relu"]
    assert not any("put back" in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("wrong", Verdict.WRONG_VALUES),
        ("says_passed", Verdict.WRONG_VALUES),
        ("computes_once", Verdict.WRONG_VALUES),
        ("exits_early", Verdict.RUNTIME_ERROR),
    ],
)
def test_no_other_passes(judge: Evaluator, name: str, verdict: Verdict) -> None:
    found = judge.evaluate(PROBLEM, candidate(name), profile=False)
    assert found.verdict is verdict, found.reason
    assert found.timing is None
