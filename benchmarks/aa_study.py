"""A/A study: every kernel against itself, each comparison in two fresh processes, as often as time allows.

    python benchmarks/aa_study.py --minutes 8.5 --rounds 10 --out docs
    python benchmarks/aa_study.py --render docs/aa_study.json

Writes `aa_study.json` and `aa_study.md` into the folder. Each comparison is a line of `aa_study.jsonl` there, so a
study that was cut off goes on where it stopped. Round after round, every kernel of `CASES` is compared once with itself
by the stopwatch that judges candidates: same stop rule, same threshold. What it calls `faster` or `slower` is false.
At size small sampling ends after `SMALL_SECONDS`, so that 200 comparisons fit into one session on a machine.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel

from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Build
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.failures import RunFailure
from kernelblaster.evaluation.correctness.input_store import InputSet
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.processes.timed_pair import TimedPair
from kernelblaster.evaluation.results import BatchEvidence, Comparison, Conditions, Decision
from kernelblaster.evaluation.timing.batch_clock import MOST_SECONDS, BatchClock, slot_bytes
from kernelblaster.evaluation.timing.batch_rule import SHARE, SLACK_US, Allowance
from kernelblaster.evaluation.timing.stopwatch import ImpossibleTime, Stopwatch
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.runs.evaluations import find_problem, open_evaluator

FINALS = Path(__file__).resolve().parents[1] / "docs" / "results" / "h200_kernels"
LONG_US = 100.0
"""Kernels above this are held to `TARGET_HALF_WIDTH`."""
TARGET_HALF_WIDTH = 0.005
TARGET_FALSE = 0.01
SMALL_SECONDS = 1.0
"""Wall time of a comparison at size small; elsewhere it is the product's."""

START, FINAL = "start", "final"
CASES: tuple[tuple[str, str, StandardWorkload], ...] = (
    *((f"level1/{n}", START, StandardWorkload.SMALL) for n in (19, 23, 36, 40, 42, 47, 95)),
    *((f"level2/{n}", START, StandardWorkload.SMALL) for n in (59, 99)),
    *((f"level1/{n}", START, StandardWorkload.MEDIUM) for n in (12, 42, 95)),
    ("level3/43", START, StandardWorkload.MEDIUM),
    *((f"level1/{n}", FINAL, StandardWorkload.MEDIUM) for n in (4, 12, 23, 40, 47, 89, 95)),
    *((f"level2/{n}", FINAL, StandardWorkload.MEDIUM) for n in (12, 99)),
)
"""Problem, kernel (its start, or the final kernel of the published search) and size: from a few to some thousand us."""
EARLIER = "## What earlier studies changed"
"""Begins the part of the page that is written by hand."""


class Row(BaseModel):
    """One comparison of a kernel with itself. Without a decision it failed, and `failure` says why."""

    case: str
    round: int
    decision: Decision | None = None
    speedup: float | None = None
    low: float | None = None
    high: float | None = None
    median_us: float | None = None
    samples: int | None = None
    conditions: Conditions | None = None
    seconds: float
    """Wall time of the sampling, or until the failure."""
    failure: str = ""
    batches: BatchEvidence | None = None
    batch_seconds: float | None = None
    """Wall time of the batches that confirmed the comparison."""
    credited: float | None = None
    """The speed-up that batches would leave of it, had somebody claimed it; None in studies of earlier versions."""

    @property
    def half_width(self) -> float:
        """Of the ratio's interval, as a share of the ratio."""
        return (self.high - self.low) / (2 * self.speedup) if self.speedup else math.inf


class Study(BaseModel):
    """All comparisons of one device."""

    format: str = "kernelblaster-aa-study-1"
    device: DeviceFacts
    precision: Precision
    threshold: float
    max_seconds: float
    rows: list[Row]


@dataclass(frozen=True)
class Case:
    """A kernel that was built, and the judge of the size at which it meets itself."""

    name: str
    problem: Problem
    judge: Evaluator
    build: Build


