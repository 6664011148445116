"""From a profile to a bottleneck state, by the rules of the knowledge base.

Each state has rules, each rule a confidence and mostly a formula for what mending it would bring. A rule speaks only
when its expression is known to be true. Every state with such a rule is a cause; that of the most confident rule leads.
Rules live in the file; this module only evaluates them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from kernelblaster.knowledge.decisions import Cause, Classification
from kernelblaster.knowledge.derived import Derived
from kernelblaster.knowledge.expressions import KleeneValue, describe, evaluate, unknown_metrics
from kernelblaster.knowledge.schema import GainForm, Rule, StateEntry

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
        fallback_state: the only cause, with confidence 0, when no rule holds.
    """
    findings, unknown = _findings(states, values)
    by_state: dict[str, list[Rule]] = {}
    for finding in sorted(findings, key=lambda finding: -finding.rule.confidence):
        by_state.setdefault(finding.state, []).append(finding.rule)
    causes = [_cause(state, rules, values) for state, rules in by_state.items()]
    nothing = Cause(fallback_state, confidence=0.0, evidence=("no rule held",), gain=None)
    return Classification(
        causes=tuple(causes) or (nothing,),
        unknown=tuple(sorted(unknown)),
        decided=bool(causes) and causes[0].confidence >= DECIDED_CONFIDENCE,
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


def _cause(state: str, rules: list[Rule], values: Mapping[str, float]) -> Cause:
    """One state, of the rules that held for it, the most confident first."""
    gains = [gain for rule in rules if (gain := estimated_gain(rule, values)) is not None]
    return Cause(
        state=state,
        confidence=rules[0].confidence,
        evidence=tuple(f"{rule.because}: {', '.join(describe(rule.when, values))}" for rule in rules),
        gain=max(gains, default=None),
    )


def estimated_gain(rule: Rule, values: Mapping[str, float]) -> float | None:
    """Speed-up that a rule's formula gives, 1 or more, and no more than the headroom where that is known."""
    value = values.get(rule.gain.metric) if rule.gain else None
    if rule.gain is None or value is None:
        return None
    if rule.gain.form is GainForm.RAISE:
        gain = rule.gain.to / value if value > 0 else math.inf
    else:
        left = 1 - rule.gain.to * value / 100
        gain = 1 / left if left > 0 else math.inf
    ceiling = values.get(Derived.HEADROOM, math.inf)
    bounded = max(1.0, min(gain, ceiling))
    return bounded if math.isfinite(bounded) else None
