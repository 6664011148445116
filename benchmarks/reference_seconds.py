"""How long the inputs and references of each problem take on a processor, before its first kernel can be judged.

    python benchmarks/reference_seconds.py --dataset-dir data/kernrl --size medium --threads 1,2 --out seconds.json

Each problem is drawn in a process of its own, with everything that a first submission waits for: extents that no prompt
shows, what floors are reckoned of, the small sets, those at undeclared extents, the timed set, and the references of
judged timed calls. Nothing is built, and no GPU is used even where there is one. Seeds are fixed, and a digest of all
references is kept: what is made faster must still give the same. What `--out` has is not done again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random

SEED = 20261129
GPU = "NVIDIA H200"


class Parts:
    """Seconds by part: of a clock, and of processors."""

    def __init__(self) -> None:
        self.wall: dict[str, float] = {}
        self.processor: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began, used = time.monotonic(), time.process_time()
        yield
        self.wall[name] = round(time.monotonic() - began, 3)
        self.processor[name] = round(time.process_time() - used, 3)


def measure(directory: Path, size: str, precision: str, threads: int, answer: Connection) -> None:
    """Draw all of a problem, in this process, and send what it took."""
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import torch

    from kernelblaster.config import EvaluationConfig
    from kernelblaster.devices.emulated.known_gpus import facts_of
    from kernelblaster.devices.facts import DeviceKind
    from kernelblaster.evaluation.attainable import attainable
    from kernelblaster.evaluation.correctness.input_store import InputStore
    from kernelblaster.evaluation.inputs.plan import plan_inputs
    from kernelblaster.evaluation.integrity.timed_checks import choose_checks
    from kernelblaster.evaluation.roofline import floor_us
    from kernelblaster.problems.loader import load_problem
    from kernelblaster.problems.problem import Precision
    from kernelblaster.problems.undeclared_extents import undeclared_extents
    from kernelblaster.problems.varied_parameters import draw_parameters

    torch.set_num_threads(threads)
    config, problem, known = EvaluationConfig(), load_problem(directory), facts_of(GPU)
    assert known is not None
    facts, chosen = known.model_copy(update={"kind": DeviceKind.CUDA}), problem.precision_for(Precision(precision))
    parts = Parts()
    with parts("undeclared"):
        other = undeclared_extents(problem)
        drawn = None if other is None else draw_parameters(problem, other, Random(SEED))
    with parts("floors"):
        floor_us(problem, size, chosen, facts)
        attainable(problem, size, chosen, facts)
    plan = plan_inputs(problem, chosen, size, config.input_sets, SEED, other, drawn)
    digest = hashlib.sha256()
    with InputStore() as inputs:
        for part, keys in (
            ("small", plan.small),
            ("unseen", plan.verified[len(plan.small) :]),
            ("timed", (plan.timed,)),
        ):
            with parts(part):
                inputs.draw(keys)
        with parts("judged calls"):
            checks = choose_checks(inputs, plan.timed, facts, SEED, config.error_factor, config.judged_calls)
        for key in (*plan.verified, plan.timed):
            with inputs.use(key) as drawn:
                for tensor in drawn.expected.tensors:
                    digest.update(tensor.values.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    found = {"wall_s": parts.wall, "processor_s": parts.processor, "judged": len(checks.perturbations)}
    answer.send({**found, "precision": chosen, "digest": digest.hexdigest()})


def measured(directory: Path, size: str, precision: str, threads: int, limit_s: float) -> dict[str, object]:
    """What it took, or why there is no answer."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    worker = context.Process(target=measure, args=(directory, size, precision, threads, there))
    worker.start()
    there.close()
    try:
        if not here.poll(limit_s):
            return {"failed": f"no answer after {limit_s:g} s"}
        return dict(here.recv())
    except EOFError:
        return {"failed": "the process ended"}
    finally:
        worker.kill()
        worker.join()


def main() -> int:
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset-dir", type=Path, default=Path("data/kernrl"))
    parser.add_argument("--size", default="medium")
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--threads", default="1")
    parser.add_argument("--only", default="level*/*", help="patterns of directories below the data set")
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of one problem")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rows = json.loads(options.out.read_text()) if options.out.exists() else {}
    for directory in sorted(one for pattern in options.only.split(",") for one in options.dataset_dir.glob(pattern)):
        for threads in map(int, options.threads.split(",")):
            name = f"{directory.parent.name}/{directory.name}"
            if str(threads) in rows.setdefault(name, {}):
                continue
            found = measured(directory, options.size, options.precision, threads, options.limit)
            rows[name][str(threads)] = found
            options.out.write_text(json.dumps(rows, indent=1) + "\n")
            print(name, threads, json.dumps(found), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
