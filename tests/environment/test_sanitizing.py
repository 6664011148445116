"""Sanitizers run where they may explain a failure or where that is asked for, and change neither verdict nor reward."""

from __future__ import annotations

import pytest
from fake_judge import FakeJudge, evaluation, kernel
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster import EvaluationConfig, RunConfig, open_environment
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.environment.actions import KernelAction
from kernelblaster.environment.feedback import MOST_CHARACTERS, feedback
from kernelblaster.environment.rewards import REWARDS, RewardOptions, rewarded
from kernelblaster.environment.sanitizing import MOST_FINDINGS, told_findings
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.results import Verdict

WRONG, CRASH, RIGHT = (kernel(verdict) for verdict in (Verdict.WRONG_VALUES, Verdict.RUNTIME_ERROR, Verdict.CORRECT))
FINDING = SanitizerFinding(tool="memcheck", message="k: out-of-bounds load of 4 bytes", location="candidate.cu:2")


@pytest.fixture(autouse=True)
def finding(judge: FakeJudge) -> None:
    judge.findings = [FINDING]


@pytest.mark.parametrize(
    ("code", "fields", "runs"),
    [
        (WRONG, {}, True),
        (CRASH, {}, True),
        (kernel(Verdict.NONDETERMINISTIC), {}, True),
        (RIGHT, {}, False),
        (RIGHT, {"sanitize": True}, True),
        (WRONG, {"sanitize": False}, False),
        (WRONG, {"tier": "quick"}, False),
        (WRONG, {"tier": "quick", "sanitize": True}, True),
        (WRONG, {"tier": "compile", "sanitize": True}, False),
        (kernel(Verdict.TIMEOUT), {"sanitize": True}, False),
        (kernel(Verdict.COMPILE_ERROR), {"sanitize": True}, False),
        (kernel(Verdict.REWARD_HACK), {"sanitize": True}, False),
        ("no code at all\n```python\n```", {"sanitize": True}, False),
    ],
)
def test_they_run_where_they_may_say_something_and_are_allowed(session, judge, code, fields, runs) -> None:
    episodes, plain = session(), session(sanitizes=False)
    for one in (episodes, plain):
        one.reset(problem_id="L1_23")
    seen = episodes.step(KernelAction(code=code, **fields))
    assert bool(judge.sanitized) == runs
    assert ("sanitizers" in seen.findings) == runs
    without = plain.step(KernelAction(code=code, **{**fields, "sanitize": False}))
    assert (seen.reward, seen.verdict, seen.done) == (without.reward, without.verdict, without.done)
    if runs:
        told = {"tool": "memcheck", "message": FINDING.message, "line": 2, "code": code.split("\n")[1]}
        assert seen.findings["sanitizers"] == [told]
        assert f"2: {told['code']}" in seen.feedback


def test_a_server_may_leave_them_to_steps_that_ask(session, judge) -> None:
    episodes = session(sanitizes=False)
    episodes.reset(problem_id="L1_23")
    assert "sanitizers" not in episodes.step(KernelAction(code=WRONG)).findings
    assert episodes.step(KernelAction(code=WRONG, sanitize=True)).findings["sanitizers"]


def test_a_source_is_sanitized_once_for_all_sessions_and_a_clean_one_is_said_to_be(session, judge) -> None:
    judge.findings = []
    for episodes in (session(), session()):
        episodes.reset(problem_id="L1_23")
        for _ in range(2):
            seen = episodes.step(KernelAction(code=WRONG))
            assert seen.findings["sanitizers"] == []
            assert "## Sanitizers" in seen.feedback
    assert judge.sanitized == [WRONG]


def test_a_machine_that_fails_while_it_sanitizes_takes_no_turn(session, judge) -> None:
    episodes = session()
    episodes.reset(problem_id="L1_23")
    episodes.step(KernelAction(code=WRONG, sanitize=False))
    judge.lost = True
    with pytest.raises(DeviceError):
        episodes.step(KernelAction(code=WRONG))
    assert episodes.state.step_count == 1
    judge.lost = False
    assert episodes.step(KernelAction(code=WRONG)).turn == 2


@given(
    message=st.text(alphabet="`#\nab", max_size=2000),
    location=st.none() | st.sampled_from(["candidate.cu:0", "candidate.cu:99999", "k+0x10 in candidate.cu:1", "x"]),
    count=st.integers(0, 40),
)
def test_what_is_told_of_findings_is_bounded_and_data(message: str, location: str | None, count: int) -> None:
    """A candidate chooses the names of its kernels, which findings hold."""
    finding = SanitizerFinding(tool="memcheck", message=message, location=location)
    told = told_findings([finding] * count, "first\nsecond")
    assert len(told) == min(count, MOST_FINDINGS)
    assert all(one.code == ("first" if one.line == 1 else "") for one in told)
    failed = evaluation(Verdict.RUNTIME_ERROR)
    reward = rewarded(REWARDS.get("seed")(RewardOptions()), failed)
    text = feedback(failed, "first\nsecond", None, reward, sanitizers=told)
    assert len(text) <= MOST_CHARACTERS
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings == ["## Compile", "## Correctness", "## Sanitizers", "## Reward"]


@pytest.mark.nvcc
def test_a_store_out_of_bounds_is_found_with_its_line_on_the_emulated_device() -> None:
    config = RunConfig(device="emulated", precision="fp32", evaluation=EvaluationConfig(input_sets=1))
    with open_environment(config) as environments:
        session = environments.session()
        start = session.reset(problem_id="L1_19").start_code
        seen = session.step(KernelAction(code=start.replace("if (i < count)", "if (i < count + 4096)")))
    assert (seen.verdict, seen.reward) == ("runtime_error", pytest.approx(0.1))
    (found, *_) = seen.findings["sanitizers"]
    assert found["tool"] == "memcheck"
    assert found["code"].startswith("if (i < count + 4096)")
    assert start.split("\n")[found["line"] - 1].strip().startswith("if (i < count)")
