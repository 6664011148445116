"""How near modelled times are to an H200's at kernels that nothing was fitted to; `held_out_times.py` models them.

Times tell how well the model places any kernel among others; a search asks whether a reply beats its parent, or one
reply another, which is judged by the sign of the logarithm of the ratio of their times.
"""

from __future__ import annotations

import json
import math
import statistics
import zlib
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TypeVar

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results"
TRIAL = RESULTS / "content_trial"
ROWS = RESULTS / "ptxemu_held_out_h200.jsonl"
BEFORE = RESULTS / "ptxemu_held_out_before_h200.jsonl"
"""Of the model before it was worked on with the development half; sampled 20 million warp instructions a launch."""
BEYOND = math.log(1.05)
"""From which ratio on an H200's answer counts as faster or slower."""
NEAR = (1.2, 1.5, 2.0)
LEAST = 5
"""Kernels or comparisons of which a correlation is told."""
CLASSES = {
    "tensor-core products": ("matmul", "fused_matmul", "mlp"),
    "convolutions": (),
    "attention": ("attention",),
    "reductions and norms": ("reduction", "softmax", "normalization"),
    "scans": ("scan",),
    "elementwise": ("elementwise",),
    "pooling": ("pooling",),
    "loss": ("loss",),
}
"""Operator families of the trial by class."""
CONVOLUTIONS = ("level2/001/",)
"""Parents of the family `fused_matmul` that are convolutions."""


_WHERE_FROM = """\
Parents and correct replies of the [content trial](results/content_trial/plan.md), fp16, `medium`: kernels of two
recorded searches and what a language model made of them. No capture holds them. By
`benchmarks/ptxemu/held_out_times.py`, which models a call on the emulated H200 as `kernelblaster evaluate --device
emulated --size medium` does, and judges no outputs ([rows](results/ptxemu_held_out_h200.jsonl)); blocks are
sampled, a million warp instructions of each launch. The H200's time of a parent is what its prompt tells, measured
in the search; that of a reply is this over the speed-up measured in turns with the parent in the trial. Parents and
replies of each were drawn with the seed 20261123, as many as time allowed.

Kernels whose parent's name has an even CRC-32 are the *development* half: what is modelled of products by
warpgroups, of clocks under load, of tiles that blocks read together and of waits for other blocks was worked out on
them, on Nsight Compute's counters of their parents and on captures. The *test* half had no part in that: its times
were looked at when the model was finished, in parts on the way there, and nothing was changed by them. Both halves were
in an earlier version of this page, which said in words what was wrong.

The rows are of the model before
[five more programs](emulator_calibration.md#programs-that-the-model-had-not-seen) had it mended: of 130 kernels 13 have
atomics and 71 bulk copies. 15 of these, the quickest, were modelled anew: all have the same times as before.
""".splitlines()
_SIGNS = """\
Replies against their parents. Decided is what differs by more than 5 % on the H200. Most replies are faster, so that
who always says "faster" is right in as many as are faster; *of the slower* tells what the model adds to that.
*Wrong beyond 5 %* are decided ones of which the model says the opposite, by more than 5 %.
""".splitlines()

_WHY = """\
What changed between the two versions of the model, and what is left:

- **Clocks under load.** An H200 that runs at 1980 MHz runs at 1650 to 1800 when tensor cores are at work, and the
  lower the busier they are (1510 at 79 %): launches of the calibration's capture, and multiply-adds over the time
  for which Nsight Compute has tensor cores active in launches of recorded searches, say so.
- **Products by warpgroups** are followed along the code: tensor cores take them up one after the other, a warpgroup
  goes on until it waits for a group, the warpgroups of a block take turns, and what a block exposes before its
  first product and after its last one is in its chain. `mma.sync` has two thirds of their rate, which is what
  captured launches have.
- **Tiles that blocks read together** are brought once: what is read again counts as lost from the L2 only where the
  same block reads it again or blocks of a later wave do. DRAM reads of products had been up to five times too many.
- **Loads** have hits of their own by instruction, and a warp waits for the last of those that it awaits together: from
  the capture's fitted half, without these kernels ([routes](emulator_calibration.md#routes-to-nearer-times)). Shared
  memory limits products by warpgroups, which was tried on the development half. Without both, the newest change, all
  128 kernels had a Spearman correlation of 0.892 and a median factor of 1.14, the test half 0.805 and 1.15.
- **Waits for other blocks** count as one look each. How long they are is not modelled: persistent kernels with
  barriers over the whole grid are too fast.
- Left: the order of products by warpgroups, which have 46 of the 128 kernels and a factor of 1.22. Two kernels that
  differ in the L2 promotion of their tensor maps take 64 and 54 us under Nsight Compute and are modelled alike; event
  times of a search lie up to 12 us above Nsight Compute's of the same kernel, and not all by the same. Convolutions by
  `wgmma` are ordered wrongly: their output warpgroups write while others multiply, or do not, which the chain of one
  warpgroup does not tell. Replies that poll words of other blocks run out of time.
- The times of before are from samples of 20 million warp instructions of each launch. All others, and the pages of the
  calibration, are of today's model beside the H200's times of the searches and the trial, which are older
  (November 2026, driver 580).
""".splitlines()


