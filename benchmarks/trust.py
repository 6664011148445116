"""Can the evaluation be fooled? Judges every planted exploit and honest kernel, and says which outcome was wrong.

    python benchmarks/trust.py --device emulated|cuda --json FILE [--again]
                               [--kind KIND] [--only PATTERN] [--folder DIR] [--workers N] [--minutes M]

FILE is written after each kernel, and the same command goes on where it stopped. First come kernels without an outcome,
then those that have changed or whose outcome was wrong; with `--again` all that another judge than today's has judged,
too. A kernel has its twin as baseline where its header names one.

On a GPU each kernel is first judged in company, by as many processes as there are workers (`court.py` says what that
finds out); what is left, mostly exploits that must be timed to show that they gain nothing, is then judged alone.
Exit status 1 when an exploit got through or an honest kernel was refused. `benchmarks/trust_page.py` makes
docs/trust.md of the JSON files of both devices.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

from court import JUDGES, Court, TrustResult, TrustRow, digest, judge_digest
from planted import HARMLESS, Kind, Planted, load_all, load_folder

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import KernelBlasterError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.results import Verdict
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.worker_pool import Pool, WorkerLost, WorkerPool
from kernelblaster.storage.atomic import write_atomically

LOST = "lost"
"""Outcome of a kernel whose judge died or took too long."""
_NO_OUTCOME, _CHANGED, _UNDATED = "", "0", "1"
"""Of kernels that are to be judged: they sort before any day."""
_LIMIT_S = 900.0
_COMPANY_SHARE = 0.5
"""Of the time, how much at most before what is left is judged alone."""
_ALONE_WORKERS = 6
"""They have their builds and inputs ready while one of them holds the GPU."""
_REFERENCE_BYTES = 3 << 30
"""Of each process; all of them together must fit a usual machine."""
_DISTURBS = frozenset({"T18"})
"""Rows whose exploits attack who is beside them."""
_VALUES = ("V", "N11", "N16", "N17", "N19")
"""Beginnings of rows whose exploits compute something else than they should, and disturb nobody: they are timed beside
others that are verified meanwhile."""


@dataclass(frozen=True)
class Task:
    """One kernel for one process."""

    planted: Planted
    device: DeviceKind
    in_company: bool

    @property
    def inputs(self) -> tuple[str, str, str]:
        """What decides which inputs and references it needs."""
        return self.planted.problem, self.planted.precision, self.planted.size_on(self.device)


@dataclass(frozen=True)
class Sitting:
    """How a list of kernels is judged.

    Attributes:
        device: where.
        pool: makes a pool of so many processes.
        workers: processes in company.
        seconds: after which no kernel is begun; None for no limit.
        alone: names of kernels that are known to need a judgement alone.
    """

    device: DeviceKind
    pool: Callable[[int], Pool[Task, TrustRow]]
    workers: int
    seconds: float | None
    alone: frozenset[str] = frozenset()

    def rows(self, planted: Sequence[Planted]) -> Iterator[tuple[Planted, TrustRow | WorkerLost]]:
        """Outcomes as they come: on a GPU in company where that suffices, else alone."""
        began = time.monotonic()
        if self.device is DeviceKind.EMULATED:
            yield from self._pass(planted, began, 1.0, in_company=False, workers=self.workers)
            return
        alone = [one for one in planted if one.row in _DISTURBS or one.name in self.alone]
        company = [one for one in planted if one.row not in _DISTURBS and one.name not in self.alone]
        for one, found in self._pass(company, began, _COMPANY_SHARE, in_company=True, workers=self.workers):
            if isinstance(found, TrustRow) and found.right:
                yield one, found
            else:
                alone.append(one)
        yield from self._pass(alone, began, 1.0, in_company=False, workers=min(self.workers, _ALONE_WORKERS))

    def _pass(
        self, planted: Iterable[Planted], began: float, share: float, *, in_company: bool, workers: int
    ) -> Iterator[tuple[Planted, TrustRow | WorkerLost]]:
        until = None if self.seconds is None else began + share * self.seconds
        tasks = [Task(one, self.device, in_company) for one in planted]
        for task, found in self.pool(workers).run(tasks, lambda: until is None or time.monotonic() < until):
            yield task.planted, found


def judge_task(task: Task) -> TrustRow:
    """Judge one kernel; called in a process that keeps its inputs and references for the next."""
    court = _court(task.device)
    if not task.in_company:
        return court.judge(task.planted)
    if task.planted.kind is Kind.EXPLOIT and task.planted.row.startswith(_VALUES):
        return court.judge_beside_others(task.planted)
    return court.judge_in_company(task.planted)


@cache
def _court(device: DeviceKind) -> Court:
    chosen = choose_device(RunConfig(device=device), lambda text: None).device
    return Court(chosen, InputStore(reference_bytes=_REFERENCE_BYTES))  # the next store sweeps what it leaves


def in_order(planted: Sequence[Planted], known: dict[str, TrustRow], *, again: bool) -> list[Planted]:
    """What is to be judged, the most telling first: without an outcome, changed or wrong, by another judge.

    Exploits and honest kernels alternate, so that a sitting that is cut short has judged both. Of what is judged again
    those come first whose judge is not known, then those of the oldest judges.
    """
    days: dict[str, str] = json.loads(JUDGES.read_text(encoding="utf-8"))
    urgent: dict[str, list[Planted]] = {}
    for one in planted:
        row = known.get(one.name)
        if row is None or row.outcome not in (*Verdict, HARMLESS):
            when = _NO_OUTCOME
        elif (row.digest and row.digest != digest(one)) or not row.right:
            when = _CHANGED
        elif again and row.judge != judge_digest():
            when = days.get(row.judge, _UNDATED)
        else:
            continue
        urgent.setdefault(when, []).append(one)
    return [one for when in sorted(urgent) for one in _alternating(urgent[when])]


def seen_harmless(planted: Sequence[Planted], known: dict[str, TrustRow]) -> frozenset[str]:
    """Names of exploits that gained nothing when they were timed: a judgement in company would leave them open."""
    return frozenset(
        one.name
        for one in planted
        if one.name in known and known[one.name].outcome == HARMLESS and not one.row.startswith(_VALUES)
    )


def _alternating(planted: Sequence[Planted]) -> Iterator[Planted]:
    kinds = [[one for one in planted if one.kind is kind] for kind in Kind]
    return (one for one in chain.from_iterable(zip_longest(*kinds)) if one is not None)


def lost(planted: Planted, device: DeviceKind, reason: str) -> TrustRow:
    """The outcome of a kernel whose judge was lost; never right."""
    return TrustRow.of(planted, device, outcome=LOST, reason=reason, seconds=0.0)


class Record:
    """The JSON file of one device: earlier outcomes, replaced as kernels are judged again.

    Args:
        path: of the file; need not exist.
        facts: of the device; a file of another one is refused with ValueError.
        planted: all kernels that are wanted, those that the device cannot run among them.
    """

    def __init__(self, path: Path, facts: DeviceFacts, planted: Sequence[Planted]) -> None:
        self._path, self._facts, self._planted = path, facts, planted
        self._began, self._before = time.monotonic(), 0.0
        self.rows: dict[str, TrustRow] = {}
        if path.is_file():
            earlier = TrustResult.model_validate_json(path.read_text(encoding="utf-8"))
            if earlier.device.name != facts.name:
                raise ValueError(f"{path} is of {earlier.device.name}: name another file")
            self._before = earlier.seconds
            self.rows = {row.name: row for row in earlier.rows}
        for one in planted:  # what is expected is a matter of the header of today
            if one.name in self.rows:
                update = {"expected": sorted(one.expected[facts.kind]), "gap": one.gaps.get(facts.kind, "")}
                self.rows[one.name] = self.rows[one.name].model_copy(update=update)

    @property
    def result(self) -> TrustResult:
        """What there is; without rows of kernels that are no longer planted, where all were loaded."""
        runnable = [one.name for one in self._planted if one.runs_on(self._facts.kind)]
        return TrustResult(
            device=self._facts,
            rows=sorted(self.rows.values(), key=lambda row: (row.kind, row.name)),
            not_run=[one.name for one in self._planted if not one.runs_on(self._facts.kind)],
            not_judged=[name for name in runnable if name not in self.rows],
            seconds=self._before + time.monotonic() - self._began,
        )

    def add(self, row: TrustRow) -> None:
        """Keep an outcome, and write the file."""
        self.rows[row.name] = row
        write_atomically(self._path, self.result.model_dump_json(indent=1) + "\n", sync=False)

    def forget(self, names: Iterable[str]) -> None:
        """Drop outcomes of kernels that there are no longer."""
        for name in names:
            self.rows.pop(name, None)


def _tell(row: TrustRow, done: int, of: int, began: float) -> None:
    mark = "ok  " if row.right else "gap " if row.gap else "FAIL"
    ratio = "" if row.speedup is None else f" ({row.speedup:.2f}x)"
    at = f"{time.monotonic() - began:6.1f} s {done}/{of}"
    print(f"{mark} {at} {row.name}: {row.outcome}{ratio} {row.reason[:150]}", file=sys.stderr, flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=[kind.value for kind in DeviceKind], required=True)
    parser.add_argument("--json", type=Path, required=True, help="outcomes, those of earlier calls among them")
    parser.add_argument("--again", action="store_true", help="also what another version of the judge has judged")
    parser.add_argument("--only", default="*", help="names to judge, as a shell pattern")
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], help="exploits or honest kernels alone")
    parser.add_argument("--folder", type=Path, help="kernels that others wrote, in place of the planted ones")
    parser.add_argument("--workers", type=int, default=min(os.cpu_count() or 1, 16))
    parser.add_argument("--minutes", type=float, default=None, help="begin no kernel later than this")
    return parser.parse_args()


def main() -> int:
    """Judge what has no outcome, write the JSON file, and say what was wrong."""
    options = _options()
    began = time.monotonic()
    try:
        facts = choose_device(RunConfig(device=options.device), lambda text: print(text, file=sys.stderr)).device.facts
    except KernelBlasterError as error:
        print(f"{error.message} ({error.hint})", file=sys.stderr)
        return int(error.exit_code)
    planted = load_all() if options.folder is None else load_folder(options.folder)
    record = Record(options.json, facts, planted)
    record.forget(record.rows.keys() - {one.name for one in planted})
    wanted = [one for one in planted if options.kind in (None, one.kind) and fnmatch.fnmatch(one.name, options.only)]
    left = in_order([one for one in wanted if one.runs_on(facts.kind)], record.rows, again=options.again)
    seconds = None if options.minutes is None else 60 * options.minutes
    sitting = Sitting(
        facts.kind,
        lambda jobs: WorkerPool(judge_task, jobs, _LIMIT_S, kind=lambda task: task.inputs),
        options.workers,
        seconds,
        seen_harmless(left, record.rows),
    )
    for done, (one, found) in enumerate(sitting.rows(left), 1):
        record.add(lost(one, facts.kind, found.reason) if isinstance(found, WorkerLost) else found)
        _tell(record.rows[one.name], done, len(left), began)
    return _conclude(record.result, time.monotonic() - began)


def _conclude(result: TrustResult, seconds: float) -> int:
    wrong = [row for row in result.rows if not row.tolerated]
    for row in wrong:
        print(f"{row.kind} {row.name}: {row.outcome}, expected {' or '.join(row.expected)}: {row.reason}")
    missing = f"{len(result.not_run)} not run here, {len(result.not_judged)} not judged yet"
    print(f"{len(result.rows)} outcomes after {seconds:.0f} s, {len(wrong)} wrong, {missing}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
