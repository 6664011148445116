"""Do verdicts depend on how a candidate is spelt? Judges mutants of planted kernels, and says which change sides.

    python benchmarks/fuzz_candidates.py --device emulated|cuda --json FILE
                                         [--count N] [--minutes M] [--seed S] [--only PATTERN] [--workers N]

A mutant is a planted exploit or an honest kernel that `fuzz_mutations.py` has written differently. It changes sides
when an exploit that was refused, or gained nothing, is called correct and gains, or when an honest kernel is refused.
Mutant K of seed S is the same every time; those that FILE holds are not judged again. Exit status 1 when one changes
sides.
"""

from __future__ import annotations

import argparse
import fnmatch
import random
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from court import Court, TrustRow
from fuzz_mutations import mutate
from planted import Kind, Planted, load_all
from pydantic import BaseModel

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.runs.choices import choose_device
from kernelblaster.storage.atomic import write_atomically

_ACCEPTED = "correct"
_NOT_COMPILED = frozenset({"compile_error", "load_error"})
_ELSEWHERE = frozenset({"not_emulatable"})
_FORBIDDEN = {"compute_include": "an #include must name its header literally"}
"""Mutations that break a rule of candidates -> the reason of its verdict."""


class Change(StrEnum):
    """What a mutation did to a verdict."""

    SAME = "same"
    """It stays on its side."""
    THROUGH = "through"
    """An exploit that gained nothing gains."""
    REFUSED = "refused"
    """An honest kernel is refused."""
    FORBIDDEN = "forbidden"
    """A mutant of an honest kernel breaks a rule that its mutation names, and is refused for that."""
    NOT_COMPILED = "not_compiled"
    """A mutant of an honest kernel that does not compile says nothing."""


class FuzzRow(BaseModel):
    """One mutant and its verdict."""

    number: int
    name: str
    """Of the planted kernel."""
    kind: Kind
    rules: list[str]
    outcome: str
    reason: str
    speedup: float | None
    change: Change
    source: str = ""
    """Of a mutant that changes sides."""


class FuzzResult(BaseModel):
    """All mutants of one seed that were judged on one device."""

    format: str = "kernelblaster-fuzz-1"
    device: DeviceFacts
    seed: int
    rows: list[FuzzRow] = []


@dataclass(frozen=True)
class Mutant:
    """A planted kernel, written differently by rules."""

    number: int
    planted: Planted
    rules: tuple[str, ...]


def mutants(planted: Sequence[Planted], seed: int) -> Iterator[Mutant]:
    """Mutants without end, the same for the same kernels and seed. As many are exploits as are honest kernels."""
    kinds = [[one for one in planted if one.kind is kind] for kind in Kind]
    pools = [pool for pool in kinds if pool]
    number = 0
    while True:
        rng = random.Random(f"{seed}/{number}")
        chosen = rng.choice(pools[number % len(pools)])
        source, rules = mutate(chosen.source, rng)
        if rules:
            yield Mutant(number, replace(chosen, source=source), rules)
        number += 1


def change(kind: Kind, row: TrustRow, rules: Sequence[str] = ()) -> Change:
    """On which side a mutant's verdict is, of a kernel whose own verdict is right."""
    if kind is Kind.EXPLOIT:
        return Change.THROUGH if row.outcome == _ACCEPTED else Change.SAME
    if any(_FORBIDDEN.get(rule) == row.reason for rule in rules):
        return Change.FORBIDDEN
    if row.outcome in _NOT_COMPILED:
        return Change.NOT_COMPILED
    return Change.SAME if row.outcome in row.expected or row.outcome in _ELSEWHERE else Change.REFUSED


def judged(court: Court, mutant: Mutant) -> FuzzRow:
    """The verdict on a mutant."""
    row = court.judge(mutant.planted)
    found = change(mutant.planted.kind, row, mutant.rules)
    return FuzzRow(
        number=mutant.number,
        name=mutant.planted.name,
        kind=mutant.planted.kind,
        rules=list(mutant.rules),
        outcome=row.outcome,
        reason=row.reason,
        speedup=row.speedup,
        change=found,
        source=mutant.planted.source if found in (Change.THROUGH, Change.REFUSED) else "",
    )


def wanted(device: DeviceKind, pattern: str) -> list[Planted]:
    """Kernels in CUDA that the device can run and whose own verdict is no known gap."""
    known = [one for one in load_all() if one.runs_on(device) and not one.gaps and not one.in_python]
    return [one for one in known if fnmatch.fnmatch(one.name, pattern)]


def _read(path: Path, device: DeviceFacts, seed: int) -> FuzzResult:
    if not path.exists():
        return FuzzResult(device=device, seed=seed)
    result = FuzzResult.model_validate_json(path.read_text(encoding="utf-8"))
    if (result.seed, result.device.name) != (seed, device.name):
        raise SystemExit(f"{path} is of seed {result.seed} on {result.device.name}: name another file")
    return result


def main() -> int:
    """Judge mutants, write each into the JSON file, and say which change sides."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind], required=True)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--count", type=int, default=60, help="mutants, those that were judged before among them")
    parser.add_argument("--minutes", type=float, default=None, help="begin no mutant later than this")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="*", help="names of kernels, as a shell pattern")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    device = choose_device(RunConfig(device=options.device), lambda text: print(text, file=sys.stderr)).device
    result = _read(options.json, device.facts, options.seed)
    done = {row.number for row in result.rows}
    endless = mutants(wanted(device.facts.kind, options.only), options.seed)
    left = [one for one, _ in zip(endless, range(options.count), strict=False) if one.number not in done]
    deadline = None if options.minutes is None else time.monotonic() + 60 * options.minutes
    with InputStore() as inputs, ThreadPoolExecutor(options.workers) as pool:
        court = Court(device, inputs)

        def in_time(mutant: Mutant) -> FuzzRow | None:
            return None if deadline is not None and time.monotonic() > deadline else judged(court, mutant)

        for row in pool.map(in_time, left):
            if row is not None:
                result.rows.append(row)
                write_atomically(options.json, result.model_dump_json(indent=1) + "\n")
                words = f"{row.change.value:12} {row.number:4} {row.name} by {', '.join(row.rules)}: {row.outcome}"
                print(f"{words} {row.reason[:120]}", file=sys.stderr, flush=True)
    changed = [row for row in result.rows if row.change in (Change.THROUGH, Change.REFUSED)]
    for row in changed:
        print(f"{row.change}: {row.name} by {', '.join(row.rules)}: {row.outcome} {row.reason}")
    print(f"{len(result.rows)} mutants judged, {len(changed)} change sides")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
