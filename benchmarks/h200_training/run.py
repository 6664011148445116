"""Trains a model of the 8B shape with random weights on one GPU, and says what it took: memory and seconds per phase.

Random weights write no CUDA. Answers are therefore letters that name one of five kernels of a template problem; these
are built, checked and timed, so that generation, judging and update are real:

- `warmup`, `frontend`, `midend`, `backend`: completions of one letter. The process of `frontend` ends itself in the
  middle and is started again; `undisturbed` is the same stage without that, and what both came to is compared.
- `elsewhere`: `frontend`, judged by a server on another GPU (`--judge`).
- `lengths-512`, `lengths-2048`, `lengths-4096`: prompts and completions of so many tokens, with the report's settings.
  The first token is the letter; what follows is written and trained on, and says nothing.
- `eval` samples base and trained weights on three held-out problems, `serve` asks the served model.

The random weights are written such that they name these letters about equally often, so that each part can run without
the warm-up. Weights of your own (`--model`) hardly answer by letter before it.

Each part is a process of its own and writes OUT/PART.json anew after each update; the same command makes what is
missing, and one that fails leaves the others alone. How well a writer of kernels becomes cannot be shown this way.

    python benchmarks/h200_training/run.py --out out/h200      needs the extra `train` and a GPU with 40 GiB free
    python benchmarks/h200_training/run.py --out out/h200 --parts lengths-512,lengths-2048
    python benchmarks/h200_training/run.py --merge out/h200 --into docs/results/h200_training
    python benchmarks/h200_training/run.py --out out/dry --shape tiny --device emulated --steps 3    tries the command
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import fields
from pathlib import Path

import torch
from parts import ELSEWHERE, KILLED, PARTS, UNDISTURBED, WEIGHTS, Asked, Part
from safetensors.torch import load_file
from tables import merge
from weights import SHAPES

from kernelblaster.training.rollouts import GENERATIONS, ROLLOUTS
from kernelblaster.training.stages import Stage

_BY_DEFAULT = [part for part in PARTS if part not in ("lengths-4096", ELSEWHERE)]


def parsed() -> argparse.Namespace:
    """The command's arguments."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("out/h200_training"), help="of the files that tell")
    arguments.add_argument("--work", type=Path, help="of weights and trainings; OUT/work if not given")
    arguments.add_argument("--parts", default=",".join(_BY_DEFAULT))
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--warmup-steps", type=int, default=40)
    arguments.add_argument("--lengths-steps", type=int, help="of the parts lengths-N")
    arguments.add_argument("--micro-batch", type=int, help="completions that an update goes through at once")
    arguments.add_argument("--minutes", type=float, help="after which a stage ends; the same command goes on with it")
    arguments.add_argument("--limit", type=float, default=300.0, help="seconds after which a part's process is ended")
    arguments.add_argument("--model", type=Path, help="weights of your own instead of random ones")
    arguments.add_argument("--device", default="cuda", help="of the judge")
    arguments.add_argument("--shape", choices=list(SHAPES), default="8b", help="of the random weights")
    arguments.add_argument("--part", choices=PARTS, help="one part in this process")
    arguments.add_argument("--judge", help="address of a server on another GPU, for the part `elsewhere`")
    arguments.add_argument("--kill", action="store_true", help="end the process in the middle of the stage")
    arguments.add_argument("--merge", type=Path, help="a directory of files that tell, put into --into")
    arguments.add_argument("--into", type=Path, default=Path("docs/results/h200_training"), help="without its ending")
    given = arguments.parse_args()
    given.work = given.work or given.out / "work"
    return given


def main() -> None:
    """The parts that are missing, each in a process of its own."""
    given = parsed()
    if given.merge:
        merge(given.merge, given.into)
        return
    given.out.mkdir(parents=True, exist_ok=True)
    given.work.mkdir(parents=True, exist_ok=True)
    if given.part:
        Part(Asked(**{field.name: getattr(given, field.name) for field in fields(Asked)})).run()
        return
    wanted = given.parts.split(",")
    failed = []
    for part in wanted if given.model or WEIGHTS in wanted else [WEIGHTS, *wanted]:
        if not _is_finished(given.out / f"{part}.json") and not _made(given, part):
            failed.append(part)
        if part in (Stage.FRONTEND, UNDISTURBED) and {Stage.FRONTEND, UNDISTURBED} <= _finished_parts(given.out):
            _compare(given)
    merge(given.out, given.out / "all")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def _made(given: argparse.Namespace, part: str) -> bool:
    """Whether a part ended well; `frontend` is ended in the middle once and started again."""
    if part != Stage.FRONTEND or (given.out / "killed.json").exists():
        return _process(given, part) == 0
    if _process(given, part, "--kill") != KILLED:
        return False
    shutil.copy(given.out / f"{part}.json", given.out / "killed.json")
    generations = given.work / "training" / part / GENERATIONS
    before = generations.read_bytes()
    ended = _process(given, part)
    lines = [json.loads(line)["step"] for line in generations.read_text().splitlines()]
    _write(given.out / "resumed.json", {
        "part": "resumed",
        "kept what was generated": generations.read_bytes().startswith(before),
        "each step once": lines == sorted(set(lines)),
        "steps before it was killed": before.count(b"\n"),
    })  # fmt: skip
    return ended == 0


def _process(given: argparse.Namespace, part: str, *more: str) -> int:
    """The exit code of a part's process; that of a killed one where it ran past the limit."""
    command = [sys.executable, __file__, *sys.argv[1:], "--part", part, *more]
    began = time.monotonic()
    with (given.out / f"{part}.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, start_new_session=True)
        try:
            code = process.wait(given.limit)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)  # with the judge's processes, which hold the GPU
            code = process.wait()
    end = (given.out / f"{part}.log").read_text(errors="replace").splitlines()[-3:]
    print(f"{part}: exit code {code}, {time.monotonic() - began:.0f} s", *(line[:400] for line in end), sep="\n| ")
    sys.stdout.flush()
    return code


def _compare(given: argparse.Namespace) -> None:
    """What the stage that was killed came to beside the one that was not."""
    one, other = (given.work / name / Stage.FRONTEND for name in ("training", UNDISTURBED))
    weights, others = (load_file(path / "adapter" / "adapter_model.safetensors") for path in (one, other))
    written, written_too = (
        [json.loads(line)["completions"] for line in (path / GENERATIONS).read_text().splitlines()]
        for path in (one, other)
    )
    rewards, rewards_too = (
        [json.loads(line)["reward"] for line in (path / ROLLOUTS).read_text().splitlines()[1:]] for path in (one, other)
    )
    differences = [float((weights[name].float() - others[name].float()).abs().max()) for name in weights]
    _write(given.out / "comparison.json", {
        "part": "comparison",
        "same completions": written == written_too,
        "same rewards": rewards == rewards_too,
        "same weights, bit for bit": all(torch.equal(weights[name], others[name]) for name in weights),
        "largest difference of a weight": max(differences),
        "largest weight": max(float(tensor.float().abs().max()) for tensor in weights.values()),
    })  # fmt: skip


def _write(path: Path, found: dict[str, object]) -> None:
    path.write_text(json.dumps({**found, "finished": True}, indent=1) + "\n")
    print(found, flush=True)


def _finished_parts(out: Path) -> set[str]:
    return {path.stem for path in out.glob("*.json") if path.stem in PARTS and _is_finished(path)}


def _is_finished(path: Path) -> bool:
    return path.is_file() and bool(json.loads(path.read_text())["finished"])


if __name__ == "__main__":
    main()