def case_name(problem: Problem, kernel: str, size: StandardWorkload) -> str:
    """`level1/023 Softmax, final, medium`"""
    return f"{problem.id} {problem.name}, {kernel}, {size}"


def source_of(problem: Problem, kernel: str) -> str:
    """Text of a kernel."""
    if kernel == START:
        return problem.init_path.read_text(encoding="utf-8")
    name = f"level{problem.id.level}_{problem.slug.rpartition('/')[2]}.cu"
    return (FINALS / name).read_text(encoding="utf-8")


def build_cases(
    evaluator: Evaluator, chosen: Sequence[tuple[str, str, StandardWorkload]], config: RunConfig
) -> list[Case]:
    """Compile all kernels, many at once."""
    problems = [find_problem(name, config) for name, _, _ in chosen]
    judges = {
        size: Evaluator(evaluator.device, evaluator.inputs, evaluator.config, size, precision=config.precision)
        for size in dict.fromkeys(size for _, _, size in chosen)
    }
    drivers = {problem: evaluator.device.prepare(problem, config.precision) for problem in dict.fromkeys(problems)}

    def build(problem: Problem, kernel: str, size: StandardWorkload) -> Case:
        made = evaluator.device.build(source_of(problem, kernel), drivers[problem])
        return Case(case_name(problem, kernel, size), problem, judges[size], made)

    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(build, p, kernel, size) for p, (_, kernel, size) in zip(problems, chosen, strict=True)]
        return [job.result() for job in jobs]


def compare(case: Case, round: int) -> Row:
    """One comparison of a case with itself."""
    judge = case.judge
    device, inputs = judge.device, judge.inputs
    most = SMALL_SECONDS if judge.workload is StandardWorkload.SMALL else judge.config.max_seconds_timing
    watch = Stopwatch(device.facts, judge.floor_us(case.problem), most, reading=device.reading)
    with judge.holding(), inputs.use(judge.plan(case.problem).timed) as drawn:
        began = time.monotonic()
        with TimedPair(device, inputs.directory, drawn, judge.config.timeout_s) as pair:
            pair.start(case.build, case.build)
            try:
                candidate, baseline = pair.candidate(), pair.baseline()
                began = time.monotonic()
                found = watch.compare(candidate, baseline)
                compared = time.monotonic()
                credited = confirmed(found, pair, judge)
            except (ImpossibleTime, RunFailure) as failure:
                return Row(case=case.name, round=round, seconds=time.monotonic() - began, failure=failure.reason)
            return Row(
                case=case.name,
                round=round,
                decision=found.decision,
                speedup=found.speedup,
                low=found.low,
                high=found.high,
                median_us=found.candidate.median_us,
                samples=found.candidate.samples,
                conditions=found.candidate.conditions,
                seconds=compared - began,
                batches=credited.batches,
                batch_seconds=time.monotonic() - compared if credited.batches else None,
                credited=credited.speedup,
            )


def confirmed(found: Comparison, pair: TimedPair[InputSet], judge: Evaluator) -> Comparison:
    """The comparison with the evidence of batches, though nobody claims anything. Raises as `BatchClock.confirm`."""
    clock = BatchClock(judge.facts, slot_bytes(pair.drawn.specs), checked=(), look=lambda perturbation: None)
    batches = pair.batches() if clock.has_room else None
    return clock.confirm(found, *batches, Allowance.NOISE) if batches is not None else found


def run_study(cases: Sequence[Case], journal: Path, rounds: int, deadline: float) -> list[Row]:
    """Go through the rounds until they are over or time is; comparisons in the journal are not made again."""
    rows = [Row.model_validate_json(line) for line in journal.read_text().splitlines()] if journal.exists() else []
    done = {(row.case, row.round) for row in rows}
    with journal.open("a", encoding="utf-8") as file:
        for round in range(rounds):
            for case in cases:
                if (case.name, round) in done:
                    continue
                if time.monotonic() > deadline:
                    return rows
                row = compare(case, round)
                rows.append(row)
                file.write(row.model_dump_json() + "\n")
                file.flush()
                told = row.failure or f"{row.decision} {row.speedup:.4f} of {row.median_us:.1f} us"
                print(f"{len(rows)} round {round} {case.name}: {told}, {row.seconds:.1f} s", file=sys.stderr)
    return rows


