"""Makes docs/trust.md of what `benchmarks/trust.py` and `benchmarks/mutants.py` have found.

    python benchmarks/trust_page.py [--emulated FILE...] [--cuda FILE...] [--mutants FILE] > docs/trust.md

Figures come from the JSON files only; a device without a file has an empty column. Of several files of one device, the
last that judged a kernel counts.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from court import JUDGES, TrustResult, TrustRow, judge_digest
from fuzz_candidates import Change, FuzzResult
from mutants import MutantRow, MutationResult
from mutants_on_gpu import compared
from planted import HARMLESS, Kind, Planted, load_all
from pydantic import BaseModel
from rounds import rounds
from trust_texts import BLIND, IN_SAMPLE, NOT_PLANTED, REPORTING, RESIDUAL

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results"
SURVIVORS = Path(__file__).with_name("survivors.json")
"""Pattern of mutant ids -> `Survivor`."""

_ACCEPTED = (HARMLESS, "correct")
"""Outcomes of a planted kernel that was not refused."""


def _without_outcome(result: TrustResult) -> int:
    """Planted kernels that run on a device and have no outcome there, those that are newer than its file among them."""
    known = {row.name for row in result.rows}
    return sum(one.runs_on(result.device.kind) and one.name not in known for one in load_all())


def _outcomes(result: TrustResult | None) -> dict[str, TrustRow]:
    return {} if result is None else {row.name: row for row in result.rows}


def cell(planted: Planted, row: TrustRow | None, result: TrustResult | None) -> str:
    """What a device made of a planted kernel."""
    if result is None:
        return ""
    if row is None:
        return "not run here" if planted.name in result.not_run else "not judged"
    ratio = f" ({row.speedup:.2f}x)" if row.outcome == HARMLESS and row.speedup is not None else ""
    text = f"{row.outcome}{ratio}" if row.right else f"**{row.outcome}{ratio}**"
    return f"{text}, {_day(row)}"


def _counts(kind: Kind, result: TrustResult) -> str:
    rows = [row for row in result.rows if row.kind is kind]
    if kind is Kind.HONEST:
        passed = sum(row.outcome == "correct" for row in rows)
        elsewhere = sum(row.outcome == "not_emulatable" for row in rows)
        refused = len(rows) - passed - elsewhere
        return f"{passed} passed, {elsewhere} not emulatable, {refused} refused, {len(rows)} judged"
    harmless = sum(row.outcome == HARMLESS and row.right for row in rows)
    through = sum(row.outcome in _ACCEPTED and not row.right for row in rows)
    refused = len(rows) - harmless - through
    return f"{refused} refused, {harmless} harmless, {through} got through, {len(rows)} judged"


def summary(results: Sequence[TrustResult]) -> Iterator[str]:
    """Counts per device."""
    yield "| device | exploits | honest kernels |"
    yield "|---|---|---|"
    for result in results:
        yield f"| {result.device.name} | {_counts(Kind.EXPLOIT, result)} | {_counts(Kind.HONEST, result)} |"


def judges(results: Sequence[TrustResult]) -> Iterator[str]:
    """How many rows which judge has made."""
    yield (
        "Rows stay until they are judged again, so that some are of earlier judges than that of this page. Between "
        "the judges of 2026-12-02 and 2026-12-03 there is one difference: the later one asks for no infinite "
        "log-sum-exp; that of this page only ends the time limit of a reference otherwise. By the day on which the "
        "judge of a row made its first one:"
    )
    yield ""
    yield "| device | rows | by day of their judge | by the judge of this page | kernels without a row |"
    yield "|---|---|---|---|---|"
    for result in results:
        counted = Counter(_day(row) for row in result.rows)
        days = ", ".join(f"{day}: {count}" for day, count in sorted(counted.items()))
        now = sum(row.judge == judge_digest() for row in result.rows)
        yield f"| {result.device.name} | {len(result.rows)} | {days} | {now} | {_without_outcome(result)} |"
    yield ""
    yield "In the tables below the day stands behind each outcome."


@cache
def _known_judges() -> dict[str, str]:
    told: dict[str, str] = json.loads(JUDGES.read_text(encoding="utf-8"))
    return told


def _day(row: TrustRow) -> str:
    """Of a row's judge, `11-29`; `early` before rows named it."""
    return _known_judges().get(row.judge, "undated").removeprefix("2026-") if row.judge else "early"


def kernels(kind: Kind, emulated: TrustResult | None, cuda: TrustResult | None) -> Iterator[str]:
    """One row per planted kernel."""
    first, second = _outcomes(emulated), _outcomes(cuda)
    yield "| kernel | problem | what it does | emulated | on the GPU |"
    yield "|---|---|---|---|---|"
    for planted in load_all(kind):
        cells = cell(planted, first.get(planted.name), emulated), cell(planted, second.get(planted.name), cuda)
        yield f"| {planted.name} | {planted.problem} | {planted.does} | {cells[0]} | {cells[1]} |"


