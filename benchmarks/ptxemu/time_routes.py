"""The part of docs/emulator_calibration.md on what was tried to bring modelled times nearer, and on what is left."""

from __future__ import annotations

import math
from collections.abc import Sequence

from conformance_compare import Comparison

WORST = 10
_BEFORE = """\
## Routes to nearer times

Each of the first table was fitted anew to the fitted half, as `emulator_fit.py` does; of the second, the exponents of
the overlap and the figure that the row names, over a grid. The loss is that of `timing_fit.py`, in the second table of
times alone. What lowers it by more than its last digits is kept. Totals of the judging half were seen for the first
three rows and for what was kept."""
_FITS = (
    (
        "the model of before, fitted anew",
        "0.0394",
        "0.986",
        "1.062",
        "",
    ),
    (
        (
            "each load instruction has hits of its own, and a warp waits for the last of the loads it awaits "
            "together: the mean of the maximum of independent latencies, in the place of the mean latency"
        ),
        "0.0331",
        "0.988",
        "1.055",
        "yes",
    ),
    (
        "the same, misses of neighbours taken to fall on different loads",
        "0.0339",
        "0.988",
        "1.055",
        "no",
    ),
    (
        "and DRAM brings sectors in pairs: half of the misses of a walk along lines find theirs in the L2",
        "0.0322",
        "0.988",
        "1.055",
        "yes",
    ),
    (
        "or what a block asks the L2 for again is never on its way from DRAM",
        "0.0315",
        "0.988",
        "1.058",
        "yes",
    ),
    (
        "both",
        "0.0307",
        "0.987",
        "1.055",
        "yes",
    ),
    (
        "from the second row: more overlap the more often a warp waits for memory, not only blocks are replaced",
        "0.0394",
        "0.986",
        "1.070",
        "no",
    ),
    (
        "the same, by the product of both",
        "0.0385",
        "0.987",
        "1.070",
        "no",
    ),
    (
        "the same, by the root of the waits",
        "0.0387",
        "0.986",
        "1.065",
        "no",
    ),
)
"""Route, loss, Spearman correlation and median factor of the fitted half, whether it is kept."""
_OVERLAPS = (
    (
        "paths overlap the better the more often blocks are replaced (as it is)",
        "0.0291",
        "0.988",
        "yes",
    ),
    (
        "worse where latency is the longest, better where memory is (exponents by their shares)",
        "0.0358",
        "0.984",
        "no",
    ),
    (
        "loads take longer the busier memory is: latency times 1 + a times its utilisation",
        "0.0414",
        "0.983",
        "no",
    ),
    (
        "issue-limited or latency-limited, whichever is longer, then memory (intervals)",
        "0.0400",
        "0.982",
        "no",
    ),
    (
        "waves: whole rounds of blocks in the place of their mean number; half of the difference",
        "0.0293; 0.0290",
        "",
        "no",
    ),
    (
        "a ramp of 1 us until memory is at its bandwidth",
        "0.0354",
        "",
        "no",
    ),
    (
        "0.5 us more for each launch; 0.5 us less",
        "0.0325; 0.0299",
        "",
        "no",
    ),
)
"""The same of ways to let paths overlap, without the factor."""
_AFTER = """\
**Products by warpgroups** are in no fitted case. An SM's shared memory moves 128 bytes a clock, for operands of the
tensor cores and for tiles that arrive: with tiles of 128 columns that takes longer than the products. It is counted
now (`operand_clocks` in `traffic.py`). In the development half of the [held-out
kernels](emulator_scores.md#kernels-that-nothing-was-fitted-to) the mean |log factor| of 19 tensor-core products fell
from 0.252 to 0.244 with all that was kept: little. What is left there is partly not the kernel's: the events of
level2/086 are 64.2 us apart, Nsight Compute has 53.5 us for the same kernel, and 51.6 us are modelled for it.

**Barriers over the grid** were not mended. By the model's latencies a barrier costs its atomic and a look, some 0.6
us; `mlp_fused` of the development half, which has such barriers, took 127 us on the H200 and 108 are modelled. What is
missing is then not the barrier but the wait for the slowest block, which counts of a whole launch do not tell."""
_MECHANISMS = {
    "bodies_global": "warps in step read what the L1 is still bringing: an H200 asks the L2 three times as often",
    "store_one_word_a_line": "lines leave a full L2 one by one: 11 us beyond Nsight Compute's time with a clean L2",
    "store_every_second_word": "lines leave a full L2 one by one: 10 us beyond Nsight Compute's time with a clean L2",
    "chase_l2_eight_warps": "reads of one table by all SMs are taken to be on their way from DRAM too often",
    "attention_causal_warp": "blocks of unequal length: the longest warp is known, not which SM has it",
    "log_softmax_three_passes": "rows read again fall out of the L1 more often than is counted",
    "exchange_through_memory": "what a block has written and reads back counts as read from DRAM",
    "table_in_global_memory": "lanes gather from a small table: each request counts as a miss when one line is missing",
    "column_sum_thread": "24 blocks of 4 warps: latency under way to one SM is longer than of a lone load",
    "batched_matvec_thread": "two warps an SM walk along lines: their misses come together more often than by chance",
    "layernorm_row_thread": "two warps an SM walk along lines: their misses come together more often than by chance",
    "softmax_row_thread": "two warps an SM walk along lines: their misses come together more often than by chance",
    "gather_from_1_mb": "lines that many SMs gather from at once count as many lookups in the L2",
}
"""Of fitted cases: what their counters and the two times on the H200 point to; none was isolated by a capture."""


def routes() -> str:
    """What was tried."""
    fits = _table(("route", "loss", "Spearman, fitted half", "median factor", "kept"), _FITS)
    overlaps = _table(('route, from the row "both" on', "loss of times", "Spearman, fitted half", "kept"), _OVERLAPS)
    return "\n\n".join([_BEFORE, fits, overlaps, _AFTER])


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in (names, ["---"] * len(names), *rows))


def worst(fitted: Sequence[Comparison]) -> str:
    """The fitted cases whose times are furthest off."""
    ordered = sorted(fitted, key=lambda one: -abs(math.log(one.emulated_us / one.real_us)))
    rows = [
        f"| {one.case} | {one.real_us:.1f} | {one.emulated_us:.1f} | {one.emulated_us / one.real_us:.2f} "
        f"| {_MECHANISMS.get(one.case, '')} |"
        for one in ordered[:WORST]
    ]
    head = ["| case | real us | modelled us | modelled / real | likely mechanism |", "|---|---|---|---|---|"]
    return "\n".join([f"The {WORST} fitted cases that are furthest off:", "", *head, *rows])
