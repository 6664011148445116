"""Writes docs/results/search_parts.md: what sweep, code memory and archive brought per 1,000 tokens.

    python benchmarks/search_parts.py [RUN ...] [--without PART=RUN ...]

RUN: directories of runs on a GPU (they hold run.json). `--without sweep=RUN` names a run of the same problems in which
that part was switched off (`--ablate sweep`): the first RUN is held against it, problem by problem. Modelled times are
refused: they are no results. Beside runs, the content trial tells what a donor core does to a reply.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parent / "content_trial"))

from analysis import PAIRED_INDEX, contrast, outcomes
from arms import DONOR_INDEX, Arm
from rows import PROMPTS, ROWS, AskedPrompt, JudgedReply, read

from kernelblaster.errors import UsageError
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.summary import RunSummary
from kernelblaster.records.whole_run import recall
from kernelblaster.report.part_rows import part_rows
from kernelblaster.report.parts import LEAST_PROBLEMS, RESAMPLES, SEED, parts_account
from kernelblaster.report.reading import ProblemRecord, read_problem

PAGE = Path(__file__).parents[1] / "docs" / "results" / "search_parts.md"
CHARACTERS_PER_TOKEN = 3.5
"""Of prompts and CUDA, roughly: the trial kept characters, no tokens."""


def records_of(run: Path) -> tuple[RunSummary, list[ProblemRecord]]:
    """A run's searches. Raises UsageError for a run with modelled times."""
    layout = RunLayout(experiment=run.parent, run=run)
    summary = recall(layout)
    if summary.emulated:
        raise UsageError(f"{run} was modelled: no result", hint="give runs on a GPU")
    rows = summary.problems
    return summary, [read_problem(row, layout.run.joinpath(*row.directory.parts[-2:])) for row in rows]


def page(runs: Sequence[Path], without: Sequence[tuple[str, Path]]) -> str:
    """The page."""
    read_runs = [records_of(run) for run in runs]
    lines = [
        "# What parts of the search brought",
        "",
        "Made by `benchmarks/search_parts.py`. Gain: natural logarithm of the speed-up, in percent; per 1,000 tokens",
        "of the replies and their prompts.",
        "",
        "## What the records can say",
        "",
        "- **Sweep**: exactly, within a step: the source as it was written is timed beside its variants.",
        "- **Code memory, archive** (crossover, other kernels than the fastest): what steps that had the part brought",
        "  beside the other steps of the same problems. Code memory takes turns by place, nothing is drawn at random,",
        "  so that a difference need not be the part's doing.",
        "- Whether a search without a part finds as much per token, only searches of the same problems with and",
        "  without it can say (`kernelblaster run --ablate PART`). The two recorded searches had none of the three.",
        "",
    ]
    lines += _run_lines(runs, read_runs)
    for part, run in without:
        lines += _ablation_lines(part, read_runs[0] if read_runs else None, records_of(run))
    if not without:
        lines += ["## Searches with and without a part", "", "None was made on a GPU so far.", ""]
    return "\n".join([*lines, *_trial_lines(), ""])


def _run_lines(runs: Sequence[Path], found: Sequence[tuple[RunSummary, list[ProblemRecord]]]) -> list[str]:
    records = [record for _, of_run in found for record in of_run]
    rows = part_rows(parts_account(records))
    lines = ["## Steps with and without a part", ""]
    if not rows:
        told = ", ".join(f"`{run.parent.name}`" for run in runs) or "none was given"
        return [*lines, f"Runs: {told}. No step of them was decided: nothing is known.", ""]
    problems = len({record.row.problem for record in records})
    devices = ", ".join(sorted({f"{summary.device.name}, {summary.precision}" for summary, _ in found}))
    lines += [
        f"Runs: {', '.join(f'`{run.parent.name}`' for run in runs)}, on {devices}; {len(records)} searches of",
        f"{problems} problems. Intervals: 95 %, bootstrap over searches ({RESAMPLES:,} resamples),",
        f"from {LEAST_PROBLEMS} searches on.",
        "",
        "| part | which steps | steps | searches | gain | tokens | gain per 1,000 tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    cells = [(one.part, one.told, one.steps, one.problems, one.gain, one.tokens, one.rate) for one in rows]
    return [*lines, *(f"| {' | '.join(row)} |" for row in cells), "", *_sweep_lines(runs, found)]


def _sweep_lines(runs: Sequence[Path], found: Sequence[tuple[RunSummary, list[ProblemRecord]]]) -> list[str]:
    """Seconds that a sweep timed each variant for, without building it and without waiting for the GPU."""
    lines = [
        "## Seconds of a sweep",
        "",
        "Timing one variant after it is built, while other processes of the search have the GPU in turns; references",
        "and waiting are apart. Alone, a GPU test allows 0.3 s.",
        "",
        "| run | sweeps | variants timed | median seconds a variant | quartiles | most |",
        "|---|---|---|---|---|---|",
    ]
    for run, (_, records) in zip(runs, found, strict=True):
        each = [one for record in records for one in _seconds_of_sweeps(record)]
        if len(each) > 1:
            seconds = [one for one, _ in each]
            low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75])
            variants = sum(count for _, count in each)
            told = f"{len(each)} | {variants} | {middle:.2f} | {low:.2f} to {high:.2f} | {max(seconds):.1f}"
            lines.append(f"| `{run.parent.name}` | {told} |")
    return [*lines, ""]


