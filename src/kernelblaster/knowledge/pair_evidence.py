"""What measured pairs say of a lesson: whether it still holds, what it was measured to bring, how pairs are joined."""

from __future__ import annotations

import math
from collections.abc import Iterable

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.schema import Lesson, PairMeasurement

PAIRS_KEPT = 16
"""Pairs of a lesson that are kept, by the order of their digests: a sample that does not depend on who merges first."""


def holds(lesson: Lesson, kind: DeviceKind) -> bool:
    """Whether a lesson may be shown on a kind of device; one that comes from no pairs always may."""
    if not lesson.pairs:
        return True
    ours = [pair for pair in lesson.pairs if pair.device_kind is kind]
    against = sum(pair.contradicts for pair in ours)
    return len(ours) - against > against


def measured_line(lesson: Lesson, kind: DeviceKind) -> str:
    """A lesson with what was measured on a kind of device, for a prompt or a table."""
    pairs = [pair for pair in lesson.pairs if pair.device_kind is kind and not pair.contradicts]
    if not pairs:
        return lesson.text
    against = sum(pair.contradicts for pair in lesson.pairs if pair.device_kind is kind)
    where = "/".join(sorted({f"{pair.op_family} {pair.precision} {pair.arch}" for pair in pairs})[:2])
    if len(pairs) == 1:
        told = f"{pairs[0].speedup:.2f}x [{pairs[0].low:.2f}, {pairs[0].high:.2f}]"
    else:
        mean = math.exp(sum(math.log(pair.speedup) for pair in pairs) / len(pairs))
        told = f"{mean:.2f}x in {len(pairs)} pairs, {min(p.low for p in pairs):.2f} to {max(p.high for p in pairs):.2f}"
    return f"{lesson.text} ({told}, {where}{f'; {against} against' if against else ''})"


def joined_pairs(left: Iterable[PairMeasurement], right: Iterable[PairMeasurement]) -> tuple[PairMeasurement, ...]:
    """Union by transition, bounded; commutative, associative and idempotent."""
    known: dict[str, PairMeasurement] = {}
    for pair in sorted((*left, *right), key=lambda pair: pair.model_dump_json()):
        known.setdefault(pair.transition, pair)
    return tuple(known[digest] for digest in sorted(known)[:PAIRS_KEPT])
