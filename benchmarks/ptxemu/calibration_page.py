"""The text of docs/emulator_calibration.md, from comparisons of the emulated device with a real GPU."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from conformance_compare import COUNTERS, POINTS, Comparison, Counter, limiters
from conformance_suite import Capture, CapturedCase, Half, LaterSession, Pair, lag_us
from later_programs import section
from time_routes import routes, worst

from kernelblaster.devices.metrics import Metric

APART = 1.2
"""Measured times of a pair must differ by this factor for its order to count."""
LARGE_MISS = 0.25
"""Relative error of a counter that is listed as a miss."""
SHORT_NAMES = {
    Metric.INSTRUCTIONS: "warp instructions",
    Metric.GLOBAL_LOAD_REQUESTS: "global load requests",
    Metric.GLOBAL_LOAD_SECTORS: "global load sectors",
    Metric.GLOBAL_STORE_REQUESTS: "global store requests",
    Metric.GLOBAL_STORE_SECTORS: "global store sectors",
    Metric.SHARED_WAVEFRONTS: "shared wavefronts",
    Metric.L2_READ_SECTORS: "L2 read sectors",
    Metric.L2_WRITE_SECTORS: "L2 write sectors",
    Metric.DRAM_READ: "DRAM bytes read",
    Metric.DRAM_WRITE: "DRAM bytes written",
}
WHY = {
    Metric.INSTRUCTIONS: "Executions of machine code follow from those of the PTX lines that it stems from. Where "
    "threads of a warp part, ptxas turns branches into predicates and copies code, lines say little about that.",
    Metric.GLOBAL_LOAD_REQUESTS: "`wmma` loads are one PTX instruction and several machine instructions; loads that "
    "PTX predicates lane by lane are branched around or merged by ptxas.",
    Metric.GLOBAL_LOAD_SECTORS: "`cp.async` and `wmma` loads of one PTX instruction are split by ptxas.",
    Metric.GLOBAL_STORE_REQUESTS: "`wmma` stores are split by ptxas.",
    Metric.GLOBAL_STORE_SECTORS: "`wmma` stores are split by ptxas.",
    Metric.SHARED_WAVEFRONTS: "Loads of 16 bytes a lane take more passes than the addresses ask for when lanes share "
    "words, in a way that we do not know; asynchronous copies have passes of their own.",
    Metric.L2_READ_SECTORS: "The emulator runs the warps of an SM one after the other: what they push out of each "
    "other's L1 is estimated, and what they share while they run side by side is lost when it does not fit. What "
    "several SMs ask for at the same time reaches an H200's L2 as fewer requests: the model merges reads "
    "of the first wave, whether or not they meet.",
    Metric.L2_WRITE_SECTORS: "Writes to one sector by neighbouring warps merge before they reach the L2 in some "
    "kernels, and sectors written in part are written again when they are filled up.",
    Metric.DRAM_READ: "Re-use at long distance depends on how blocks run together, which is not emulated; a sector "
    "written in part is read when it leaves the L2.",
    Metric.DRAM_WRITE: "How much of what was written leaves the L2 before the kernel ends depends on the order of "
    "all accesses; here only on how much is touched.",
}
"""Why the counter is off where it is, found by looking at the cases with the largest errors."""


@dataclass(frozen=True)
class Judged:
    """A comparison with its half, and the bottleneck that the rules see in either profile.

    `later` cases were captured in the second session, when the model had its form of before.
    """

    comparison: Comparison
    half: Half
    later: bool
    real_state: str
    emulated_state: str


def page(
    cases: Sequence[Judged], pairs: Sequence[Pair], capture: Capture, since: Sequence[tuple[str, Comparison]]
) -> str:
    """The whole page; `since` are programs with their cases that no half has."""
    parts = (
        _head(cases, capture.device),
        _sessions(cases, capture),
        _counters(cases),
        _points(cases),
        _outputs([one.comparison for one in cases]),
        _times(cases, pairs),
        worst([one.comparison for one in cases if one.half is Half.FIT]),
        routes(),
        _states(cases),
        section(since, capture.later[-1].device["driver_version"], lag_us(capture, capture.later[-1])),
        _misses(cases),
        _table(cases, [one for _, one in since]),
    )
    return "\n\n".join(parts) + "\n"


def _head(cases: Sequence[Judged], device: Mapping[str, str]) -> str:
    sizes = {half: sum(1 for one in cases if one.half is half) for half in Half}
    return f"""\
