"""Measured edges of records that are no run of the search, as the transitions that `kb learn` takes.

An edge is a kernel and what was made of it, timed in turns on an H200. What a record does not hold is left out, or
the edge is refused; nothing is guessed. The bottleneck is named anew, by today's rules over the profile that was taken
of the parent: rules were others when the kernels were asked for, and figures under both would be mixed. The technique
is the one that detectors confirm (`knowledge.credit`), as in a search, but over sources alone: machine code and
counters of these candidates were not kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from parents import PRECISION, Parent, h200_facts

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.cuda_source.features import source_features
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.credit import done_technique, what_was_done
from kernelblaster.replay.transition import FAILURE_REWARD, Transition


class Refused(Exception):
    """An edge that is no transition, and why."""


@dataclass(frozen=True)
class Outcome:
    """What was measured of a candidate. `speedup` with `decision` or neither; an interval where one was kept."""

    verdict: Verdict
    reason: str = ""
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    decision: Decision | None = None

    @property
    def reward(self) -> float:
        """As `replay.transition.reward`, which wants the whole comparison."""
        if self.verdict is not Verdict.CORRECT:
            return FAILURE_REWARD[self.verdict]
        decided = self.speedup is not None and self.decision is not Decision.INCONCLUSIVE
        return math.log(self.speedup) if self.speedup is not None and decided else 0.0


@dataclass(frozen=True)
class MeasuredEdge:
    """A parent, what was asked for, what came, and what became of it.

    Attributes:
        run, slot: name the edge.
        parent: with its profile.
        candidate: its source.
        asked: technique that the prompt named; `free_form` for none.
        declared: techniques that the reply named.
        stated: speed-up that the reply promised.
        lessons: ids of lessons that the prompt showed.
        attempts: replies that the step took.
        prompt_tokens, completion_tokens: of all of them, where they were kept.
    """

    run: str
    slot: str
    rollout: int
    step: int
    parent: Parent
    candidate: str
    asked: str
    declared: tuple[str, ...]
    stated: float | None
    outcome: Outcome
    model: str
    when: datetime
    round: int = 1
    lessons: tuple[str, ...] = ()
    attempts: int = 1
    recording: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None

    def transition(self, base: KnowledgeBase) -> Transition:
        """As a search would have stored it. Raises Refused."""
        parent, facts, outcome = self.parent, h200_facts(), self.outcome
        if parent.call.us is None:
            raise Refused("its parent's time was not kept")
        sha256 = source_digest(parent.source)
        measured = parent.evaluation(facts, sha256)
        assert measured.profile is not None
        bottleneck = base.classify(measured.profile, facts, measured.timing, source_features(parent.source))
        made = what_was_done((parent.source, None), (self.candidate, None), {})
        return Transition(
            run=self.run,
            slot=self.slot,
            problem=str(parent.problem.id),
            op_family=parent.family,
            precision=PRECISION,
            arch=facts.arch,
            device_kind=facts.kind,
            round=self.round,
            rollout=self.rollout,
            step=self.step,
            parent_sha256=sha256,
            candidate_sha256=source_digest(self.candidate),
            state=bottleneck.state,
            state_confidence=bottleneck.confidence,
            technique=self.asked,
            lessons=self.lessons,
            attempts=self.attempts,
            verdict=outcome.verdict,
            reason=outcome.reason,
            expected_speedup=self.stated,
            speedup=outcome.speedup,
            speedup_low=outcome.low,
            speedup_high=outcome.high,
            decision=outcome.decision,
            headroom=parent.call.us / parent.call.attainable_us if parent.call.attainable_us else None,
            declared=self.declared,
            done=done_technique(self.asked, self.declared, made.gained, base.techniques, made.more),
            gained=tuple(sorted(made.gained)),
            reward=outcome.reward,
            prompt_tokens=self.prompt_tokens,
            completion_tokens=self.completion_tokens,
            model=self.model,
            recording=self.recording,
            started_at=self.when,
            finished_at=self.when,
        )