def gaps(results: Sequence[TrustResult]) -> Iterator[str]:
    """Each outcome that is not what it should be, with its explanation."""
    wrong = [(result.device.name, row) for result in results for row in result.rows if not row.right]
    if not wrong:
        yield "None."
    for device, row in wrong:
        why = row.gap or row.reason or "Not explained yet."
        yield f"- {row.name} on {device}: {row.outcome}. {why}"


class Survivor(BaseModel):
    """Why mutants survive, and whether they compute what the original does wherever they may be called."""

    equivalent: bool
    why: str


def explanation(row: MutantRow, known: dict[str, Survivor]) -> Survivor:
    """Of a mutant that survives."""
    for pattern, survivor in known.items():
        if fnmatch.fnmatch(row.id, pattern):
            return survivor
    return Survivor(equivalent=False, why="not explained yet")


def mutation(result: MutationResult, known: dict[str, Survivor]) -> Iterator[str]:
    """The share caught, per problem and per kind of mistake, and all survivors."""
    counted = [row for row in result.rows if row.counted]
    caught = sum(row.caught for row in counted)
    outcomes = Counter(row.outcome for row in result.rows)
    finals = sum(name.endswith("/final") for name in result.sources)
    yield (
        f"{len(result.rows)} mutants of {len(result.sources) - finals} starting kernels and {finals} shipped final "
        f"kernels, by {len({row.rule for row in result.rows})} rules of `benchmarks/mutation_rules.py`, judged at size "
        f"`small` in fp16 on the emulated device with {result.input_sets} input sets and two at "
        "undeclared extents. Left out of the count: "
        f"{outcomes['not_compiled']} that do not compile, {outcomes['equivalent']} whose PTX is that of the original, "
        f"{outcomes['not_emulatable']} that the emulator cannot run."
    )
    yield ""
    same = sum(explanation(row, known).equivalent for row in counted if not row.caught)
    yield (
        f"**Caught: {caught} of {len(counted)} ({caught / len(counted):.1%}); of those that are mistakes, "
        f"{caught} of {len(counted) - same} ({caught / (len(counted) - same):.1%})**: {same} survivors compute what "
        "the original does, as the table says. By verdict: "
        + ", ".join(
            f"{count} {name}" for name, count in outcomes.most_common() if name not in ("equivalent", "not_compiled")
        )
        + "."
    )
    yield ""
    yield "| problem | mutants counted | caught |"
    yield "|---|---|---|"
    for problem in sorted({row.problem for row in counted}):
        rows = [row for row in counted if row.problem == problem]
        yield f"| {problem} | {len(rows)} | {sum(row.caught for row in rows)} |"
    yield ""
    yield "| mistake | mutants counted | caught |"
    yield "|---|---|---|"
    for rule, does in sorted({(row.rule, row.does) for row in counted}):
        rows = [row for row in counted if row.rule == rule]
        yield f"| {does} (`{rule}`) | {len(rows)} | {sum(row.caught for row in rows)} |"
    yield ""
    yield from _survivors(counted, known)
    if result.left_out:
        yield ""
        yield "Sources left out: " + "; ".join(f"{name} ({reason})" for name, reason in result.left_out.items()) + "."


def _survivors(counted: Sequence[MutantRow], known: dict[str, Survivor]) -> Iterator[str]:
    yield "| survivor | line | now reads | why it survives |"
    yield "|---|---|---|---|"
    for row in counted:
        if not row.caught:
            text = row.text.replace("|", "\\|")
            found = explanation(row, known)
            yield f"| {row.id} | {row.line} | `{text}` | {'no mistake: ' if found.equivalent else ''}{found.why} |"


def fuzzing(results: Sequence[FuzzResult]) -> Iterator[str]:
    """What writing planted kernels differently does to their verdicts."""
    yield (
        "`benchmarks/fuzz_candidates.py` writes planted kernels differently (names, macros, comments, spliced lines, "
        "other functions for the same service, templates, constructors) and judges them again."
    )
    yield ""
    for result in results:
        counts = Counter(row.change for row in result.rows)
        yield (
            f"- {result.device.name}, seed {result.seed}: {len(result.rows)} mutants; {counts[Change.SAME]} stay on "
            f"their side, {counts[Change.NOT_COMPILED]} honest ones do not compile, {counts[Change.FORBIDDEN]} are "
            f"refused for a header whose name is computed, as nobody may, {counts[Change.THROUGH]} exploits get "
            f"through, {counts[Change.REFUSED]} honest ones are refused."
        )
        for row in result.rows:
            if row.change in (Change.THROUGH, Change.REFUSED):
                yield f"  - {row.change}: {row.name} by {', '.join(row.rules)}: {row.outcome}. {row.reason}"