# The emulated device beside an H200

Made by `python benchmarks/ptxemu/emulator_calibration.py`; not edited by hand. {len(cases)} cases of the programs in
`tests/conformance/kernels` ran on an {device["name"]} (driver {device["driver_version"]}, nvcc {device["nvcc"]}, \
Nsight Compute {device["ncu"].removeprefix("Version ").split(" ")[0]}, `-O3 -arch=sm_90a`, clocks not locked) and on \
the emulated
device standing for it. "Real" is what Nsight Compute counted, or the median event time of 30 calls with a cold L2,
which is how the product times. Only the H200 was measured: the figures of other GPUs come from data sheets.

What is fitted (seven figures of the timing model) was fitted to {sizes[Half.FIT]} cases by
`python benchmarks/ptxemu/emulator_fit.py`. Other figures were published, or read off what Nsight Compute counts of
these cases (`benchmarks/ptxemu/timing_fit.py` says which). All are judged by the other {sizes[Half.JUDGE]}. \
Cases that pairs
connect stay together; an even CRC-32 of the alphabetically first name of such a group means the fit. Three rules were
read off all cases before the halves were drawn: what passes through both halves of the L2, the shared-memory passes of
starting warps, and that atomics to one 128-byte line take turns (since the programs captured last: to the same 512
bytes). The encoding of machine instructions
was read off the code of all programs, how to count them off the fitted half. Between versions of the timing model the
totals of the judging half were looked at (seventeen times since machine code is read), its cases were not but for two.
That sums of floats wait for those at their own line was kept because `atomic_float_64_lines` came out 1.8 times too
slow when integers were made to wait for 512 bytes. That blocks which draw work from a counter are under way together
was mended because `uneven_rows_queue` was modelled 850 times too slow (Spearman 0.874 before, 0.878 after).

Fits of an earlier version that had not seen the program of a case (`emulator_fit.py --cross-validate`) gave, within the
fitted half, a Spearman correlation of 0.984 and a median |log factor| of 0.064."""


def _sessions(cases: Sequence[Judged], capture: Capture) -> str:
    """What the second session added, and how far it is from the first."""
    later = capture.later[0]
    lag = lag_us(capture, later)
    first = {one.run.case: one for one in capture.cases}
    times = [
        abs(math.log((one.run.times_us["cold"].median - lag) / first[one.run.case].run.times_us["cold"].median))
        for one in later.again
    ]
    added = sum(1 for one in cases if one.later)
    return f"""\
## Two sessions

{len(cases) - added} cases were captured first, {added} later, on an H200 again (driver \
{later.device["driver_version"]}; another
GPU of the host was at work meanwhile), with {len(later.again)} of the first ones once more. These took {lag:.1f} us \
longer in the
median, whatever their time: what lies between the events beside the kernels. The times of the later session below are
less that. What is left is how well any model can do: two sessions differ by \
{_percent(math.expm1(statistics.median(times)))} in the median, by
{_percent(math.expm1(max(times)))} at most, durations by Nsight Compute by \
{_percent(math.expm1(statistics.median(_drift(first, later))))}.

The later cases were written to show what the model lacked, and ordinary kernels beside them. The model of before had
not seen them: on the {sum(1 for one in cases if one.later and one.half is Half.JUDGE)} of them that judge it had a \
Spearman correlation of 0.904, a median of 9.7 %, and 84.5 % of the
bottlenecks; on the first ones 0.877, 10.2 % and 80.0 %."""


def _drift(first: Mapping[str, CapturedCase], later: LaterSession) -> list[float]:
    """|log ratio| of the kernels' durations of the cases that were captured twice."""
    durations = [
        [sum(kernel.metrics[Metric.DURATION] for kernel in one.kernels) for one in (again, first[again.run.case])]
        for again in later.again
    ]
    return [abs(math.log(a / b)) for a, b in durations]


