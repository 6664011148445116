"""Speed-ups and rewards against PyTorch's times on this very GPU, and what is said where there are none."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from fake_judge import FACTS, FakeJudge, evaluation, kernel

from kernelblaster import RunConfig, open_environment
from kernelblaster.api import environments
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.actions import KernelAction
from kernelblaster.environment.baselines import EpisodeBaseline
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments, KernelEpisodes
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.rewards import REWARDS, RewardOptions, for_problem, rewarded
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.evaluation.timing.pytorch_times import ModeTime, PytorchTimes
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.reference import size_digest

Sessions = Callable[..., KernelEpisodes]


def time(us: float) -> ModeTime:
    return ModeTime(
        us=us, low_us=0.99 * us, high_us=1.01 * us, samples=20, wall_us=us, wall_low_us=us, wall_high_us=us,
        launch_us=None,
    )  # fmt: skip


KNOWN = {TorchMode.EAGER: time(80.0), TorchMode.COMPILE: time(40.0)}
"""The start takes 100 us in the judge that is not real."""


def faster(speedup: float) -> str:
    return kernel(Verdict.CORRECT, speedup, Decision.FASTER)


@pytest.fixture
def timed(catalogue: Catalogue, judge: FakeJudge) -> Sessions:
    """Sessions where PyTorch was timed on L1_23 alone."""
    problem = catalogue.find("L1_23")
    times = PytorchTimes(
        problem=str(problem.id), name=problem.name, precision=Precision.FP16, workload="small",
        digest=size_digest(problem, "small"), gpu=FACTS.name, driver=None, torch="2", settings=None, cover_us=0.0,
        conditions=None, floor_us=None, times=KNOWN, seconds=0.0, at=0.0,
    )  # fmt: skip
    shared = SharedJudge(judge, pytorch={times.key: times})
    return lambda **settings: KernelEnvironments(catalogue, shared, EnvironmentSettings(**settings)).session()


@pytest.mark.parametrize(("baseline", "speedup"), [("start", 4.0), ("eager", 3.2), ("compile", 1.6), ("best", 1.6)])
def test_speedups_rewards_and_feedback_are_against_the_baseline_that_was_named(
    timed: Sessions, baseline: str, speedup: float
) -> None:
    episodes = timed()
    first = episodes.reset(problem_id="L1_23", baseline=baseline)
    seen = episodes.step(KernelAction(code=faster(4.0)))
    assert first.baseline == seen.baseline == baseline
    assert first.pytorch_us == seen.pytorch_us == {"eager": 80.0, "compile": 40.0}
    assert seen.speedup == pytest.approx(speedup)
    assert seen.baseline_us == pytest.approx(25.0 * speedup)
    assert seen.reward == pytest.approx(rewarded(REWARDS.get("seed")(RewardOptions()), _like(speedup)).value)
    assert episodes.state.best_speedup == pytest.approx(speedup)
    assert ("PyTorch" in seen.feedback) == (baseline != "start")


def _like(speedup: float):
    return evaluation(Verdict.CORRECT, speedup, Decision.FASTER)


def test_faster_than_the_start_and_not_than_pytorch_is_slower_there(timed: Sessions) -> None:
    episodes = timed(baseline=EpisodeBaseline.EAGER)
    episodes.reset(problem_id="L1_23")
    seen = episodes.step(KernelAction(code=faster(1.1)))
    assert (seen.decision, seen.reward) == (Decision.SLOWER, pytest.approx(0.4))


@pytest.mark.parametrize(
    ("verdict", "speedup", "worth"),
    [
        (Verdict.WRONG_VALUES, 1.0, -1.0),
        (Verdict.CORRECT, 1.2, 1.0),  # 83 us
        (Verdict.CORRECT, 1.28, 1.0),  # 78 us: faster than eager by less than 5 %
        (Verdict.CORRECT, 1.5, 2.0),
        (Verdict.CORRECT, 2.55, 2.0),  # faster than what is compiled by less than 5 %
        (Verdict.CORRECT, 3.0, 3.0),
    ],
)
def test_milestones_are_eager_and_compiled_pytorch_by_five_percent(
    timed: Sessions, verdict: Verdict, speedup: float, worth: float
) -> None:
    episodes = timed(reward="milestones")
    episodes.reset(problem_id="L1_23")
    seen = episodes.step(KernelAction(code=kernel(verdict, speedup, Decision.FASTER)))
    assert seen.reward == pytest.approx(worth)
    assert seen.done == (worth == 3.0)


def test_without_pytorch_s_times_the_second_milestone_is_the_start_and_there_is_no_third(timed: Sessions) -> None:
    episodes = timed(reward="milestones")
    episodes.reset(problem_id="L1_19")
    seen = episodes.step(KernelAction(code=faster(3.0)))
    assert (seen.reward, seen.done, seen.pytorch_us) == (pytest.approx(2.0), True, {})


def test_a_hack_gets_the_lowest_milestone_whatever_pytorch_takes() -> None:
    scheme = for_problem(REWARDS.get("milestones")(RewardOptions()), KNOWN)
    found = rewarded(scheme, evaluation(Verdict.REWARD_HACK, 3.0, Decision.FASTER))
    assert (found.value, found.hack) == (-1.0, True)


@pytest.mark.parametrize("baseline", ["eager", "compile", "best"])
def test_a_baseline_without_a_time_is_refused_and_the_episode_before_goes_on(timed: Sessions, baseline: str) -> None:
    episodes = timed()
    episodes.reset(problem_id="L1_23")
    with pytest.raises(UsageError, match="L1_19") as refused:
        episodes.reset(problem_id="L1_19", baseline=baseline)
    assert "--pytorch-times" in refused.value.hint
    assert episodes.step(KernelAction(code=faster(4.0))).problem_id == "L1_23_Softmax"


def test_an_emulated_gpu_has_no_baseline_but_the_start(catalogue: Catalogue, judge: FakeJudge) -> None:
    judge.device = SimpleNamespace(facts=FACTS.model_copy(update={"kind": DeviceKind.EMULATED}))
    episodes = KernelEnvironments(catalogue, SharedJudge(judge), EnvironmentSettings()).session()
    with pytest.raises(UsageError, match="emulated"):
        episodes.reset(problem_id="L1_23", baseline="eager")
    with pytest.raises(UsageError, match="baseline"):
        episodes.reset(problem_id="L1_23", baseline="numpy")
    assert episodes.reset(problem_id="L1_23").baseline == "start"


@pytest.mark.parametrize("baseline", ["eager", "compile", "best"])
def test_a_server_whose_every_reset_would_be_refused_does_not_open(
    baseline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    emulated = SimpleNamespace(facts=FACTS.model_copy(update={"kind": DeviceKind.EMULATED}))
    monkeypatch.setattr(environments, "open_evaluator", lambda *_, **__: nullcontext(emulated))
    with pytest.raises(UsageError, match="emulated") as refused, open_environment(RunConfig(), baseline=baseline):
        pytest.fail("it opened")
    assert "attainable" in (refused.value.hint or "")
