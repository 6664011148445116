"""Baselines that a strong policy does not pass at once, and what is measured again."""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from fake_judge import FACTS, FakeJudge, evaluation, kernel
from pydantic import ValidationError

from kernelblaster.devices.cuda.probe import GpuInfo
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.actions import MOST_MEASUREMENTS, KernelAction
from kernelblaster.environment.baselines import EpisodeBaseline
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments, KernelEpisodes
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.samples import EvalHeader
from kernelblaster.environment.submission import Language
from kernelblaster.errors import DeviceError, UsageError
from kernelblaster.evaluation.results import Decision, Evaluation, Verdict
from kernelblaster.evaluation.timing.pytorch_times import ModeTime
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.problems.problem import Precision
from kernelblaster.runs.pytorch_clock import PytorchGpuClock
from kernelblaster.runs.pytorch_times import Failed

KNOWN = "L1_23"
"""The shipped knowledge base holds a kernel of it for sm_90 in fp16, and none of L1_50."""
UNKNOWN = "L1_50"


def faster(speedup: float, note: str = "") -> str:
    return kernel(Verdict.CORRECT, speedup, Decision.FASTER, note)


class Measuring(FakeJudge):
    """Each time the same source is judged it gets the next of these outcomes, then the last one again."""

    def __init__(self, *outcomes: Evaluation) -> None:
        super().__init__()
        self.outcomes = list(outcomes)

    def _judged(self, source: str) -> Evaluation:
        found = super()._judged(source)
        if not source.startswith("// correct"):
            return found
        return self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]


def sessions_of(catalogue: Catalogue, judge: FakeJudge, **arguments: object) -> Callable[..., KernelEpisodes]:
    shared = SharedJudge(judge, **arguments)
    return lambda **settings: KernelEnvironments(catalogue, shared, EnvironmentSettings(**settings)).session()


def test_the_attainable_time_is_a_baseline_of_every_problem_and_says_how_near_a_kernel_comes(session) -> None:
    episodes = session(baseline=EpisodeBaseline.ATTAINABLE)
    first = episodes.reset(problem_id=KNOWN)
    assert first.baseline == first.metadata["baseline"] == "attainable"
    slow, fast = (episodes.step(KernelAction(code=faster(speedup))) for speedup in (2.0, 1e6))
    assert slow.baseline_us == fast.baseline_us
    assert slow.speedup == pytest.approx(slow.baseline_us / 50.0)
    assert (slow.decision, slow.reward) == (Decision.SLOWER, pytest.approx(0.4))
    assert (fast.decision, fast.reward) == (Decision.FASTER, pytest.approx(1.3))


def test_strong_kernels_that_get_the_same_by_the_seed_are_told_apart_by_others(catalogue: Catalogue) -> None:
    """Kernels that are 8 and 64 times faster than the plain start, which takes 100 us; 1.5 us are attainable."""

    class Timed(FakeJudge):
        def _judged(self, source: str) -> Evaluation:
            found = super()._judged(source)
            return found.model_copy(update={"timing": found.timing.model_copy(update={"attainable_us": 1.5})})

    found = {}
    for reward in ("seed", "log", "log-roofline", "reach"):
        episodes = sessions_of(catalogue, Timed())(reward=reward)
        episodes.reset(problem_id=KNOWN, stop_at_highest=False)
        found[reward] = [episodes.step(KernelAction(code=faster(speedup))).reward for speedup in (8.0, 64.0)]
    assert found["seed"] == pytest.approx([1.3, 1.3])
    assert found["log"][1] - found["log"][0] == pytest.approx(math.log(8.0))
    assert found["log-roofline"][1] > found["log-roofline"][0] + math.log(8.0)
    assert found["reach"][1] - found["reach"][0] == pytest.approx(3 * 0.15)
    assert found["reach"][1] == pytest.approx(0.4 + 0.15 * (6 + math.log2(1.5 * 64 / 100)))


def test_the_known_kernel_is_judged_once_and_then_timed_in_turns_with_submissions(session, judge: FakeJudge) -> None:
    for episodes in (session(), session()):
        first = episodes.reset(problem_id=KNOWN, baseline="expert")
        assert first.baseline == "expert"
        episodes.step(KernelAction(code=faster(1.2)))
        expert = judge.judged[0]
        assert expert not in (first.start_code, first.problem_description)
        assert expert[:200] not in first.model_dump_json()
    assert (judge.judged, judge.baselines) == ([expert, faster(1.2)], [None, expert])