def render(
    emulated: TrustResult | None,
    cuda: TrustResult | None,
    mutants: MutationResult | None,
    on_gpu: MutationResult | None,
    known: dict[str, Survivor],
    fuzzed: Sequence[FuzzResult] = (),
) -> str:
    """The page."""
    results = [result for result in (emulated, cuda) if result is not None]
    lines = [
        "# Can the evaluation be fooled?",
        "",
        "Exploits are planted in `tests/adversarial/exploits`, one candidate each, and judged as any candidate is; "
        "honest kernels of unusual form, in `tests/adversarial/honest`, must pass. `refused`: the verdict is not "
        "`correct`. `harmless`: the verdict is `correct`, and the kernel is not faster than its honest twin: nothing "
        "was gained. On the emulated device times are modelled from counted work: many timing exploits have nothing to "
        "hide from there.",
        "",
        *summary(results),
        "",
        *judges(results),
        "",
        IN_SAMPLE,
        "",
        "Again: `python benchmarks/trust.py --device emulated --again --json docs/results/trust_emulated.json` "
        "(`--device cuda --json docs/results/h200_trust.json` on a GPU), `python benchmarks/mutants.py --json "
        "docs/results/mutants.json`, `python benchmarks/trust_page.py > docs/trust.md`. Tests judge a sample; "
        "`bash scripts/test.sh --all` judges all. A round that others wrote: `python benchmarks/trust.py --device cuda "
        "--folder tests/adversarial/rounds/3 --json docs/results/rounds/3.json`.",
        "",
        "## Attacks written blind",
        "",
        BLIND,
        "",
        *rounds(),
        "## Unexpected outcomes",
        "",
        *gaps(results),
        "",
        RESIDUAL,
        "## Exploits",
        "",
        *kernels(Kind.EXPLOIT, emulated, cuda),
        "",
        "Rows of the catalogue without a planted kernel:",
        "",
        *(f"- {row}: {reason}" for row, reason in NOT_PLANTED.items()),
        "",
        "Rows about figures and problems:",
        "",
        *(f"- {row}: {rule}." for row, rule in REPORTING.items()),
        "",
        "## Honest kernels",
        "",
        *kernels(Kind.HONEST, emulated, cuda),
    ]
    if fuzzed:
        lines += ["", "## Written differently", "", *fuzzing(fuzzed)]
    if mutants is not None:
        lines += ["", "## Mutation testing", "", *mutation(mutants, known)]
        lines += ["", *compared(mutants, on_gpu)] if on_gpu is not None else []
    return "\n".join(lines) + "\n"


def merged(paths: Sequence[Path]) -> TrustResult | None:
    """All outcomes of one device; None without a file. Raises ValueError when the files are of different devices."""
    results = [TrustResult.model_validate_json(path.read_text(encoding="utf-8")) for path in paths if path.is_file()]
    if not results:
        return None
    if len({result.device.name for result in results}) > 1:
        raise ValueError(f"results of different devices: {', '.join(result.device.name for result in results)}")
    rows = {row.name: row for result in results for row in result.rows}
    return TrustResult(
        device=results[-1].device,
        rows=[rows[name] for name in sorted(rows)],
        not_run=sorted({name for result in results for name in result.not_run}),
        not_judged=sorted({name for result in results for name in result.not_judged} - rows.keys()),
        seconds=sum(result.seconds for result in results),
    )


def main() -> None:
    """Read what there is, print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulated", type=Path, nargs="+", default=[RESULTS / "trust_emulated.json"])
    parser.add_argument("--cuda", type=Path, nargs="+", default=[RESULTS / "h200_trust.json"])
    parser.add_argument("--mutants", type=Path, default=RESULTS / "mutants.json")
    parser.add_argument("--gpu-mutants", type=Path, default=RESULTS / "mutants_h200.json")
    fuzz_files = sorted(RESULTS.glob("fuzz_*.json"))
    parser.add_argument("--fuzz", type=Path, nargs="+", default=fuzz_files)
    options = parser.parse_args()
    fuzzed = [FuzzResult.model_validate_json(path.read_text("utf-8")) for path in options.fuzz if path.is_file()]
    mutants, on_gpu = (
        MutationResult.model_validate_json(path.read_text(encoding="utf-8")) if path.is_file() else None
        for path in (options.mutants, options.gpu_mutants)
    )
    told = json.loads(SURVIVORS.read_text(encoding="utf-8"))
    known = {pattern: Survivor.model_validate(survivor) for pattern, survivor in told.items()}
    print(render(merged(options.emulated), merged(options.cuda), mutants, on_gpu, known, fuzzed), end="")


if __name__ == "__main__":
    main()
