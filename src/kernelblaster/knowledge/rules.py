"""From a profile to a bottleneck state, by the rules of the knowledge base.

Each state has rules, each rule a confidence. A rule speaks only when its expression is known to be true; the state of
the most confident such rule is the classification. Rules live in the file; this module only evaluates them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelblaster.knowledge.decisions import Classification
from kernelblaster.knowledge.expressions import KleeneValue, describe, evaluate, unknown_metrics
from kernelblaster.knowledge.schema import Rule, StateEntry

DECIDED_CONFIDENCE = 0.6
"""Below this the rules have a suspicion, not a finding, and a model may be asked."""


@dataclass(frozen=True)
class RuleMatch:
    """A rule that held, for a state."""

    state: str
    rule: Rule


def classify(states: Mapping[str, StateEntry], values: Mapping[str, float], fallback_state: str) -> Classification:
    """Evaluate every rule against known values.

    Args:
        states: state id -> entry; between equally confident states the earlier one wins.
        values: what `derived.observed` gathered.
        fallback_state: returned with confidence 0 when no rule holds.
    """
    findings, unknown = _findings(states, values)
    if not findings:
        return Classification(
            state=fallback_state,
            confidence=0.0,
            evidence=("no rule held",),
            runners_up=(),
            unknown=tuple(sorted(unknown)),
            decided=False,
        )
    best = max(findings, key=lambda finding: finding.rule.confidence)
    return Classification(
        state=best.state,
        confidence=best.rule.confidence,
        evidence=tuple(
            _line(finding.rule, values) for finding in _by_confidence(findings) if finding.state == best.state
        ),
        runners_up=_runners_up(findings, best.state),
        unknown=tuple(sorted(unknown)),
        decided=best.rule.confidence >= DECIDED_CONFIDENCE,
    )


def _findings(states: Mapping[str, StateEntry], values: Mapping[str, float]) -> tuple[list[RuleMatch], set[str]]:
    """Rules that hold, and the metrics whose absence left a rule undecided."""
    findings: list[RuleMatch] = []
    unknown: set[str] = set()
    for name, state in states.items():
        for rule in state.rules:
            outcome = evaluate(rule.when, values)
            if outcome is KleeneValue.TRUE:
                findings.append(RuleMatch(name, rule))
            elif outcome is KleeneValue.UNKNOWN:
                unknown |= unknown_metrics(rule.when, values)
    return findings, unknown


def _by_confidence(findings: list[RuleMatch]) -> list[RuleMatch]:
    return sorted(findings, key=lambda finding: -finding.rule.confidence)


def _runners_up(findings: list[RuleMatch], winner: str) -> tuple[tuple[str, float], ...]:
    best: dict[str, float] = {}
    for finding in _by_confidence(findings):
        if finding.state != winner:
            best.setdefault(finding.state, finding.rule.confidence)
    return tuple(best.items())


def _line(rule: Rule, values: Mapping[str, float]) -> str:
    return f"{rule.because}: {', '.join(describe(rule.when, values))}"
