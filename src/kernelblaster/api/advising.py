"""What limits a kernel that was judged, and what to try: the knowledge base's word on a profile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kernelblaster.api.evaluating import KernelSource, Tell, judge
from kernelblaster.api.problems import ProblemName
from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.decisions import Classification, NoTechnique, SelectionContext
from kernelblaster.knowledge.derived import observed
from kernelblaster.knowledge.policies import greedy
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.problems.families import family_of, family_of_driver
from kernelblaster.problems.problem import Problem

SUGGESTIONS = 3


@dataclass(frozen=True)
class Suggestion:
    """A technique for the bottleneck.

    Attributes:
        technique: its name in the knowledge base.
        summary: what it is, one line.
        expected_speedup: posterior mean on this architecture, given a correct kernel.
        attempts: that this rests on; 0 for a curated guess.
    """

    technique: str
    summary: str
    expected_speedup: float
    attempts: int


@dataclass(frozen=True)
class Advice:
    """The bottleneck of a kernel, the counters that say so, and what seems best for it."""

    bottleneck: Classification
    meaning: str
    suggestions: tuple[Suggestion, ...]


@dataclass(frozen=True)
class Diagnosis:
    """A judged kernel and what is known of its bottleneck.

    Attributes:
        evaluation: of the kernel.
        source: that was judged.
        advice: None unless the kernel is correct and has counters.
    """

    evaluation: Evaluation
    source: str
    advice: Advice | None


def diagnose(
    problem: ProblemName,
    source: KernelSource,
    *,
    baseline: KernelSource | None = None,
    config: RunConfig | None = None,
    device: Device | str | None = None,
    profile: bool = True,
    process_pairs: int = 1,
    on_stage: Tell | None = None,
) -> Diagnosis:
    """Judge one kernel, and say what limits it and what to try. Arguments and errors as of `evaluate`."""
    judged = judge(
        problem,
        source,
        baseline=baseline,
        config=config,
        device=device,
        profile=profile,
        process_pairs=process_pairs,
        on_stage=on_stage,
    )
    advice = advise(judged.evaluation, judged.problem, judged.facts) if judged.evaluation.correct else None
    return Diagnosis(judged.evaluation, judged.source, advice)


def advise(
    evaluation: Evaluation, problem: Problem, facts: DeviceFacts, *, base: KnowledgeBase | None = None
) -> Advice | None:
    """Name the bottleneck of a judged kernel, and the techniques that seem best for it; None without counters.

    Args:
        evaluation: of the kernel, with its profile.
        problem: that it solves.
        facts: of the device that it was profiled on.
        base: what is known; the shipped knowledge base if None.

    Raises KnowledgeError, ProblemError.
    """
    profile = evaluation.profile
    if profile is None or not profile.kernels:
        return None
    base = base or KnowledgeStore(seed_path(), owned=False).load()
    found = base.classify(profile, facts, evaluation.timing)
    if problem.weakly_verified:
        family = family_of_driver(problem.driver_path.read_text(encoding="utf-8", errors="replace"))
    else:
        family = family_of(problem.reference_path)
    where = SelectionContext(
        arch=facts.arch,
        device_kind=facts.kind,
        op_family=family,
        precision=evaluation.precision,
        observed=observed(profile, facts, evaluation.timing),
    )
    return Advice(found, base.states[found.state].primary_bottleneck, _suggestions(base, found.state, where))


def _suggestions(base: KnowledgeBase, state: str, where: SelectionContext) -> tuple[Suggestion, ...]:
    """The techniques of a state that seem best, the best first."""
    found: list[Suggestion] = []
    while len(found) < SUGGESTIONS:
        tabu = frozenset(one.technique for one in found)
        try:
            best = base.select(state, where, np.random.default_rng(0), tabu, policy=greedy)
        except NoTechnique:
            break
        found.append(Suggestion(best.technique, best.summary, best.expected_speedup, best.evidence_count))
    return tuple(found)