@pytest.mark.parametrize("kind", [DeviceKind.CUDA, DeviceKind.EMULATED])
def test_a_problem_without_a_known_kernel_is_refused_and_others_are_named(catalogue, judge, kind) -> None:
    judge.device = SimpleNamespace(facts=FACTS.model_copy(update={"kind": kind}))
    episodes = sessions_of(catalogue, judge)()
    with pytest.raises(UsageError, match="no kernel") as refused:
        episodes.reset(problem_id=UNKNOWN, baseline="expert")
    assert "level1/023" in refused.value.hint
    assert episodes.reset(problem_id=KNOWN, baseline="expert").baseline == "expert"


def test_a_known_kernel_that_the_judge_refuses_today_is_no_baseline(catalogue) -> None:
    class Refusing(FakeJudge):
        def _judged(self, source: str) -> Evaluation:
            super()._judged(source)
            return evaluation(Verdict.WRONG_VALUES)

    with pytest.raises(UsageError, match="wrong_values"):
        sessions_of(catalogue, Refusing())().reset(problem_id=KNOWN, baseline="expert")


def test_an_episode_may_go_on_at_the_highest_reward(session) -> None:
    episodes = session()
    episodes.reset(problem_id=KNOWN, max_turns=3, stop_at_highest=False)
    assert [episodes.step(KernelAction(code=faster(8.0))).done for _ in range(3)] == [False, False, True]
    episodes.reset(problem_id=KNOWN, max_turns=3)
    assert episodes.step(KernelAction(code=faster(8.0))).done


def time_of(us: float) -> ModeTime:
    return ModeTime(
        us=us, low_us=us, high_us=us, samples=9, wall_us=us, wall_low_us=us, wall_high_us=us, launch_us=None
    )


def test_pytorch_is_timed_when_it_is_first_asked_for(catalogue, judge) -> None:
    asked = []

    def clock(problem, modes):
        asked.append((str(problem.id), set(modes)))
        return {mode: time_of(80.0) for mode in modes if mode is TorchMode.EAGER}

    make = sessions_of(catalogue, judge, clock=clock)
    for episodes in (make(), make()):
        first = episodes.reset(problem_id=UNKNOWN, baseline="eager")
        assert first.pytorch_us == {"eager": 80.0}
        assert episodes.step(KernelAction(code=faster(2.0))).speedup == pytest.approx(1.6)
    assert asked == [("level1/050", {TorchMode.EAGER})]
    assert make().reset(problem_id=UNKNOWN).pytorch_us == {}
    with pytest.raises(UsageError, match="cannot be here"):
        make().reset(problem_id=UNKNOWN, baseline="compile")


class Rows:
    """Workers of a clock that are not real."""

    def __init__(self, jobs: int) -> None:
        pass

    def run(self, items, may_start):
        for item in items:
            if TorchMode.COMPILE in item.modes:
                yield item, Failed("it does not compile")
                continue
            from test_pytorch_times import row_of

            torch = importlib.metadata.version("torch")
            yield item, row_of(item).model_copy(update={"gpu": "NVIDIA Test", "torch": torch})


class Nobody(Rows):
    """Has nothing to do."""

    def run(self, items, may_start):
        assert not list(items)
        yield from ()


def test_a_clock_keeps_its_rows_for_later_starts(catalogue, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[1] / "runs"))
    gpu = GpuInfo("NVIDIA Test", "sm_90", "GPU-1", 1 << 30, "1", "13.0")
    problem, told = catalogue.find(UNKNOWN), []

    def clock(workers=Rows) -> PytorchGpuClock:
        return PytorchGpuClock(Precision.FP16, "small", told.append, gpu=gpu, folder=tmp_path, workers=workers)

    assert clock()(problem, frozenset({TorchMode.EAGER}))[TorchMode.EAGER].us == 10.0
    assert clock()(problem, frozenset({TorchMode.COMPILE})) == {}
    assert len(told) == 2
    never = clock(Nobody)
    assert never(problem, frozenset({TorchMode.EAGER}))[TorchMode.EAGER].us == 10.0
    assert never(problem, frozenset({TorchMode.COMPILE})) == {}