def upper_bound(false: int, total: int) -> float:
    """Largest rate under which at most `false` of `total` would still happen in 5 % of studies (Clopper-Pearson)."""
    low, high = false / total, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        seen = sum(math.comb(total, k) * middle**k * (1 - middle) ** (total - k) for k in range(false + 1))
        low, high = (middle, high) if seen > 0.05 else (low, middle)
    return high


def quantile(values: Sequence[float], share: float) -> float:
    """The value below which `share` of the sorted values lie."""
    return sorted(values)[min(int(share * len(values)), len(values) - 1)]


def percent(value: float) -> str:
    """`0.31 %`"""
    return f"{100 * value:.2f} %"


def render(study: Study) -> str:
    """The page."""
    compared = [row for row in study.rows if row.decision is not None]
    refused = [row for row in study.rows if row.decision is None]
    wrong = [row for row in compared if row.decision is not Decision.INCONCLUSIVE]
    long = [row for row in compared if row.median_us > LONG_US]
    kernels = dict.fromkeys(row.case for row in study.rows)
    d = study.device
    lines = [
        "# A/A study",
        "",
        f"`python benchmarks/aa_study.py` on one {d.name} ({d.arch}, driver {d.driver_version}, "
        f"CUDA {d.cuda_version}), {study.precision}. {len(compared)} comparisons of a kernel with itself, "
        f"{len(kernels)} kernels, each "
        f"comparison in two fresh processes: A B B A and B A A B in turns with a cold L2, values and addresses new in "
        f"every call, until the "
        f"half-width of the ratio's 95 % interval is below {percent(TARGET_HALF_WIDTH)} or {study.max_seconds:g} s "
        f"({SMALL_SECONDS:g} s at size small) are over. Threshold {percent(study.threshold)}.",
        "",
        "| | found | target |",
        "|---|---|---|",
    ]
    if compared:
        rate, bound = len(wrong) / len(compared), upper_bound(len(wrong), len(compared))
        lines.append(
            f"| false decisions (faster or slower) | {len(wrong)} of {len(compared)}: {percent(rate)} "
            f"(95 % upper bound {percent(bound)}) | at most {percent(TARGET_FALSE)} |"
        )
    lines.append(f"| comparisons refused or failed | {len(refused)} | 0 |")
    if long:
        widths = [row.half_width for row in long]
        narrow = sum(width <= TARGET_HALF_WIDTH for width in widths)
        lines.append(
            f"| half-width of the interval, kernels over {LONG_US:g} us | median {percent(statistics.median(widths))}, "
            f"95th percentile {percent(quantile(widths, 0.95))}, largest {percent(max(widths))}; {narrow} of "
            f"{len(widths)} reach the target | at most {percent(TARGET_HALF_WIDTH)} |"
        )
    lines += _batches(compared)
    lines += _clocks(compared)
    lines += ["", *_table(study.rows), ""]
    lines += [f"- {row.case}, round {row.round}: {_told(row)}" for row in (*wrong, *refused)]
    return "\n".join(lines).rstrip() + "\n"


def _told(row: Row) -> str:
    if row.decision is None:
        return row.failure
    return f"{row.decision}, {row.speedup:.4f} [{row.low:.4f}, {row.high:.4f}]"


