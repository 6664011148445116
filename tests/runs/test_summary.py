"""Exit codes and the mean speed-up of a run."""

from __future__ import annotations

import pytest
from runs_samples import row, summary

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.errors import ExitCode


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        ([OutcomeStatus.IMPROVED, OutcomeStatus.NO_IMPROVEMENT], ExitCode.OK),
        ([OutcomeStatus.NO_IMPROVEMENT], ExitCode.NO_IMPROVEMENT),
        ([OutcomeStatus.IMPROVED, OutcomeStatus.FAILED], ExitCode.FAILED),
        ([OutcomeStatus.IMPROVED, OutcomeStatus.UNANSWERED], ExitCode.MODEL),
        ([OutcomeStatus.NO_IMPROVEMENT, OutcomeStatus.NOT_EMULATABLE], ExitCode.MACHINE),
        ([OutcomeStatus.IMPROVED, OutcomeStatus.BUDGET, OutcomeStatus.FAILED], ExitCode.BUDGET),
        ([OutcomeStatus.IMPROVED, OutcomeStatus.WAITING, OutcomeStatus.BUDGET], ExitCode.WAITING),
    ],
)
def test_exit_code_tells_the_worst_news(statuses: list[OutcomeStatus], code: ExitCode) -> None:
    assert summary(*(row(status) for status in statuses)).exit_code == code


def test_mean_counts_problems_without_improvement_as_one() -> None:
    mean = summary(row(OutcomeStatus.IMPROVED, 4.0), row(OutcomeStatus.NO_IMPROVEMENT)).geometric_mean
    assert mean == pytest.approx(2.0)


def test_waiting_problems_are_not_in_the_mean() -> None:
    assert summary(row(OutcomeStatus.WAITING)).geometric_mean is None


def test_what_was_never_searched_is_not_in_the_mean() -> None:
    mean = summary(row(OutcomeStatus.IMPROVED, 4.0), row(OutcomeStatus.UNANSWERED)).geometric_mean
    assert mean == pytest.approx(4.0)
