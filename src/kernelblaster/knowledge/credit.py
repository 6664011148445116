"""What a step is credited with: its gain against its siblings, for what it really did.

The gain of a candidate is the logarithm of its speed-up against its parent, at most the logarithm of the parent's
headroom. Most of it lies in the parent, not in the technique. The learning signal is therefore the leave-one-out
advantage among candidates of the same parent,

    credit_i = gain_i - mean of gain_j over the siblings j != i  =  n / (n - 1) * (gain_i - mean over all n)

as in REINFORCE with a leave-one-out baseline. A candidate without siblings earns no credit: its gain says nothing of
the technique.

What was really done is told by the features that a candidate gained over its parent. A rewrite gains many at once, and
the technique with the most telling of them takes its credit. They lie on three levels (`_BY_LEVEL`):

    arithmetic    another unit multiplies. The 47 measured replies that gained products on tensor cores are 43 times as
                  fast as their parents in the median; those that gained any other feature, and not these, at most 2.9
                  times. What came along would have brought its share to a kernel on tensor cores, too.
    mechanism     hardware that has to be set up: tensor maps, barriers, clusters, roles of warps. Whoever uses it has
                  planned the kernel for it.
    side effect   a wider type, an attribute, an intrinsic. Of vector accesses, launch bounds, hints and prefetches each
                  is gained unasked by a quarter of all replies: whoever writes a kernel anew leaves some in it.
                  They count only for what was asked for or declared.

Among techniques that have signs, what was asked for and declared decides on one level, never between two. One without
signs, an algorithm for one, is believed as `done_technique` says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from kernelblaster.cuda_source.features import Feature, confirmed, shown_by, source_features
from kernelblaster.devices.metrics import Metric
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.schema import FREE_FORM, TechniqueEntry
from kernelblaster.replay.transition import Transition

_DECLARED = re.compile(r"^TECHNIQUES:(.*)$", re.MULTILINE)
_BY_LEVEL = (
    (Feature.WGMMA, Feature.MMA_SYNC),
    (
        *(Feature.TMA_LOAD, Feature.DISTRIBUTED_SHARED, Feature.GRID_SYNC, Feature.SET_REGISTERS),
        *(Feature.MULTICAST, Feature.MBARRIER, Feature.CP_ASYNC, Feature.BULK_COPY, Feature.CLUSTER),
        *(Feature.TMA_STORE, Feature.LDMATRIX, Feature.STMATRIX, Feature.GRAPH),
    ),
)
"""Features of arithmetic, then mechanisms, on each level the one that changes a kernel most first; others are side
effects."""
_ON_TENSOR_CORES = frozenset(_BY_LEVEL[0])
_SIDE_EFFECT = (len(_BY_LEVEL), 0)
_RANKS = {sign: (level, place) for level, signs in enumerate(_BY_LEVEL) for place, sign in enumerate(signs)}
REBUILT = _ON_TENSOR_CORES | {Feature.TMA_LOAD, Feature.DISTRIBUTED_SHARED, Feature.GRID_SYNC, Feature.SET_REGISTERS}
"""Features that a kernel is built around."""
_GROWTH = 2
"""Times as many instructions from which a kernel does much more of something."""


def declared_techniques(reply: str, known: Iterable[str]) -> tuple[str, ...]:
    """Known techniques that a reply's line `TECHNIQUES: a, b (what it did), c of more` names, in its order.

    Between commas stands a name, with spaces or hyphens for underscores perhaps, and behind it what else it says.
    """
    found = _DECLARED.search(reply)
    if found is None:
        return ()
    longest_first = sorted(known, key=len, reverse=True)
    named = []
    for part in re.sub(r"\([^)]*\)?", "", found[1]).split(","):
        words = f"_{'_'.join(re.findall('[a-z0-9]+', part.lower()))}_"
        named += [next((name for name in longest_first if words.startswith(f"_{name}_")), "")]
    return tuple(dict.fromkeys(filter(None, named)))


def gain_of(transition: Transition) -> float | None:
    """Capped log gain against the parent; None for a candidate that was not correct or not compared."""
    if transition.verdict is not Verdict.CORRECT:
        return None
    if transition.decision is Decision.INCONCLUSIVE or transition.duplicate:
        return 0.0
    if transition.speedup is None:
        return None
    gain = math.log(transition.speedup)
    return gain if transition.headroom is None else min(gain, max(0.0, math.log(transition.headroom)))


def credits(gains: Mapping[str, float]) -> dict[str, float]:
    """Leave-one-out advantage of each sibling, by the key it came with; empty when there are fewer than two."""
    count = len(gains)
    if count < 2:
        return {}
    mean = sum(gains.values()) / count
    return {key: count / (count - 1) * (gain - mean) for key, gain in gains.items()}


def family_of(transition: Transition) -> str:
    """What siblings share beside their run: problem, precision, device and parent."""
    place = (transition.problem, transition.precision, transition.arch, transition.device_kind)
    return "\0".join((*place, transition.parent_sha256))


def executed(written: Set[Feature], totals: Mapping[str, float]) -> frozenset[Feature]:
    """What a kernel does of what its source contains: counters of the profiled call have the last word where they can.

    Tensor cores that were never busy refute every product on them, for one in a branch that the timed size does not
    take. A counter that was not collected refutes nothing.

    Args:
        written: features of the source.
        totals: metrics of the profiled call by name.
    """
    idle = totals.get(Metric.PIPE_TENSOR) == 0
    return frozenset(written) - (_ON_TENSOR_CORES if idle else frozenset())


def grown(before: Mapping[str, int] | None, after: Mapping[str, int] | None) -> frozenset[Feature]:
    """Features that at least twice as many instructions of the machine code show as before, where both are known."""
    if before is None or after is None:
        return frozenset()
    return frozenset(one for one in Feature if after.get(one, 0) >= _GROWTH * max(1, before.get(one, 0)))


@dataclass(frozen=True)
class Done:
    """What detectors found a candidate to do beyond its parent.

    Attributes:
        gained: features that it has and its parent had not, without those that machine code or counters refute.
        more: features that it has much more of.
        refuted: features that are new in its source and in nothing that was compiled.
        compiled: whether machine code had a say.
    """

    gained: frozenset[Feature] = frozenset()
    more: frozenset[Feature] = frozenset()
    refuted: frozenset[Feature] = frozenset()
    compiled: bool = False


Written = tuple[str, Mapping[str, int] | None]
"""A source, and its machine code's instructions per feature where that is known."""