@dataclass(frozen=True)
class Modelled:
    """A kernel on both sides.

    Attributes:
        id: of the reply, or `parent` of the parent itself.
        real_us: of a parent on the H200; None of a reply.
        speedup: of a reply over its parent, in turns on the H200; None of a parent.
        modelled_us: of a call; None where it could not be modelled.
        executed_share: of the blocks.
        failure: kind of the failure, or empty.
        seconds: to emulate it, beyond building.
    """

    id: str
    parent: str
    family: str
    real_us: float | None
    speedup: float | None
    modelled_us: float | None
    executed_share: float | None
    failure: str
    reason: str
    seconds: float

    @property
    def kind(self) -> str:
        """Its class."""
        if self.parent.startswith(CONVOLUTIONS):
            return "convolutions"
        return next(name for name, families in CLASSES.items() if self.family in families)


def in_development(parent: str) -> bool:
    """Whether kernels of this parent may be looked at while the model is worked on."""
    return zlib.crc32(parent.encode()) % 2 == 0


@dataclass(frozen=True)
class Times:
    """Microseconds of a call on both sides."""

    kind: str
    parent: str
    real: float
    modelled: float

    @property
    def factor(self) -> float:
        """By how much the model tells too much or too little, 1 at best."""
        return max(self.real / self.modelled, self.modelled / self.real)


@dataclass(frozen=True)
class Compared:
    """Logarithms of the ratio of two kernels' times, on both sides."""

    kind: str
    real: float
    modelled: float


Kind = TypeVar("Kind", Times, Compared)