def _counters(cases: Sequence[Judged]) -> str:
    rows = []
    for counter in COUNTERS:
        errors = {half: _errors(counter, cases, half) for half in Half}
        both = [*errors[Half.FIT], *errors[Half.JUDGE]]
        median = statistics.median(both)
        within = sum(1 for error in both if error <= counter.target) / len(both)
        rows.append(
            [
                f"{SHORT_NAMES[counter.metric]} (`{counter.metric}`)",
                str(len(both)),
                _percent(median),
                *(_percent(statistics.median(errors[half])) for half in Half),
                _percent(_quantile(both, 0.9)),
                _percent(counter.target),
                f"{within:.0%}",
                "yes" if statistics.median(errors[Half.JUDGE]) <= counter.target else "**no**",
            ]
        )
    names = ["counter", "cases", "median error", "fitted half", "judging half", "90th percentile", "target"]
    text = """\
## Counters

Relative error |emulated - real| / real of the whole call. DRAM bytes below 2 MB and L2 sectors below 10,000 count as
that much. Requests and sectors follow from the PTX and the addresses, instructions and wavefronts also from the
machine code; nothing of them is fitted.
A target is met when the median of the judging half meets it."""
    return f"{text}\n\n{_rows([*names, 'cases within', 'met'], rows)}"


def _points(cases: Sequence[Judged]) -> str:
    rows = []
    for metric in POINTS:
        errors = [abs(found) for one in cases if (found := one.comparison.points(metric)) is not None]
        rows.append(
            [f"`{metric}`", str(len(errors)), f"{statistics.median(errors):.1f}", f"{_quantile(errors, 0.9):.1f}"]
        )
    same = [
        limiters(real.metrics) == limiters(emulated.metrics)
        for one in cases
        for real, emulated in zip(one.comparison.real.kernels, one.comparison.emulated.kernels, strict=True)
    ]
    text = f"""\
## Percentages

Difference in percentage points. The limiter of occupancy is the same for {sum(same)} of {len(same)} kernel launches. \
Throughputs and
pipes rest on the modelled time."""
    return f"{text}\n\n{_rows(['metric', 'cases', 'median difference', '90th percentile'], rows)}"


def _outputs(found: Sequence[Comparison]) -> str:
    outputs, same = (sum(values) for values in zip(*((one.outputs, one.same_outputs) for one in found), strict=True))
    wrong = [(one.case, why) for one in found for why in one.wrong]
    text = f"""\
## Outputs

{same} of {outputs} outputs have the same bytes as the H200's. {outputs - same - len(wrong)} differ within the bound \
that their case states (approximate
functions, order of atomics, sums of tensor cores); {len(wrong)} do not agree."""
    why = "`pipe_exponential` takes differences until only rounding is left: the bound that it states is too strict."
    return f"{text}\n\n{_rows(['case', 'disagreement'], wrong)}\n\n{why}" if wrong else text


def _times(cases: Sequence[Judged], pairs: Sequence[Pair]) -> str:
    rows, wrong = [], []
    for half in Half:
        for name, chosen in _parts([one for one in cases if one.half is half]):
            row, misordered = _times_of({one.comparison.case: one.comparison for one in chosen}, pairs)
            rows.append([half.value, name, *row])
            if name == _ALL:
                wrong += [[half.value, *one] for one in misordered]
    names = ["half", "session", "cases", "Spearman", "pairs in the right order", "median factor off", "90th percentile"]
    text = """\
## Modelled times

Time of a call with a cold L2. Targets on the judging half: Spearman 0.9; the right order for 90 % of the
(before, after) pairs of `tests/conformance/pairs.toml` whose measured times differ by 20 % or more. A factor off of
20 % means that the model says 1.2 times too much or too little. Most cases take between 15 and 60 us, so that such
errors change ranks. Modelled times compare with each other only. "First" and "later" are the sessions; pairs lie within
one."""
    text = f"{text}\n\n{_rows(names, rows)}"
    columns = ["half", "before", "after", "before, real us", "modelled us", "after, real us", "modelled us"]
    return f"{text}\n\nPairs in the wrong order:\n\n{_rows(columns, wrong)}" if wrong else text


_ALL = "both"


def _parts(cases: Sequence[Judged]) -> list[tuple[str, list[Judged]]]:
    """Cases of the first session, of the later one, and all."""
    parts = [("first", [one for one in cases if not one.later]), ("later", [one for one in cases if one.later])]
    return [*parts, (_ALL, list(cases))]


