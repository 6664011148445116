"""Candidates of a problem whose libtorch driver judges itself: real processes, on CPU tensors."""

from __future__ import annotations

from pathlib import Path

import pytest
from self_checking_support import FIXTURE, HostDevice

from kernelblaster.devices.base import SelfCheckOutput
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.harness.self_checking_session import SelfCheckingProcess
from kernelblaster.errors import ProblemError, UsageError
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.problems.problem import Precision, Problem

pytestmark = pytest.mark.nvcc

LAUNCHER = "void launch_gpu_implementation(void* output, void* input, int64_t batch_size, int64_t dim)"
RELU = """
    const unsigned short* x = static_cast<const unsigned short*>(input);
    unsigned short* y = static_cast<unsigned short*>(output);
    for (int64_t i = 0; i < batch_size * dim; ++i) y[i] = x[i] & 0x8000 ? 0 : x[i];
"""
"""On the bits of fp16."""


def candidate(body: str, head: str = "") -> str:
    return f'#include "cuda_model.cuh"\n{head}\nextern "C" {LAUNCHER} {{{body}}}\n'


@pytest.fixture
def judged(host_evaluator: Evaluator, host_problem: Problem):
    def evaluate(body: str, head: str = "", baseline: str | None = None) -> Evaluation:
        return host_evaluator.evaluate(host_problem, candidate(body, head), baseline=baseline, profile=False)

    return evaluate


def test_an_honest_candidate_is_timed_and_marked(judged) -> None:
    found = judged(RELU)
    assert (found.verdict, found.reason) == (Verdict.CORRECT, "")
    assert found.weakly_verified
    assert any("weakly verified" in warning for warning in found.warnings)
    assert found.timing.samples >= 10
    assert found.timing.floor_us is None
    assert not any("does nothing" in warning for warning in found.warnings)


def test_a_slower_candidate_loses_to_its_baseline(judged) -> None:
    """It does the work three times, in turns with one that does it once."""
    found = judged(RELU.replace("for (", "for (int n = 0; n < 3; ++n) for (volatile "), baseline=candidate(RELU))
    assert found.verdict is Verdict.CORRECT
    assert found.comparison.decision == "slower"
    assert found.comparison.speedup < 0.7


def test_the_driver_fails_a_wrong_candidate(judged) -> None:
    found = judged(RELU.replace("? 0 :", "? 0x3c00 :"))
    assert found.verdict is Verdict.WRONG_VALUES
    assert found.timing is None
    assert found.weakly_verified


def test_words_of_a_candidate_are_not_its_drivers(judged) -> None:
    says = 'std::printf("passed\\n"); std::fflush(stdout); std::cout << "passed" << std::endl;'
    found = judged(says, head="#include <iostream>")
    assert found.verdict is Verdict.WRONG_VALUES


def test_ending_the_process_is_no_pass(judged) -> None:
    found = judged('std::printf("passed\\n"); std::exit(0);', head="#include <cstdlib>")
    assert found.verdict is Verdict.RUNTIME_ERROR


def test_what_an_earlier_call_wrote_is_gone(judged) -> None:
    found = judged(f"static bool done = false; if (done) return; done = true; {RELU}")
    assert found.verdict is Verdict.WRONG_VALUES


def test_a_crash_and_an_exception_are_the_candidates(judged) -> None:
    assert judged("*static_cast<volatile int*>(nullptr) = 1;").verdict is Verdict.RUNTIME_ERROR
    found = judged("throw 7;")
    assert found.verdict is Verdict.RUNTIME_ERROR
    assert "exception" in found.reason


def test_a_candidate_is_audited_and_sealed(judged) -> None:
    found = judged(f'std::ofstream file("passed"); {RELU}', head="#include <fstream>")
    assert found.verdict is Verdict.REWARD_HACK
    found = judged('kb_driver_puts("passed");', head='extern "C" int kb_driver_puts(const char*);')
    assert found.verdict is Verdict.REWARD_HACK
    found = judged(RELU, head="namespace at { struct Tensor; } void kb_driver_puts(const char*) {}")
    assert found.verdict is Verdict.CORRECT


def test_a_driver_is_compiled_once(host_device: HostDevice, host_problem: Problem) -> None:
    first, second = (host_device.prepare(host_problem, Precision.FP16) for _ in range(2))
    assert first == second
    assert len(list(Path(first.object_path).parents[2].glob("*/*/harness.o"))) == 1


def test_the_emulated_device_refuses(host_evaluator: Evaluator, host_problem: Problem) -> None:
    facts = host_evaluator.device.facts
    host_evaluator.device.facts = facts.model_copy(update={"kind": DeviceKind.EMULATED})
    try:
        with pytest.raises(UsageError):
            host_evaluator.evaluate(host_problem, (FIXTURE / "candidates" / "honest.cu").read_text())
    finally:
        host_evaluator.device.facts = facts


def test_a_driver_that_passes_everything_is_named(
    host_evaluator: Evaluator, host_problem: Problem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SelfCheckingProcess, "finish", lambda _: SelfCheckOutput(0, "passed\n", 1, 0))
    found = host_evaluator.evaluate(host_problem, candidate(RELU), profile=False)
    assert found.verdict is Verdict.CORRECT
    assert any("launcher" in warning for warning in found.warnings)


@pytest.mark.parametrize("words", [SelfCheckOutput(0, "well\n", 1, 0), SelfCheckOutput(0, "", 1, 0)])
def test_a_driver_that_says_nothing_is_no_judge(
    host_evaluator: Evaluator, host_problem: Problem, monkeypatch: pytest.MonkeyPatch, words: SelfCheckOutput
) -> None:
    monkeypatch.setattr(SelfCheckingProcess, "finish", lambda _: words)
    with pytest.raises(ProblemError):
        host_evaluator.evaluate(host_problem, candidate(RELU))
