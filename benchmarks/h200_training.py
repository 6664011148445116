"""Trains a model of the 8B shape with random weights on one GPU, and says what it took: memory and seconds per phase.

Random weights write no CUDA, so that a choice of five kernels of softmax stands for the reply; generation, judging and
update are real. A stage is killed in the middle, once, and resumed in a fresh process; both must agree on what was
generated. Quality of a writer cannot be shown this way.

    python benchmarks/h200_training.py --out out/h200_training       needs the extra `train` and a GPU with 40 GiB free
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

import torch
from grpo_template import lay_out
from tiny_policy import QWEN3_8B, TINY, byte_tokenizer, decoder, write_policy

from kernelblaster import EvaluationConfig, RunConfig, environment_problems, open_evaluator
from kernelblaster.config.training import TrainConfig
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.running import run_stage
from kernelblaster.training.stages import Stage

GIB = 1 << 30
ESTIMATED = {"weights_gib": 15.3, "peak_gib_4x1024": 20.0, "adapter_parameters": 43_646_976}
"""Arithmetic from the shape: bf16 weights, K = 4 completions of 512 tokens after prompts of 512, LoRA of rank 16."""
KILLED = 9
"""Exit code of the process that ends itself in the middle of a stage."""


def write_large(directory: Path) -> Path:
    """The 8B shape with random bf16 weights and the byte tokenizer filled up to its vocabulary."""
    if (directory / "config.json").is_file():
        return directory
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda"):
        model = decoder(QWEN3_8B, seed=0)
    torch.set_default_dtype(torch.float32)
    model.save_pretrained(directory)
    byte_tokenizer(QWEN3_8B.vocabulary).save_pretrained(directory)
    del model
    torch.cuda.empty_cache()
    return directory


class Phases:
    """Seconds and peak memory per phase, from the moments that a stage tells.

    Args:
        kill_at: the moment and step at which the process ends; None for never.
    """

    def __init__(self, kill_at: tuple[str, int] | None) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.peak: dict[str, float] = {}
        self._kill_at = kill_at
        self._last = time.monotonic()

    def __call__(self, moment: str, step: int) -> None:
        now = time.monotonic()
        self.seconds[moment].append(now - self._last)
        if torch.cuda.is_available():
            self.peak[moment] = max(self.peak.get(moment, 0.0), torch.cuda.max_memory_allocated() / GIB)
            torch.cuda.reset_peak_memory_stats()
        if (moment, step) == self._kill_at:
            os._exit(KILLED)
        self._last = time.monotonic()


def train(given: argparse.Namespace) -> None:
    """One stage in this process; writes what it took."""
    out: Path = given.out
    base = write_policy(out / "base", TINY) if given.tiny else write_large(out / "base")
    config = TrainConfig(
        model=given.model or base,
        steps=given.steps,
        completion_tokens=given.tokens,
        prompt_tokens=4096,
        checkpoint_steps=max(1, given.steps // 2),
    )
    layout = TrainingLayout(out / "training")
    judging = RunConfig(device=given.device, evaluation=EvaluationConfig(input_sets=2))
    catalogue = environment_problems(judging)
    lay_out(layout, catalogue)
    kill_at = ("judged", given.steps - 2) if given.kill else None
    phases = Phases(kill_at)
    with open_evaluator(judging) as evaluator:
        judge = StoredJudge(SharedJudge(evaluator), catalogue, layout.judged)
        run_stage(layout, config, Stage(given.stage), judge, phases)
    found = {
        "stage": given.stage,
        "seconds": dict(phases.seconds),
        "peak_gib": phases.peak,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "estimated": ESTIMATED,
        "judged": judge.judged,
        "rollouts": len(read_rollouts(layout.stage(Stage(given.stage)))),
    }
    (out / f"{given.stage}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found), flush=True)


def main() -> None:
    """Both stages, each in a process of its own; the first is killed once and resumed."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("out/h200_training"))
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--tokens", type=int, default=512, help="tokens of a completion")
    arguments.add_argument("--model", type=Path, help="weights of your own instead of random ones")
    arguments.add_argument("--device", default="cuda", help="of the judge")
    arguments.add_argument("--tiny", action="store_true", help="the tiny shape, to try the script without a GPU")
    arguments.add_argument("--stage", choices=list(Stage), help="one stage in this process")
    arguments.add_argument("--kill", action="store_true", help="end the process in the middle of the stage")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    if given.stage:
        train(given)
        return
    command = [sys.executable, __file__, *sys.argv[1:], "--stage"]
    killed = subprocess.run([*command, Stage.FRONTEND, "--kill"], check=False).returncode
    if killed != KILLED:
        sys.exit(f"the process that was to end itself ended with {killed}")
    kept = (given.out / "training" / Stage.FRONTEND / "generations.jsonl").read_bytes()
    for stage in Stage:
        subprocess.run([*command, stage], check=True)
    resumed = (given.out / "training" / Stage.FRONTEND / "generations.jsonl").read_bytes()
    print("resumed on what was generated before the kill:", resumed.startswith(kept))


if __name__ == "__main__":
    main()
