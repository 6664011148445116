"""Three submissions whose verdicts are known, judged before others and at intervals: a judge that errs tells nobody.

A correct kernel, one that computes nothing, and text that is no code. When one gets another verdict, nothing is judged
until all three are right again: such a step takes no turn and gives no reward.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.environment.judging import Judge, KnownDevice
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.self_checking import idle_launcher
from kernelblaster.problems.start import read_start
from kernelblaster.problems.tags import Tag

NO_CODE = "This is a sentence and not a kernel.\n"


class CanaryFailed(DeviceError):
    """A submission with a known verdict got another: nothing that is judged here now can be believed."""


class WatchedJudge:
    """A judge that canaries watch. Satisfies `Judge`.

    Args:
        judge: what is watched.
        problem: that the canaries solve; a cheap one.
        every_s: seconds after which they are judged again, at the next submission. After a failure of the device they
            are judged at the next one, too.
        clock: monotonic seconds.
    """

    def __init__(
        self, judge: Judge, problem: Problem, every_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._judge = judge
        self._problem = problem
        self._every_s = every_s
        self._clock = clock
        self._lock = threading.Lock()
        self._sound_until: float | None = None
        self._failure: CanaryFailed | None = None
        self.precision = judge.precision
        self.workload = judge.workload
        self.libraries = judge.libraries

    @property
    def device(self) -> KnownDevice:
        """Where candidates run."""
        return self._judge.device

    @property
    def failure(self) -> CanaryFailed | None:
        """What the last check found; None where all was right."""
        return self._failure

    def check(self) -> None:
        """Judge the canaries, unless that was done lately. Raises CanaryFailed, DeviceError, ProblemError."""
        with self._lock:
            if self._sound_until is not None and self._clock() < self._sound_until:
                return
            self._sound_until = None
            for source, expected in self._canaries():
                found = self._judge.evaluate(self._problem, source, baseline=None, profile=False, tier=Tier.CORRECT)
                if found.verdict is not expected:
                    self._failure = CanaryFailed(
                        f"a submission to {self._problem.slug} that is {expected} was judged {found.verdict}: "
                        f"{found.reason or 'no reason is given'}",
                        hint="`kernelblaster doctor` examines the machine",
                    )
                    raise self._failure
            self._failure = None
            self._sound_until = self._clock() + self._every_s

    def evaluate(
        self,
        problem: Problem,
        source: str,
        *,
        baseline: str | None = None,
        profile: bool = True,
        tier: Tier = Tier.FULL,
    ) -> Evaluation:
        """As of `Judge`, by a judge that is sound. Raises CanaryFailed, too."""
        self.check()
        try:
            return self._judge.evaluate(problem, source, baseline=baseline, profile=profile, tier=tier)
        except DeviceError:
            with self._lock:
                self._sound_until = None
            raise

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        """As of `Judge`."""
        return self._judge.sanitize(problem, source)

    def _canaries(self) -> Sequence[tuple[str, Verdict]]:
        driver = self._problem.driver_path.read_text(encoding="utf-8", errors="replace")
        return (
            (read_start(self._problem), Verdict.CORRECT),
            (f"#include <cstdint>\n{idle_launcher(launcher_declaration(driver))}", Verdict.WRONG_VALUES),
            (NO_CODE, Verdict.COMPILE_ERROR),
        )


def canary_problem(problems: Sequence[Problem]) -> Problem:
    """The problem that canaries solve: the first elementwise one, else the first. There must be one."""
    return next((problem for problem in problems if problem.tags[:1] == (Tag.ELEMENTWISE,)), problems[0])
