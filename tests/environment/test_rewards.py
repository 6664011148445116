"""Every outcome gets the reward that is written down for it, finite and within the scheme's range."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from fake_judge import evaluation
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.environment.rewards import REWARDS, RewardOptions, rewarded
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Verdict

BUILT = {
    Verdict.RUNTIME_ERROR, Verdict.TIMEOUT, Verdict.WRONG_SHAPE, Verdict.WRONG_VALUES, Verdict.NONDETERMINISTIC,
    Verdict.INPUT_MUTATED, Verdict.SANITIZER_ERROR, Verdict.NOT_EMULATABLE, Verdict.BUILT,
}  # fmt: skip
VERDICTS, DECISIONS = st.sampled_from(Verdict), st.sampled_from(Decision)
SPEEDUPS = st.floats(min_value=0.0) | st.just(math.nan)


def seed(verdict: Verdict, speedup: float = 1.0, decision: Decision = Decision.INCONCLUSIVE, **options: float) -> float:
    return rewarded(REWARDS.get("seed")(RewardOptions(**options)), evaluation(verdict, speedup, decision)).value


@pytest.mark.parametrize("decision", Decision)
@pytest.mark.parametrize("verdict", [verdict for verdict in Verdict if verdict is not Verdict.CORRECT])
def test_what_is_not_correct_gets_what_it_reached(verdict: Verdict, decision: Decision) -> None:
    assert seed(verdict, 3.0, decision) == pytest.approx(0.1 if verdict in BUILT else 0.0)


@pytest.mark.parametrize("decision", [Decision.SLOWER, Decision.INCONCLUSIVE])
def test_correct_and_not_faster_is_worth_the_same_whatever_its_ratio(decision: Decision) -> None:
    assert {round(seed(Verdict.CORRECT, ratio, decision), 9) for ratio in (0.2, 1.0, 1.5)} == {0.4}


@pytest.mark.parametrize(
    ("speedup", "worth"), [(1.02, 0.709), (1.5, 0.875), (2.0, 1.0), (3.0, 1.175), (4.0, 1.3), (100.0, 1.3)]
)
def test_the_bonus_grows_by_octaves_up_to_the_cap(speedup: float, worth: float) -> None:
    assert seed(Verdict.CORRECT, speedup, Decision.FASTER) == pytest.approx(worth, abs=6e-4)


def test_the_cap_and_the_grid_are_options() -> None:
    assert seed(Verdict.CORRECT, 4.0, Decision.FASTER, speedup_cap=16.0) == pytest.approx(1.0)
    assert seed(Verdict.CORRECT, 1.5, Decision.FASTER, grid=0.05) == pytest.approx(0.9)
    with pytest.raises(UsageError):
        RewardOptions(speedup_cap=1.0)


@pytest.mark.parametrize("name", list(REWARDS))
@given(verdict=VERDICTS, decision=DECISIONS, speedup=SPEEDUPS, grid=st.sampled_from([0.0, 0.05, 0.35]))
def test_every_scheme_stays_finite_and_in_its_range(
    name: str, verdict: Verdict, decision: Decision, speedup: float, grid: float
) -> None:
    scheme = REWARDS.get(name)(RewardOptions(grid=grid))
    found = rewarded(scheme, evaluation(verdict, speedup, decision))
    assert math.isfinite(found.value)
    assert scheme.lowest <= found.value <= scheme.highest
    assert all(map(math.isfinite, found.parts.values()))
    if not found.hack:
        assert math.fsum(found.parts.values()) == pytest.approx(found.value)


@pytest.mark.parametrize("name", list(REWARDS))
@given(verdict=VERDICTS, decision=DECISIONS, speedup=SPEEDUPS)
def test_a_hack_never_pays_more_than_an_honest_failure(
    name: str, verdict: Verdict, decision: Decision, speedup: float
) -> None:
    scheme = REWARDS.get(name)(RewardOptions())
    hack = rewarded(scheme, evaluation(Verdict.REWARD_HACK, speedup, decision))
    honest = rewarded(scheme, evaluation(verdict, speedup, decision))
    nothing = rewarded(scheme, None)
    assert hack.hack
    assert hack.value == scheme.lowest <= min(honest.value, nothing.value)
    assert hack.parts.keys() == honest.parts.keys() == nothing.parts.keys()


@pytest.mark.parametrize(
    ("us", "octaves"), [(1e9, 0.0), (64.0, 0.0), (32.0, 1.0), (1.0, 6.0), (0.5, 7.0), (0.25, 8.0), (1e-3, 8.0)]
)
def test_reach_grows_by_octaves_of_time_up_to_beyond_what_is_attainable(us: float, octaves: float) -> None:
    """One microsecond is attainable; what the kernel is compared with is of no account."""
    scheme = REWARDS.get("reach")(RewardOptions())
    for decision in Decision:
        found = evaluation(Verdict.CORRECT, 3.0, decision)
        timed = found.timing.model_copy(update={"median_us": us, "attainable_us": 1.0})
        value = rewarded(scheme, found.model_copy(update={"timing": timed})).value
        assert value == pytest.approx(0.4 + 0.15 * octaves)
    assert rewarded(scheme, found.model_copy(update={"timing": None})).value == pytest.approx(0.4)
    assert rewarded(scheme, evaluation(Verdict.WRONG_VALUES)).value == pytest.approx(0.1)


@pytest.mark.parametrize("name", ["seed", "log", "log-roofline", "milestones"])
def test_being_faster_is_worth_more_than_being_correct_and_that_more_than_being_wrong(name: str) -> None:
    scheme = REWARDS.get(name)(RewardOptions())
    wrong, right, faster = (
        rewarded(scheme, outcome).value
        for outcome in (
            evaluation(Verdict.WRONG_VALUES),
            evaluation(Verdict.CORRECT),
            evaluation(Verdict.CORRECT, 1.5, Decision.FASTER),
        )
    )
    assert wrong < right < faster


def test_a_kernel_nearer_to_the_floor_is_worth_more_by_the_roofline_share() -> None:
    scheme = REWARDS.get("log-roofline")(RewardOptions())
    found = evaluation(Verdict.CORRECT, 2.0, Decision.FASTER)
    assert found.timing is not None
    near = found.model_copy(update={"timing": found.timing.model_copy(update={"floor_fraction": 1.0})})
    assert rewarded(scheme, near).value == pytest.approx(math.log(2.0) + 0.5)
    assert math.log(2.0) < rewarded(scheme, found).value < rewarded(scheme, near).value
    assert (
        rewarded(scheme, evaluation(Verdict.TIMEOUT)).value
        == rewarded(REWARDS.get("log")(RewardOptions()), evaluation(Verdict.TIMEOUT)).value
    )


def test_what_the_device_cannot_do_and_what_is_too_good_are_marked() -> None:
    scheme = REWARDS.get("seed")(RewardOptions())
    assert rewarded(scheme, evaluation(Verdict.NOT_EMULATABLE)).device_limit
    assert rewarded(scheme, evaluation(Verdict.CORRECT, 11.0, Decision.FASTER)).suspicious
    assert not rewarded(scheme, evaluation(Verdict.CORRECT, 9.0, Decision.FASTER)).suspicious
    sampled = evaluation(Verdict.CORRECT).model_copy(update={"outputs_judged": False})
    assert rewarded(scheme, sampled).device_limit


@pytest.mark.parametrize(
    ("name", "last"),
    [("seed", 4.0), ("log", 100.0), ("log-roofline", 100.0), ("profile", 4.0), ("milestones", 1.05)]
    + [(name, 1.0) for name in ("binary", "graded", "two-stage-correct")],
)
def test_a_scheme_grows_up_to_the_speedup_that_is_written_down_for_it(name: str, last: float) -> None:
    scheme = REWARDS.get(name)(RewardOptions())

    def worth(speedup: float) -> float:
        found = evaluation(Verdict.CORRECT, speedup, Decision.FASTER)
        found.timing = None  # how near a time is to the floor counts apart
        return rewarded(scheme, found).value

    assert worth(last) == pytest.approx(worth(1000 * last))
    assert last == 1.0 or worth(0.98 * last) < worth(last)
    page = (Path(__file__).parents[2] / "docs/environment.md").read_text()
    row = next(line for line in page.splitlines() if line.startswith("|") and f"`{name}`" in line and " to " in line)
    told = "correct" if last == 1.0 else f"{last:g} times the baseline"
    assert told in row