def read_rows(path: Path) -> list[Modelled]:
    """Of a file that `held_out_times.py measure` wrote."""
    return [Modelled(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]


def times(rows: Iterable[Modelled]) -> dict[str, Times]:
    """By id, what was modelled; a reply's time on the H200 is its parent's over its speed-up."""
    rows = list(rows)
    parents = {row.id: row.real_us for row in rows if row.real_us is not None}
    found = {}
    for row in rows:
        if row.modelled_us is not None:
            real = parents[row.parent] / (row.speedup or 1.0)
            found[row.id] = Times(row.kind, row.parent, real, row.modelled_us)
    return found


def against_parents(rows: Iterable[Modelled]) -> list[Compared]:
    """Each reply over its parent: above 0 is faster."""
    found = times(rows)
    return [
        _compared(found[one.parent], one) for name, one in found.items() if name != one.parent and one.parent in found
    ]


def among_siblings(rows: Iterable[Modelled]) -> list[Compared]:
    """Each two replies to one parent."""
    families = defaultdict(list)
    for name, one in sorted(times(rows).items()):
        if name != one.parent:
            families[one.parent].append(one)
    return [_compared(*pair) for own in families.values() for pair in combinations(own, 2)]


def _compared(base: Times, other: Times) -> Compared:
    return Compared(other.kind, math.log(base.real / other.real), math.log(base.modelled / other.modelled))


def times_table(found: Sequence[Times]) -> list[str]:
    """Each class, then all."""
    shares = " | ".join(f"within {near:g}" for near in NEAR)
    lines = [
        f"| class | kernels | parents | Spearman | median factor | {shares} | worst | modelled / real, median |",
        "|---" * 10 + "|",
    ]
    for name, own in _classes(found):
        factors = [one.factor for one in own]
        near = [f"{sum(one <= bound for one in factors) / len(own):.0%}" for bound in NEAR]
        order = f"{spearman([one.real for one in own], [one.modelled for one in own]):.3f}" if len(own) >= LEAST else ""
        bias = statistics.median(one.modelled / one.real for one in own)
        cells = [name, len(own), len({one.parent for one in own}), order, f"{statistics.median(factors):.2f}"]
        lines.append(f"| {' | '.join(map(str, [*cells, *near, f'{max(factors):.2f}', f'{bias:.2f}']))} |")
    return lines


def halves_table(now: Mapping[str, Times], before: Mapping[str, Times]) -> list[str]:
    """Kernels that both versions modelled, by half and class."""
    lines = [
        "| half | class | kernels | Spearman before | now | median factor before | now | within 1.2 before | now "
        "| modelled / real before | now |",
        "|---" * 11 + "|",
    ]
    both = [name for name in now if name in before]
    for half, wanted in (("development", True), ("test", False)):
        own = [name for name in both if in_development(now[name].parent) is wanted]
        for kind in (*CLASSES, "all"):
            names = [name for name in own if kind in (now[name].kind, "all")]
            if names:
                pairs = zip(*(_told([version[name] for name in names]) for version in (before, now)), strict=True)
                cells = [half, kind, len(names), *(cell for pair in pairs for cell in pair)]
                lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _told(own: Sequence[Times]) -> tuple[str, str, str, str]:
    """Spearman, median factor, share within the first bound, bias."""
    factors = [one.factor for one in own]
    order = f"{spearman([one.real for one in own], [one.modelled for one in own]):.3f}" if len(own) >= LEAST else ""
    near = f"{sum(one <= NEAR[0] for one in factors) / len(own):.0%}"
    bias = statistics.median(one.modelled / one.real for one in own)
    return order, f"{statistics.median(factors):.2f}", near, f"{bias:.2f}"


def signs_table(compared: Sequence[Compared]) -> list[str]:
    """Each class, then all: of comparisons that an H200 decides beyond 5 %, how many the model decides alike."""
    lines = [
        "| class | compared | faster beyond 5 % | slower beyond 5 % | right sign | of the faster | of the slower "
        "| wrong beyond 5 % | r of logarithms | Spearman |",
        "|---" * 10 + "|",
    ]
    for name, own in _classes(compared):
        faster = [one for one in own if one.real > BEYOND]
        slower = [one for one in own if one.real < -BEYOND]
        clear = faster + slower
        wrong = [one for one in clear if abs(one.modelled) > BEYOND and not _agrees(one)]
        cells = [name, len(own), len(faster), len(slower), *map(_right, (clear, faster, slower))]
        lines.append(f"| {' | '.join(map(str, [*cells, f'{len(wrong)} of {len(clear)}', *_correlations(own)]))} |")
    return lines


def siblings_table(compared: Sequence[Compared]) -> list[str]:
    """As `signs_table`, of comparisons in which neither side comes first."""
    lines = [
        "| class | compared | apart beyond 5 % | right sign | wrong beyond 5 % |",
        "|---" * 5 + "|",
    ]
    for name, own in _classes(compared):
        clear = [one for one in own if abs(one.real) > BEYOND]
        wrong = sum(abs(one.modelled) > BEYOND and not _agrees(one) for one in clear)
        lines.append(f"| {name} | {len(own)} | {len(clear)} | {_right(clear)} | {wrong} of {len(clear)} |")
    return lines


def _classes(found: Sequence[Kind]) -> list[tuple[str, list[Kind]]]:
    """Those with members in the order of `CLASSES`, then all."""
    named = [(name, [one for one in found if one.kind == name]) for name in CLASSES]
    return [*((name, own) for name, own in named if own), ("all", list(found))]


def _agrees(one: Compared) -> bool:
    return one.real * one.modelled > 0


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Correlation of the ranks; values that tie share theirs."""
    return statistics.correlation(_ranks(a), _ranks(b))


def _ranks(values: Sequence[float]) -> list[int]:
    """Twice the mean rank of each."""
    ordered = sorted(values)
    return [bisect_left(ordered, value) + bisect_right(ordered, value) for value in values]


def _right(own: Sequence[Compared]) -> str:
    right = sum(map(_agrees, own))
    return f"{right} of {len(own)} ({right / len(own):.0%})" if own else ""


def _correlations(own: Sequence[Compared]) -> tuple[str, str]:
    real, modelled = [one.real for one in own], [one.modelled for one in own]
    if len(own) < LEAST:
        return "", ""
    return f"{statistics.correlation(real, modelled):.2f}", f"{spearman(real, modelled):.2f}"


def failures_table(rows: Sequence[Modelled]) -> list[str]:
    """What could not be modelled, by class, kind and reason."""
    found = Counter((row.kind, row.failure, _first_words(row.reason)) for row in rows if row.failure)
    if not found:
        return ["None of these failed."]
    lines = ["| class | failure | kernels | reason begins |", "|---|---|---|---|"]
    return lines + [f"| {kind} | {name} | {n} | {why} |" for (kind, name, why), n in sorted(found.items())]


def _first_words(reason: str) -> str:
    return " ".join(reason.replace("|", "/").split())[:100]


def section(path: Path = ROWS) -> list[str]:
    """The part of the page that tells of the rows."""
    rows = read_rows(path)
    replies = sum(row.id != row.parent for row in rows)
    failed = sum(bool(row.failure) for row in rows)
    sampled = sum((row.executed_share or 1) < 1 for row in rows)
    missing = ", ".join(name for name in CLASSES if all(row.kind != name for row in rows)) or "none"
    return [
        "## Kernels that nothing was fitted to",
        "",
        *_WHERE_FROM,
        "",
        f"Tried: {len(rows) - replies} parents and {replies} replies. Failed: {failed}. Timed from a sample of their",
        f"blocks: {sampled}, the others from all. Classes without a kernel here: {missing}.",
        "",
        *failures_table(rows),
        "",
        "Before the model was worked on and now:",
        "",
        *halves_table(times(rows), times(read_rows(BEFORE))),
        "",
        "Times of parents and replies of both halves:",
        "",
        *times_table(list(times(rows).values())),
        "",
        *_SIGNS,
        "",
        *signs_table(against_parents(rows)),
        "",
        "Each two replies to one parent, where guessing is right in half of those that are decided:",
        "",
        *siblings_table(among_siblings(rows)),
        "",
        *_WHY,
        "",
    ]