def _times_of(chosen: Mapping[str, Comparison], pairs: Sequence[Pair]) -> tuple[list[str], list[list[str]]]:
    """A row of the table of times, and the pairs in the wrong order."""
    real, emulated = ([getattr(one, name) for one in chosen.values()] for name in ("real_us", "emulated_us"))
    apart = [pair for pair in pairs if pair.parent in chosen and _factor(chosen, pair, "real_us") is not None]
    misordered = [pair for pair in apart if not _ordered(chosen, pair)]
    logs = [abs(math.log(b / a)) for a, b in zip(real, emulated, strict=True)]
    right = len(apart) - len(misordered)
    row = [
        str(len(chosen)),
        f"{spearman(real, emulated):.3f}",
        f"{right} of {len(apart)} ({right / len(apart):.0%})",
        _percent(math.expm1(statistics.median(logs))),
        _percent(math.expm1(_quantile(logs, 0.9))),
    ]
    named = [
        [pair.parent, pair.child, *_pair_times(chosen[pair.parent]), *_pair_times(chosen[pair.child])]
        for pair in misordered
    ]
    return row, named


def _pair_times(one: Comparison) -> tuple[str, str]:
    return f"{one.real_us:.1f}", f"{one.emulated_us:.1f}"


def _factor(chosen: Mapping[str, Comparison], pair: Pair, of: str) -> float | None:
    """Time before / after; None when the two are too near each other."""
    before, after = getattr(chosen[pair.parent], of), getattr(chosen[pair.child], of)
    return before / after if max(before, after) / min(before, after) >= APART else None


def _ordered(chosen: Mapping[str, Comparison], pair: Pair) -> bool:
    before, after = chosen[pair.parent], chosen[pair.child]
    return (before.real_us > after.real_us) == (before.emulated_us > after.emulated_us)


def spearman(a: Sequence[float], b: Sequence[float]) -> float:
    """Correlation of the ranks; times do not tie."""
    return statistics.correlation(_ranks(a), _ranks(b))


def _ranks(values: Sequence[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    for rank, index in enumerate(order):
        ranks[index] = float(rank)
    return ranks


def _states(cases: Sequence[Judged]) -> str:
    lines = []
    for half in Half:
        shares = []
        for name, chosen in _parts([one for one in cases if one.half is half]):
            same = sum(1 for one in chosen if one.real_state == one.emulated_state)
            shares.append(f"{name} {same} of {len(chosen)} ({same / len(chosen):.1%})")
        lines.append(f"- {half.value}: {', '.join(shares)}")
    rows = [
        [one.half.value, one.comparison.case, one.real_state, one.emulated_state]
        for one in cases
        if one.real_state != one.emulated_state
    ]
    text = """\
## Bottlenecks

Cases for which the rules of the knowledge base see the same state in the emulated profile as in that of Nsight
Compute. The target is 85 % of the judging half. "First" and "later" are the sessions."""
    columns = ["half", "case", "from Nsight Compute", "from the emulated device"]
    return f"{text}\n\n" + "\n".join(lines) + f"\n\nDifferent states:\n\n{_rows(columns, rows)}"


def _misses(cases: Sequence[Judged]) -> str:
    parts = [f"## Misses\n\nCounters that are off by more than {LARGE_MISS:.0%} in a case, and why."]
    for counter in COUNTERS:
        found = [(one.comparison.case, one.comparison.error(counter)) for one in cases]
        far = sorted(((error, case) for case, error in found if error is not None and abs(error) > LARGE_MISS))
        if far:
            listed = ", ".join(f"`{case}` {error:+.0%}" for error, case in far)
            parts.append(f"**{SHORT_NAMES[counter.metric]}**, {len(far)} cases. {WHY[counter.metric]}\n\n{listed}")
    return "\n\n".join(parts)


def _table(cases: Sequence[Judged], since: Sequence[Comparison]) -> str:
    rows = []
    marked = [(one.comparison, "" if one.half is Half.FIT else " *") for one in cases]
    for found, mark in (*marked, *((one, " +") for one in since)):
        errors = [found.error(counter) for counter in COUNTERS]
        rows.append(
            [
                found.case + mark,
                *("" if error is None else f"{100 * error:+.0f}" for error in errors),
                f"{found.real_us:.1f}",
                f"{found.emulated_us:.1f}",
            ]
        )
    names = [SHORT_NAMES[counter.metric] for counter in COUNTERS]
    text = """\
## All cases

Errors in percent; empty where there is nothing to count. A star marks the judging half, a cross the programs that
were captured last, which no half has."""
    return f"{text}\n\n{_rows(['case', *names, 'real us', 'modelled us'], rows)}"


def _errors(counter: Counter, cases: Iterable[Judged], half: Half) -> list[float]:
    found = (one.comparison.error(counter) for one in cases if one.half is half)
    return [abs(error) for error in found if error is not None]


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _rows(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    return "\n".join([*head, *("| " + " | ".join(row) + " |" for row in rows)])
