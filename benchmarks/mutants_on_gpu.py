"""Does the judge notice on a GPU the mutants that it notices on the emulated device?

    python benchmarks/mutants_on_gpu.py --json FILE [--minutes M] [--workers N]

Judged are the mutants that `docs/results/mutants.json` counts: those that build and are not the original. They are
taken in groups of one kernel, in an order drawn by a fixed seed, so that a run which is cut short leaves a sample; the
same command goes on. Nothing is timed and no sanitizer runs: of the emulated device's verdicts none came from one.
Candidates are the project's own and verified beside each other.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from mutants import FINAL_KERNELS, SEED, SURVIVED, TIMEOUT_S, MutantRow, MutationResult, Origin, origins
from mutation_rules import Mutant, derive

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.errors import KernelBlasterError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.worker_pool import WorkerLost, WorkerPool
from kernelblaster.storage.atomic import write_atomically

EMULATED = FINAL_KERNELS.parent / "mutants.json"
GROUP = 8
"""Mutants of one kernel that a process judges in a row, its inputs drawn once."""
_THREADS = 2
"""Of a process: one compiles while the other verifies."""
_LIMIT_S = 300.0
_REFERENCE_BYTES = 1 << 30


@dataclass(frozen=True)
class Group:
    """Some mutants of one kernel, for one process.

    Attributes:
        counted: what the emulated device found, in the order of `mutants`.
    """

    device: str
    origin: Origin
    mutants: tuple[Mutant, ...]
    counted: tuple[MutantRow, ...]


def groups(device: str, counted: Sequence[MutantRow], known: frozenset[str]) -> list[Group]:
    """What is left to judge, in an order that does not depend on what is known."""
    random, found = Random(SEED), []
    rows = {row.id: row for row in counted}
    for origin in origins():
        mutants = [one for one in derive(origin.name, origin.source, per_rule=2) if one.id in rows]
        random.shuffle(mutants)
        found += [(origin, mutants[start : start + GROUP]) for start in range(0, len(mutants), GROUP)]
    random.shuffle(found)
    left = ((origin, tuple(one for one in some if one.id not in known)) for origin, some in found)
    return [Group(device, origin, some, tuple(rows[one.id] for one in some)) for origin, some in left if some]


@cache
def _evaluator(device: str) -> Evaluator:
    chosen = choose_device(RunConfig(device=device), lambda text: None).device
    return Evaluator(
        chosen,
        InputStore(reference_bytes=_REFERENCE_BYTES),  # the next store sweeps what it leaves
        EvaluationConfig(timeout_s=TIMEOUT_S, in_company=True),
        StandardWorkload.SMALL,
        precision=Precision.FP16,
        seed=SEED,
    )


def judge_group(group: Group) -> list[MutantRow]:
    """Judge a group; called in a process that keeps its inputs for the next."""
    evaluator = _evaluator(group.device)

    def judged(mutant: Mutant, before: MutantRow) -> MutantRow:
        began = time.monotonic()
        try:
            found = evaluator.evaluate(group.origin.problem, mutant.source, profile=False, tier=Tier.CORRECT)
            outcome, reason = (SURVIVED if found.correct else found.verdict.value), found.reason
        except KernelBlasterError as error:
            outcome, reason = type(error).__name__, str(error)
        told = {"outcome": outcome, "reason": reason[:200], "seconds": time.monotonic() - began}
        return before.model_copy(update=told)

    with ThreadPoolExecutor(_THREADS) as threads:
        return list(threads.map(judged, group.mutants, group.counted))


def judge(device: str, path: Path, workers: int, seconds: float | None) -> Iterator[MutationResult]:
    """All that is known so far, after each group. Raises KernelBlasterError."""
    began = time.monotonic()
    facts = choose_device(RunConfig(device=device), lambda text: print(text, file=sys.stderr)).device.facts
    emulated = MutationResult.model_validate_json(EMULATED.read_text(encoding="utf-8"))
    counted = [row for row in emulated.rows if row.counted]
    rows, before = {}, 0.0
    if path.is_file():
        earlier = MutationResult.model_validate_json(path.read_text(encoding="utf-8"))
        rows, before = {row.id: row for row in earlier.rows if row.judged}, earlier.seconds

    def may_start() -> bool:
        return seconds is None or time.monotonic() - began < seconds

    pool = WorkerPool(judge_group, workers, _LIMIT_S)
    for group, found in pool.run(groups(device, counted, frozenset(rows)), may_start):
        if isinstance(found, WorkerLost):
            print(f"{group.origin.name}: {found.reason}", file=sys.stderr)
            continue
        for row in found:
            if row.judged:
                rows[row.id] = row
            else:  # the machine failed; the next call tries once more
                print(f"{row.id}: {row.outcome}: {row.reason}", file=sys.stderr)
        yield MutationResult(
            device=facts.name,
            input_sets=EvaluationConfig().input_sets,
            sources=sorted({row.id.partition(":")[0] for row in rows.values()}),
            left_out={},
            rows=[rows[row.id] for row in counted if row.id in rows],
            seconds=before + time.monotonic() - began,
        )


def compared(emulated: MutationResult, gpu: MutationResult) -> Iterator[str]:
    """What a GPU's sample says beside the emulated device, for docs/trust.md."""
    before = {row.id: row for row in emulated.rows}
    caught = sum(row.caught for row in gpu.rows)
    counted = sum(row.counted for row in emulated.rows)
    same = sum(before[row.id].caught for row in gpu.rows)
    left = counted - len(gpu.rows)
    rest = f" ({left} are left: the machine failed before there was a candidate, or the time was over)" if left else ""
    yield (
        f"On an {gpu.device} {len(gpu.rows)} of these {counted} were judged as well{rest}: verified, not timed, "
        f"without sanitizers. Caught: {caught}; the emulated device "
        f"catches {same} of the same. It checks the bounds of every access and runs warps apart. On a GPU memory "
        "behind a tensor is looked at in timed calls alone, and compute-sanitizer looks for both at finalists. "
        "`level1_089/start:store_narrow:0` passed for another reason: PyTorch's own scan adds in fp16 on a GPU, and "
        "set the budget. It is taken in fp32 since; not judged there again."
    )
    yield ""
    yield "| survives on the GPU | line | now reads | on the emulated device |"
    yield "|---|---|---|---|"
    for row in gpu.rows:
        if row.counted and not row.caught:
            text, known = row.text.replace("|", "\\|"), before[row.id]
            told = known.outcome if known.caught else f"{known.outcome}, see above"
            yield f"| {row.id} | {row.line} | `{text}` | {told} |"


def main() -> int:
    """Judge, write the JSON file after each group, print the share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--minutes", type=float, help="begin no group later than this")
    options = parser.parse_args()
    result = None
    try:
        seconds = None if options.minutes is None else 60 * options.minutes
        for result in judge(options.device, options.json, options.workers, seconds):
            write_atomically(options.json, result.model_dump_json(indent=1) + "\n", sync=False)
            caught = sum(row.caught for row in result.rows)
            print(f"{result.seconds:6.0f} s: {len(result.rows)} judged, {caught} caught", file=sys.stderr, flush=True)
    except KernelBlasterError as error:
        print(f"{error.message} ({error.hint})", file=sys.stderr)
        return int(error.exit_code)
    return 0


if __name__ == "__main__":
    sys.exit(main())