@pytest.mark.parametrize(
    ("second", "speedup", "reward"),
    [
        (evaluation(Verdict.CORRECT, 2.0, Decision.FASTER), 2.0, 1.0),
        (evaluation(Verdict.CORRECT, 80.0, Decision.FASTER), 40.0, 1.3),
        (evaluation(Verdict.WRONG_VALUES), None, 0.1),
        (evaluation(Verdict.REWARD_HACK), None, 0.0),
    ],
)
def test_a_speedup_that_is_hardly_to_be_believed_is_measured_twice_and_the_worse_counts(
    catalogue, second: Evaluation, speedup: float | None, reward: float
) -> None:
    first = evaluation(Verdict.CORRECT, 40.0, Decision.FASTER, totals={"a.sum": 1.0})
    judge = Measuring(first, second)
    episodes = sessions_of(catalogue, judge)()
    episodes.reset(problem_id=KNOWN, stop_at_highest=False)
    for _ in range(2):
        seen = episodes.step(KernelAction(code=faster(40.0)))
        assert (seen.speedup, seen.reward) == (speedup, pytest.approx(reward))
        if second.correct:
            assert seen.profile == {"a.sum": 1.0}
            assert seen.suspicious == (speedup == 40.0)
        if seen.done:
            break
    assert judge.judged.count(faster(40.0)) == 2


def test_nothing_is_measured_twice_where_it_need_not_be(catalogue) -> None:
    for speedup, facts, settings in (
        (9.0, FACTS, {}),
        (40.0, FACTS, {"confirms": False}),
        (40.0, FACTS.model_copy(update={"kind": DeviceKind.EMULATED}), {}),
    ):
        judge = Measuring(evaluation(Verdict.CORRECT, speedup, Decision.FASTER))
        judge.device = SimpleNamespace(facts=facts)
        episodes = sessions_of(catalogue, judge)(**settings)
        episodes.reset(problem_id=KNOWN)
        episodes.step(KernelAction(code=faster(speedup)))
        assert judge.judged.count(faster(speedup)) == 1


def test_a_step_may_ask_for_another_measurement_so_often_and_each_is_kept(catalogue) -> None:
    outcomes = [evaluation(Verdict.CORRECT, speedup, Decision.FASTER) for speedup in (1.5, 1.6, 1.7)]
    judge = Measuring(*outcomes)
    episodes = sessions_of(catalogue, judge)()
    episodes.reset(problem_id=KNOWN)
    code = faster(1.5)
    seen = [episodes.step(KernelAction(code=code, measurement=number)).speedup for number in (0, 1, 0, 2, 1)]
    assert seen == [1.5, 1.6, 1.5, 1.7, 1.6]
    assert judge.judged.count(code) == 3
    for number in (-1, MOST_MEASUREMENTS):
        with pytest.raises(ValidationError):
            KernelAction(code=code, measurement=number)


def test_a_lost_gpu_while_a_baseline_is_judged_is_no_episode(catalogue, judge) -> None:
    episodes = sessions_of(catalogue, judge)()
    episodes.reset(problem_id=UNKNOWN)
    judge.lost = True
    with pytest.raises(DeviceError):
        episodes.reset(problem_id=KNOWN, baseline="expert")
    judge.lost = False
    assert episodes.step(KernelAction(code=faster(2.0))).problem_id.startswith("L1_50")
    assert episodes.reset(problem_id=KNOWN, baseline="expert").baseline == "expert"


def test_an_evaluation_of_an_earlier_version_is_one_against_the_start() -> None:
    old = (
        '{"format":"kernelblaster-env-eval-1","model":"m","dataset":"d","turns":3,"language":"cuda",'
        '"conditions":{},"modelled":false,"reward":{"reward":"seed"}}'
    )
    now = EvalHeader(
        model="m", dataset="d", turns=3, language=Language.CUDA, conditions={}, modelled=False,
        reward={"reward": "seed"}, baseline=EpisodeBaseline.START,
    )  # fmt: skip
    assert EvalHeader.model_validate_json(old) == now
    assert now != now.model_copy(update={"baseline": EpisodeBaseline.ATTAINABLE})
