"""Rounds of attacks by authors who knew the rules and had not read the judge: what became of each, for docs/trust.md.

`tests/adversarial/rounds/N` holds the kernels of a round as they were written, `twins/` beside them the same kernels
without the trick (see `planted.load_folder`). `docs/results/rounds/N.json` is what the judge of the day made of them,
before anything was mended; `N_again.json`, if it is there, what a later judge does, and `N_h200.json` what it does on a
GPU, where the others are of the emulated device; all by

    python benchmarks/trust.py --device cuda --folder tests/adversarial/rounds/N --json docs/results/rounds/N.json

`notes.json` beside the kernels says of a kernel what its outcome means, where the outcome alone does not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from court import TrustResult, TrustRow
from planted import ADVERSARIAL, HARMLESS, Kind, Planted, load_folder

ROUNDS = ADVERSARIAL / "rounds"
RESULTS = ADVERSARIAL.parent.parent / "docs" / "results" / "rounds"
JUDGED = {"At first": "", "Now": "_again", "On a GPU": "_h200"}
"""What the page calls a judgement, and how its file's name ends."""


def outcomes(path: Path) -> TrustResult | None:
    """What was judged; None without a file."""
    return TrustResult.model_validate_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def side(row: TrustRow) -> str:
    """`refused`, `harmless` or `through` of an exploit; `passed` or `refused` of an honest kernel."""
    if row.kind is Kind.HONEST:
        return "passed" if row.outcome == "correct" else "refused"
    return {HARMLESS: "harmless", "correct": "through"}.get(row.outcome, "refused")


def counts(result: TrustResult) -> str:
    """One clause."""
    exploits = [side(row) for row in result.rows if row.kind is Kind.EXPLOIT]
    honest = [side(row) for row in result.rows if row.kind is Kind.HONEST]
    left = f", {len(result.not_judged)} not judged" if result.not_judged else ""
    return (
        f"of {len(exploits)} exploits {exploits.count('refused')} refused, {exploits.count('harmless')} harmless, "
        f"{exploits.count('through')} called correct and faster; of {len(honest)} honest kernels "
        f"{honest.count('passed')} passed{left}"
    )


def _cell(row: TrustRow | None) -> str:
    if row is None:
        return "not judged"
    ratio = f" ({row.speedup:.2f}x)" if row.speedup is not None and side(row) != "refused" else ""
    return f"**{row.outcome}{ratio}**" if side(row) == "through" or not row.right else f"{row.outcome}{ratio}"


def _table(kernels: list[Planted], judged: Mapping[str, TrustResult], notes: dict[str, str]) -> Iterator[str]:
    found = [{row.name: row for row in result.rows} for result in judged.values()]
    labels = [label.lower() for label in judged]
    yield f"| {' | '.join(['kernel', 'problem', 'what it does', *labels, 'note'])} |"
    yield "|---|---|---|" + "---|" * (len(labels) + 1)
    for kernel in kernels:
        cells = " | ".join(_cell(rows.get(kernel.name)) for rows in found)
        does = kernel.does.replace("|", "\\|")
        yield f"| {kernel.name} | {kernel.problem} | {does} | {cells} | {notes.get(kernel.name, '')} |"


def rounds() -> Iterator[str]:
    """The section of the page: each round with its counts and all its kernels."""
    for folder in sorted(ROUNDS.iterdir()):
        files = {label: outcomes(RESULTS / f"{folder.name}{ending}.json") for label, ending in JUDGED.items()}
        judged = {label: result for label, result in files.items() if result is not None}
        told = folder / "notes.json"
        notes: dict[str, str] = json.loads(told.read_text(encoding="utf-8")) if told.is_file() else {}
        yield f"### Round {folder.name}"
        yield ""
        for label, result in judged.items():
            yield f"{label} ({result.device.name}): {counts(result)}."
            yield ""
        yield from _table(load_folder(folder), judged, notes)
        yield ""