def _batches(rows: Sequence[Row]) -> list[str]:
    """How batches, timed by the judge alone, agree with the events."""
    known = [row for row in rows if row.batches is not None and row.median_us is not None]
    if not known:
        return []
    hidden = [row for row in known if row.batches.launches_hidden]
    lines = [f"| batches whose launches were hidden | {len(hidden)} of {len(known)} | all |"]
    if hidden:
        shares = [row.batches.candidate_us / row.median_us for row in hidden]
        seconds = [row.batch_seconds for row in hidden]
        lines += [
            f"| time of a call in a batch over that by events | median {statistics.median(shares):.3f}, least "
            f"{min(shares):.3f}, largest {max(shares):.3f} | at most {1 + SHARE:.2f} (or {SLACK_US:g} us) |",
            f"| wall time of the batches of a comparison | median {statistics.median(seconds):.2f} s, largest "
            f"{max(seconds):.2f} s | {MOST_SECONDS:g} s |",
        ]
    judged = [row for row in hidden if row.credited is not None]
    if judged:
        less = sum(row.credited < row.speedup for row in judged)
        lines.append(f"| ratios that batches would credit with less | {less} of {len(judged)} | 0 |")
    return lines


def _clocks(rows: Iterable[Row]) -> list[str]:
    known = [row.conditions for row in rows if row.conditions is not None]
    if not known:
        return ["| SM clock | not read | |"]
    thrown = sum(conditions.discarded for conditions in known)
    return [
        f"| SM clock | {min(c.sm_mhz_low for c in known):.0f} to {max(c.sm_mhz_high for c in known):.0f} MHz, "
        f"{min(c.temperature_low for c in known):.0f} to {max(c.temperature_high for c in known):.0f} degrees Celsius, "
        f"{thrown} blocks thrown away | never set |"
    ]


def _table(rows: Iterable[Row]) -> list[str]:
    by_case: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_case[row.case].append(row)
    lines = [
        "| kernel | time, us | comparisons | false | ratio: lowest to highest | half-width, median | samples, median "
        "| s, median |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, found in by_case.items():
        good = [row for row in found if row.decision is not None]
        if not good:
            lines.append(f"| {name} | | 0 | | | | | |")
            continue
        ratios = [row.speedup for row in good]
        lines.append(
            f"| {name} | {statistics.median(row.median_us for row in good):.1f} | {len(good)} | "
            f"{sum(row.decision is not Decision.INCONCLUSIVE for row in good)} | "
            f"{min(ratios):.4f} to {max(ratios):.4f} | "
            f"{percent(statistics.median(row.half_width for row in good))} | "
            f"{statistics.median(row.samples for row in good):.0f} | "
            f"{statistics.median(row.seconds for row in good):.1f} |"
        )
    return lines


def write(study: Study, folder: Path) -> None:
    """JSON and page; what the page says of earlier studies stays."""
    (folder / "aa_study.json").write_text(study.model_dump_json(exclude_none=True) + "\n", encoding="utf-8")
    page = folder / "aa_study.md"
    _, found, earlier = page.read_text(encoding="utf-8").partition(EARLIER) if page.exists() else ("", "", "")
    page.write_text(render(study) + (f"\n{EARLIER}{earlier}" if found else ""), encoding="utf-8")


def main() -> None:
    """Run or render."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("docs"), help="folder of the page and the JSON")
    parser.add_argument("--minutes", type=float, default=8.5, help="end within this time, compiling included")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--cases", type=int, default=len(CASES), help="only the first of them")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", type=Precision, default=Precision.FP16)
    parser.add_argument("--render", type=Path, help="write the page of this JSON again and do nothing else")
    options = parser.parse_args()
    deadline = time.monotonic() + 60 * options.minutes
    if options.render:
        write(Study.model_validate(json.loads(options.render.read_text())), options.render.parent)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    config = RunConfig(device=options.device, precision=options.precision)
    with open_evaluator(config, lambda text: None) as evaluator:
        cases = build_cases(evaluator, CASES[: options.cases], config)
        print(f"{len(cases)} kernels built, {deadline - time.monotonic():.0f} s left", file=sys.stderr)
        rows = run_study(cases, options.out / "aa_study.jsonl", options.rounds, deadline)
        facts, seconds = evaluator.facts, evaluator.config.max_seconds_timing
        threshold = Stopwatch(facts, 0.0, seconds).threshold
    study = Study(device=facts, precision=config.precision, threshold=threshold, max_seconds=seconds, rows=rows)
    write(study, options.out)
    print(render(study))


if __name__ == "__main__":
    main()