def what_was_done(parent: Written, candidate: Written, totals: Mapping[str, float]) -> Done:
    """Hold two kernels against each other; machine code has a say where that of both is known.

    `totals`: counters of the candidate's profiled call, empty for none.
    """
    written = [source_features(source) for source, _ in (parent, candidate)]
    compiled = bool(parent[1] and candidate[1])
    machine = [counts if compiled else None for _, counts in (parent, candidate)]
    before, after = (confirmed(features, shown_by(counts)) for features, counts in zip(written, machine, strict=True))
    return Done(
        gained=executed(after, totals) - before,
        more=executed(grown(*machine), totals),
        refuted=(written[1] - written[0]) - after,
        compiled=compiled,
    )


def done_technique(
    asked: str,
    declared: Iterable[str],
    gained: Set[Feature],
    techniques: Mapping[str, TechniqueEntry],
    more: Set[Feature] = frozenset(),
) -> str:
    """The technique that a candidate is credited to: the one of whose signs the most telling shows (see the module).

    On one level what was asked for comes first, then what the reply declared, then the one that changes a kernel most.
    A technique without signs, an algorithm for one, cannot be confirmed. It counts as asked, or as declared where the
    reply declares others alone, unless the kernel was rebuilt on other hardware (`REBUILT`) or something shows that was
    declared, too: anything where the reply does not declare what was asked for, else more than a side effect.

    Args:
        asked: by the prompt.
        declared: techniques that the reply says it applied, the most important first.
        gained: features that the candidate has and its parent had not.
        techniques: id -> entry, with signs.
        more: features that it has much more of (`grown`): side effects, for unrolling alone brings them.
    """
    declared = tuple(name for name in declared if name in techniques)
    signed = asked in techniques and bool(techniques[asked].signs)
    named = (asked, *declared) if signed else declared
    showing = [name for name in named if _shows(techniques[name], gained | more)]
    if not signed and asked in declared:
        showing = [name for name in showing if _rank(techniques[name], gained) < _SIDE_EFFECT]
    telling = gained if signed else gained & REBUILT
    showing += sorted(_unasked(telling, techniques), key=lambda name: (_rank(techniques[name], gained), name))
    if showing:
        return min(showing, key=lambda name: _rank(techniques[name], gained)[0])
    if signed:
        return FREE_FORM
    return asked if asked in declared else next((name for name in declared if not techniques[name].signs), asked)


def _unasked(gained: Set[Feature], techniques: Mapping[str, TechniqueEntry]) -> list[str]:
    """Techniques that show without having been named: by more than side effects."""
    return [name for name, entry in techniques.items() if _shows(entry, gained) and _rank(entry, gained) < _SIDE_EFFECT]


def _rank(technique: TechniqueEntry, gained: Set[Feature]) -> tuple[int, int]:
    """Level, and place on it, of the most telling of a technique's signs that a kernel gained."""
    return min((_RANKS.get(sign, _SIDE_EFFECT) for sign in technique.signs if sign in gained), default=_SIDE_EFFECT)


def _shows(technique: TechniqueEntry, gained: Set[Feature]) -> bool:
    return bool(technique.signs) and set(technique.signs) <= gained