def _seconds_of_sweeps(record: ProblemRecord) -> Iterator[tuple[float, int]]:
    """Seconds per variant, and how many, of each sweep that says what its time went into."""
    for step in record.steps:
        for attempt in step.attempts:
            swept = attempt.swept
            timed = sum(point.found.median_us is not None for point in swept.points) if swept else 0
            if swept is not None and timed and "time" in swept.stages:
                yield swept.stages["time"] / timed, timed


def _ablation_lines(
    part: str, whole: tuple[RunSummary, list[ProblemRecord]] | None, lacking: tuple[RunSummary, list[ProblemRecord]]
) -> list[str]:
    """A search beside one without a part, on the problems that both ended."""
    if whole is None:
        raise UsageError("--without needs a run to hold against", hint="name it first")
    if part not in lacking[0].ablated or part in whole[0].ablated:
        raise UsageError(f"the runs do not differ in {part}", hint="name the run with --ablate after --without")
    sides = [{row.problem: row for row in summary.searched} for summary, _ in (whole, lacking)]
    tokens = [_tokens_by_problem(records) for _, records in (whole, lacking)]
    shared = sorted(name for name in sides[0].keys() & sides[1].keys() if all(side.get(name) for side in tokens))
    lines = [f"## With and without `{part}`", ""]
    if not shared:
        return [*lines, "No problem was searched in both.", ""]
    gains = [np.array([100 * math.log(side[name].searched_speedup) for name in shared]) for side in sides]
    costs = [np.array([side[name] / 1000 for name in shared]) for side in tokens]
    rates = [float(gain.sum() / cost.sum()) for gain, cost in zip(gains, costs, strict=True)]
    told = ""
    if len(shared) >= LEAST_PROBLEMS:
        drawn = np.random.default_rng(SEED).integers(len(shared), size=(RESAMPLES, len(shared)))
        first, second = (
            gain[drawn].sum(axis=1) / cost[drawn].sum(axis=1) for gain, cost in zip(gains, costs, strict=True)
        )
        low, high = np.quantile(first - second, [0.025, 0.975])
        told = f" (95 %: {low:+.2f} to {high:+.2f})"
    means = [math.exp(float(gain.mean()) / 100) for gain in gains]
    return [
        *lines,
        f"{len(shared)} problems. Geometric mean by replies: {means[0]:.2f} with, {means[1]:.2f} without; per 1,000",
        f"tokens {rates[0]:.2f} % and {rates[1]:.2f} %, difference {rates[0] - rates[1]:+.2f} %{told}.",
        "",
    ]


def _tokens_by_problem(records: Sequence[ProblemRecord]) -> dict[str, int]:
    accounts = {record.row.problem: parts_account([record]) for record in records}
    return {name: account.whole.cost.tokens for name, account in accounts.items() if account is not None}


def _trial_lines() -> list[str]:
    """A donor core in single replies, from the content trial."""
    prompts = read(PROMPTS, AskedPrompt)
    judged = outcomes(prompts, read(ROWS, JudgedReply))
    found = contrast("donor", judged, Arm.DONOR, Arm.KNOWLEDGE, indices={DONOR_INDEX, PAIRED_INDEX})
    if found is None or found.low is None or found.high is None:
        return []
    both = {one.parent for one in prompts if one.arm is Arm.DONOR}
    asked = [one for one in prompts if one.parent in both and one.reply in (DONOR_INDEX, PAIRED_INDEX)]
    lengths = {
        arm: float(np.mean([len(one.text) for one in asked if one.arm is arm])) for arm in (Arm.DONOR, Arm.KNOWLEDGE)
    }
    more = (lengths[Arm.DONOR] - lengths[Arm.KNOWLEDGE]) / CHARACTERS_PER_TOKEN
    return [
        "## Code memory in single replies",
        "",
        "From the [content trial](content_trial/results.md) (NVIDIA H200, medium, fp16), whose prompts differ in the",
        f"donor core alone, with the same technique: {found.parents} parents, {100 * found.mean:+.1f} % of ln",
        f"(95 %: {100 * found.low:+.1f} to {100 * found.high:+.1f} %) for some {more:,.0f} more tokens in the prompt",
        f"({CHARACTERS_PER_TOKEN:g} characters a token): {100 * found.mean / (more / 1000):+.1f} % per 1,000 of them",
        f"(95 %: {100 * found.low / (more / 1000):+.1f} to {100 * found.high / (more / 1000):+.1f} %).",
        "A gain of the donor core is not shown, nor is a loss.",
    ]


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN")
    parser.add_argument("--without", action="append", default=[], metavar="PART=RUN")
    parser.add_argument("--out", type=Path, default=PAGE)
    given = parser.parse_args()
    without = [(part, Path(run)) for part, _, run in (one.partition("=") for one in given.without)]
    given.out.write_text(page(given.runs, without), encoding="utf-8")
    print(given.out)


if __name__ == "__main__":
    main()
