"""Modelled times of kernels that no capture and no fit knows, beside an H200: parents and replies of the content trial.

    python benchmarks/ptxemu/held_out_times.py measure [--minutes 60] [--sample 1]   # rows, on this processor
    python benchmarks/ptxemu/held_out_times.py report                     # the section of docs/emulator_scores.md

`measure` builds and times at `medium`, fp16, as `kernelblaster evaluate --device emulated --size medium` does, and
judges no outputs: an H200 has. All parents come first, then one reply of each, then another, each drawn by `SEED`. A
row is written as soon as it is there, failures too, and is not measured again; delete it to have that. The next kernel
is compiled while one is emulated.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from random import Random

from held_out_scores import ROWS, TRIAL, Modelled, section

from kernelblaster.config import RunConfig
from kernelblaster.devices.base import COUNTED, Build
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import BuildFailure, RunFailure
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.models.edits import parse_candidate
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.runs.evaluations import find_problem, open_evaluator
from kernelblaster.storage.jsonl import append_line, cut_torn_line

SEED = 20_261_123
"""Of the order in which replies are taken."""
CONFIG = RunConfig(device=DeviceKind.EMULATED, size=StandardWorkload.MEDIUM, precision=Precision.FP16)
_TIMEOUT_S = 200.0
_MEASURED = re.compile(r"Time of the call: ([0-9.]+) us \(measured\)")


@dataclass(frozen=True)
class HeldOut:
    """A kernel to be modelled, and what an H200 measured: `real_us` of a parent, `speedup` of a reply over it."""

    id: str
    parent: str
    family: str
    source: str
    real_us: float | None = None
    speedup: float | None = None


def read(path: Path) -> list[dict[str, object]]:
    """The lines of a file of the trial, compressed or not."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [json.loads(line) for line in text.splitlines()]


def rounds() -> list[list[HeldOut]]:
    """All parents, then one correct reply of each, then another; the parents of a round of replies in random order."""
    texts = {row["id"]: str(row["text"]) for row in read(TRIAL / "replies.jsonl.gz")}
    speedups = {row["id"]: row["speedup"] for row in read(TRIAL / "rows.jsonl") if row["speedup"] is not None}
    parents: dict[str, HeldOut] = {}
    replies: defaultdict[str, list[HeldOut]] = defaultdict(list)
    for prompt in sorted(read(TRIAL / "prompts.jsonl.gz"), key=lambda row: str(row["id"])):
        name, parent, family = (str(prompt[key]) for key in ("id", "parent", "family"))
        measured = _MEASURED.search(str(prompt["text"]))
        assert measured is not None, name
        parents[parent] = HeldOut(parent, parent, family, str(prompt["source"]), real_us=float(measured[1]))
        if name in speedups:
            source = parse_candidate(texts[name], None).source
            replies[parent].append(HeldOut(name, parent, family, source, speedup=float(str(speedups[name]))))
    for parent, own in replies.items():
        Random(f"{SEED}/{parent}").shuffle(own)
    drawn = []
    for turn in range(max(map(len, replies.values()))):
        drawn.append([own[turn] for own in replies.values() if turn < len(own)])
        Random(f"{SEED}/{turn}").shuffle(drawn[-1])
    return [[parents[parent] for parent in sorted(parents)], *drawn]


class Bench:
    """Models kernels on the emulated H200.

    Args:
        evaluator: of the emulated device, owned by the caller.
        config: that it was opened with.
    """

    def __init__(self, evaluator: Evaluator, config: RunConfig = CONFIG) -> None:
        self._evaluator = evaluator
        self._config = config

    def build(self, kernel: HeldOut) -> Build | BuildFailure:
        """Compile it, or tell why that fails. Raises DeviceError."""
        problem, judge = self._problem(kernel), self._evaluator
        harness = judge.device.prepare(problem, judge.precision_of(problem))
        try:
            return judge.device.build(judge.cuda_source(problem, kernel.source).text, harness)
        except BuildFailure as failure:
            return failure

    def model(self, kernel: HeldOut, built: Build | BuildFailure) -> Modelled:
        """The row of a kernel. Raises DeviceError and ProblemError: the machine's failure is no row."""
        began = time.monotonic()
        row = Modelled(
            id=kernel.id, parent=kernel.parent, family=kernel.family, real_us=kernel.real_us, speedup=kernel.speedup,
            modelled_us=None, executed_share=None, failure="", reason="", seconds=0,
        )  # fmt: skip
        found: dict[str, object]
        try:
            if isinstance(built, BuildFailure):
                raise built
            found = self._timed(self._problem(kernel), built)
        except (BuildFailure, RunFailure) as failure:
            found = {"failure": failure.kind.value, "reason": failure.reason[:300]}
        return Modelled(**{**asdict(row), **found, "seconds": round(time.monotonic() - began, 1)})

    def _timed(self, problem: Problem, build: Build) -> dict[str, object]:
        judge = self._evaluator
        key = judge.plan(problem).timed
        with (
            judge.inputs.use(key) as drawn,
            Workspace(judge.inputs.directory, drawn, judge.instruction_budget) as workspace,
            judge.device.open(build, workspace.job, timeout_s=judge.config.timeout_s) as session,
        ):
            (sample,) = session.time_calls([COUNTED])
        return {"modelled_us": round(sample.device_us, 3), "executed_share": sample.executed_share}

    def _problem(self, kernel: HeldOut) -> Problem:
        return find_problem(kernel.parent.rpartition("/")[0], self._config)


def waiting(path: Path) -> Iterator[HeldOut]:
    """Kernels without a row, in the order of their rounds."""
    done = {row["id"] for row in read(path)} if path.exists() else set()
    for kernels in rounds():
        yield from (kernel for kernel in kernels if kernel.id not in done)


def sampling(million: float) -> RunConfig:
    """With so many million warp instructions of each launch, and patience for a machine that others use as well."""
    evaluation = CONFIG.evaluation.model_copy(update={"emulated_sample": million, "timeout_s": _TIMEOUT_S})
    return CONFIG.model_copy(update={"evaluation": evaluation})


def measure(path: Path, minutes: float, million: float) -> None:
    """Model what has no row until the minutes are over, from samples of so many million warp instructions."""
    end = time.monotonic() + 60 * minutes
    cut_torn_line(path)
    kernels, config = list(waiting(path)), sampling(million)
    print(f"{len(kernels)} kernels without a row", flush=True)
    with open_evaluator(config, lambda stage: None) as evaluator, ThreadPoolExecutor(1) as compiler:
        bench = Bench(evaluator, config)
        ahead: Future[Build | BuildFailure] | None = None
        for place, kernel in enumerate(kernels):
            if time.monotonic() > end:
                break
            built = (ahead or compiler.submit(bench.build, kernel)).result()
            following = kernels[place + 1 : place + 2]
            ahead = compiler.submit(bench.build, following[0]) if following else None
            row = bench.model(kernel, built)
            append_line(path, json.dumps(asdict(row)).encode())
            print(f"{row.id} {row.modelled_us} {row.failure} ({row.seconds:.0f} s)", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("measure", "report"))
    parser.add_argument("--rows", type=Path, default=ROWS)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--sample", type=float, default=1.0, metavar="MILLION", help="0: every block")
    given = parser.parse_args()
    if given.action == "measure":
        measure(given.rows, given.minutes, given.sample)
    else:
        print("\n".join(section(given.rows)))


if __name__ == "__main__":
    main()
