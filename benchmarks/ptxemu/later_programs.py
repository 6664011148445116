"""The part of docs/emulator_calibration.md on the programs that were captured when the model had its form."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conformance_compare import COUNTERS, Comparison

BEFORE = Path(__file__).resolve().parents[2] / "docs" / "results" / "ptxemu_five_programs_before_h200.jsonl"
"""Each case by the model that had not seen it, when the capture came."""
_TEXT = """\
## Programs that the model had not seen

{cases} cases of {programs} programs were captured last, on an H200 again (driver {driver}), when all figures had their
values: no half has them. *Before* is the model of that day
([rows](results/ptxemu_five_programs_before_h200.jsonl)), nothing of which was fitted to them: what it is worth at
kernels of such kinds. *Now* is after what they showed was mended, so that these cases are held out no more. All outputs
have the same bytes on both. {unprofiled} cases have times alone: nobody has profiled them. Other GPUs of the
host were at work meanwhile; real times are less the {lag:.1f} us by which cases captured again took longer."""
_MENDED = """\
Mended, each with what it was read off:

- Atomics at the same 512 bytes of device memory take turns, not those at one line of 128 (`device_*`: at 8 lines they
  are as slow as 2 such spans allow, at 32 as 8). Cases that had no part in that bear it out: `histogram_global_atomics`
  was 4.1 times too fast, `atomic_int_few_words` 3.7, `atomic_max_few_words` 2.2, `atomics_tickets` 1.8; now 1.05, 1.05,
  1.25 and 1.01. Sums of floats, which take longer, wait for those at their own line.
- Atomics in shared memory take a pass for each lane in a bank, not at a word (`shared_value_one_bank`), and two where
  they compare and exchange (`shared_exchange_at_1`): exact on both.
- Sums of 64 bits and of floats in shared memory are loops that compare and exchange, whose rounds were not counted
  (`shared_long_at_4`, on which the share of other warps' rounds rests: one case).
- A block waits for bulk copies where shared memory holds few tiles: with one stage the model took half of the time
  (`tma_*_1_stage`, `wgmma_1_stage`). What a tile takes are the latencies and the bandwidth that the model had: no
  figure is new.
- A warp that prints takes 2.4 us, and all take turns: read off the two cases that print with one lane.

Not mended:

- A warp that prints with 32 lanes takes an H200 13 us: which lanes print is not counted.
- Copies to several blocks of a cluster (`tma_multicast_*`) are modelled in half of their time. Products in few or in
  many tiles (`wgmma_short_sums`, `wgmma_many_tiles`) are a quarter too fast, `wgmma_long_sums` is too slow.
- The slow path of 64-bit division is modelled a fifth to a third too fast."""


@dataclass(frozen=True)
class Times:
    """Of one program's cases: real and modelled microseconds."""

    real: Sequence[float]
    modelled: Sequence[float]

    @property
    def factors(self) -> list[float]:
        """By how much each is too long or too short."""
        return [max(a / b, b / a) for a, b in zip(self.real, self.modelled, strict=True)]


def section(since: Sequence[tuple[str, Comparison]], driver: str, lag: float) -> str:
    """Times of each program before and now, and counters of those that were profiled."""
    rows = [json.loads(line) for line in BEFORE.read_text(encoding="utf-8").splitlines()]
    before, after = (
        _grouped([(row["program"], row["real_us"], row["modelled_us"]) for row in rows]),
        _grouped([(name, one.real_us, one.emulated_us) for name, one in since]),
    )
    if {one.case for _, one in since} != {row["case"] for row in rows}:
        raise SystemExit(f"{BEFORE} is of other cases than the capture")
    profiled = [one for _, one in since if one.real.kernels]
    head = _TEXT.format(
        cases=len(since), programs=len(after), driver=driver, unprofiled=len(since) - len(profiled), lag=lag
    )
    counters = {row["case"]: row["counters"] for row in rows}
    return "\n\n".join(
        [
            head,
            "\n".join(_time_rows(before, after)),
            "Counters of the profiled cases: relative error, median and worst, before and now.",
            "\n".join(_counter_rows(profiled, counters)),
            _MENDED,
        ]
    )


def _grouped(rows: Sequence[tuple[str, float, float]]) -> dict[str, Times]:
    names = sorted({name for name, _, _ in rows})
    return {
        name: Times([real for of, real, _ in rows if of == name], [modelled for of, _, modelled in rows if of == name])
        for name in names
    }


def _time_rows(before: Mapping[str, Times], after: Mapping[str, Times]) -> list[str]:
    lines = [
        "| program | cases | median factor, before | within 1.2 | worst | median factor, now | within 1.2 | worst |",
        "|" + "---|" * 8,
    ]
    every = [_joined(before), _joined(after)]
    for name, first, now in (*((name, before[name], after[name]) for name in before), ("all", *every)):
        cells = [cell for one in (first, now) for cell in _cells(one)]
        lines.append(f"| {name} | {len(first.real)} | {' | '.join(cells)} |")
    return lines


def _joined(parts: Mapping[str, Times]) -> Times:
    return Times(
        [us for one in parts.values() for us in one.real], [us for one in parts.values() for us in one.modelled]
    )


def _cells(one: Times) -> list[str]:
    near = sum(factor <= 1.2 for factor in one.factors) / len(one.factors)
    return [f"{math.exp(statistics.median(map(math.log, one.factors))):.2f}", f"{near:.0%}", f"{max(one.factors):.2f}"]


def _counter_rows(profiled: Sequence[Comparison], before: Mapping[str, Mapping[str, float]]) -> list[str]:
    lines = ["| counter | cases | before | worst | now | worst |", "|" + "---|" * 6]
    for counter in COUNTERS:
        now = {one.case: abs(error) for one in profiled if (error := one.error(counter)) is not None}
        then = [abs(before[case][counter.metric.value]) for case in now if counter.metric.value in before[case]]
        if now and then:
            cells = [f"{100 * value:.1f} %" for part in (then, list(now.values())) for value in
                     (statistics.median(part), max(part))]  # fmt: skip
            lines.append(f"| `{counter.metric}` | {len(now)} | {' | '.join(cells)} |")
    return lines
