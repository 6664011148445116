"""Why a search has no finalist: nothing to judge, nothing that runs, nothing that is right, nothing that is faster."""

from __future__ import annotations

import pytest

from kernelblaster.agent.fruitless import Replay, fruitless
from kernelblaster.agent.outcome import Incumbent, OutcomeStatus, RolloutResult, StopReason
from kernelblaster.config import SearchPart


def rollout(stop: StopReason, transitions: int = 0, **verdicts: int) -> RolloutResult:
    return RolloutResult(
        round=1, index=0, incumbent=Incumbent(sha256="a", evaluation="e"), stop=stop, steps=transitions,
        transitions=transitions, verdicts=verdicts,
    )  # fmt: skip


@pytest.mark.parametrize("stop", [StopReason.NOTHING_TO_TRY, StopReason.RECORDING_EXHAUSTED])
def test_a_recording_without_an_answer_is_not_called_a_search(stop: StopReason) -> None:
    found = fruitless([rollout(stop), rollout(stop)], Replay(holds=False, ablated=(SearchPart.RETRIEVAL,)))
    assert found.status is OutcomeStatus.UNANSWERED
    assert "OPENAI_API_KEY" in found.hint
    assert "retrieval" not in found.reason + found.hint


@pytest.mark.parametrize(
    ("ablated", "blamed"),
    [
        ((SearchPart.RETRIEVAL, SearchPart.MEMORY), {SearchPart.RETRIEVAL}),
        ((SearchPart.HISTORY, SearchPart.CLASSIFICATION), {SearchPart.CLASSIFICATION}),
        ((SearchPart.HISTORY,), set()),
    ],
)
def test_a_recording_that_holds_the_problem_was_asked_something_else(
    ablated: tuple[SearchPart, ...], blamed: set[SearchPart]
) -> None:
    found = fruitless([rollout(StopReason.NOTHING_TO_TRY)], Replay(holds=True, ablated=ablated))
    unknown = fruitless([rollout(StopReason.NOTHING_TO_TRY)], Replay(holds=False))
    assert found.status is OutcomeStatus.UNANSWERED
    assert found.reason != unknown.reason
    assert {part for part in SearchPart if part in found.reason} == blamed
    assert {part for part in SearchPart if part in found.hint} == blamed


def test_a_model_with_nothing_to_try_was_asked_nothing() -> None:
    found = fruitless([rollout(StopReason.NOTHING_TO_TRY)])
    assert found.status is OutcomeStatus.NO_IMPROVEMENT
    assert "nothing to try" in found.reason


def test_candidates_that_the_emulator_lacks_instructions_for_want_a_gpu() -> None:
    found = fruitless([rollout(StopReason.PATIENCE, 3, not_emulatable=3)] * 2, Replay(holds=True))
    assert found.status is OutcomeStatus.NOT_EMULATABLE
    assert "6 candidates" in found.reason
    assert "GPU" in found.hint


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ({"wrong_values": 2, "not_emulatable": 1}, "2 wrong_values"),
        ({"correct": 2, "wrong_values": 1}, "3 candidates, 2 of them correct"),
        ({}, "no reply held a kernel"),
    ],
)
def test_the_reason_counts_what_was_judged(verdicts: dict[str, int], told: str) -> None:
    found = fruitless([rollout(StopReason.PATIENCE, 3, **verdicts)])
    assert found.status is OutcomeStatus.NO_IMPROVEMENT
    assert told in found.reason
