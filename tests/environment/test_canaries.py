"""Submissions with known verdicts watch the judge."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from fake_judge import FakeJudge, evaluation, kernel

from kernelblaster.environment.canaries import NO_CODE, CanaryFailed, WatchedJudge, canary_problem
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.results import Evaluation, Verdict

RIGHT = kernel(Verdict.CORRECT)
EVERY_S = 60.0


class Erring(FakeJudge):
    """Tells a start, an idle launcher and text apart, unless `errs` says that one verdict is given to all."""

    errs: Verdict | None = None

    def _judged(self, source: str) -> Evaluation:
        found = super()._judged(source)
        if self.errs is not None:
            return evaluation(self.errs)
        if source == NO_CODE:
            return evaluation(Verdict.COMPILE_ERROR)
        return found if "<<<" in source or source == RIGHT else evaluation(Verdict.WRONG_VALUES)


@pytest.fixture
def watch(catalogue: Catalogue) -> SimpleNamespace:
    judge, now = Erring(), SimpleNamespace(s=0.0)
    problem = canary_problem(catalogue.problems)
    return SimpleNamespace(
        real=judge, now=now, problem=problem, judge=WatchedJudge(judge, problem, EVERY_S, clock=lambda: now.s)
    )


def test_canaries_come_before_the_first_submission_and_again_when_their_time_has_passed(watch) -> None:
    for _ in range(2):
        assert watch.judge.evaluate(watch.problem, RIGHT).correct
    assert len(watch.real.judged) == 3 + 2
    watch.now.s = EVERY_S
    watch.judge.evaluate(watch.problem, RIGHT)
    assert len(watch.real.judged) == 5 + 3 + 1


@pytest.mark.parametrize("errs", [Verdict.CORRECT, Verdict.WRONG_VALUES, Verdict.COMPILE_ERROR, Verdict.TIMEOUT])
def test_a_judge_that_errs_judges_nothing_until_it_is_right_again(watch, errs: Verdict) -> None:
    watch.real.errs = errs
    for _ in range(2):
        with pytest.raises(CanaryFailed):
            watch.judge.evaluate(watch.problem, RIGHT)
    assert RIGHT not in watch.real.judged
    watch.real.errs = None
    assert watch.judge.evaluate(watch.problem, RIGHT).correct


def test_after_a_failure_of_the_device_canaries_come_first(watch) -> None:
    watch.judge.check()
    watch.real.lost = True
    with pytest.raises(DeviceError):
        watch.judge.evaluate(watch.problem, RIGHT)
    watch.real.lost = False
    before = len(watch.real.judged)
    watch.judge.evaluate(watch.problem, RIGHT)
    assert len(watch.real.judged) == before + 3 + 1
