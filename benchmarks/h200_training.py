"""Trains a model of the 8B shape with random weights on one GPU, and says what it took: memory and seconds per phase.

Random weights write no CUDA. Two kinds of parts therefore stand for the whole:

- `lengths-512`, `lengths-2048`: prompts and completions of full length, whose random text is judged as "no code".
  What generation and update take is real.
- `warmup`, `frontend`, `midend`, `backend`: the model first learns to answer by the letter of one of five kernels of
  softmax; these are built, checked and timed. Generation, judging and update are real, completions short. The process
  of `frontend` ends itself in the middle once and is started again.

Each part is a process of its own and leaves a JSON file; the same command makes what is missing. How well a writer of
kernels can become cannot be shown this way. With `--model` the same runs on weights of your own.

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
from grpo_template import LETTERS, RARE, lay_out, midend_choices
from tiny_policy import MIDDLE, QWEN3_8B, TINY, Shape, byte_tokenizer, decoder, write_policy

from kernelblaster import EvaluationConfig, RunConfig, environment_problems, open_evaluator
from kernelblaster.config.training import Baseline, Preset, TrainConfig
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.models.base import Message
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.prompt_rows import PromptBuilder
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rollouts import GENERATIONS, read_rollouts
from kernelblaster.training.rows import PromptRow, ReplyForm, SftRow, answer, read_rows, write_rows
from kernelblaster.training.running import run_stage, run_warmup
from kernelblaster.training.splits import make_splits
from kernelblaster.training.stages import Stage, plan_of

GIB = 1 << 30
PROBLEM = "L1_23"
KILLED = 9
"""Exit code of the process that ends itself in the middle of a stage."""
LENGTHS = {"lengths-512": (512, 3), "lengths-2048": (2048, 2)}
"""Part -> tokens of prompt and of completion, updates."""
PARTS = [*LENGTHS, "warmup", *Stage]
BYTES_OF_CACHE = 2 * 36 * 8 * 128 * 2
"""Per token of the 8B shape: keys and values of 36 layers, 8 heads of 128, in bf16."""


def write_large(directory: Path, shape: Shape) -> Path:
    """A shape with random bf16 weights and the byte tokenizer filled up to its vocabulary."""
    if (directory / "config.json").is_file():
        return directory
    torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = decoder(shape, seed=0)
    torch.set_default_dtype(torch.float32)
    byte_tokenizer(shape.vocabulary).save_pretrained(directory)
    model.save_pretrained(directory)
    return directory


class Phases:
    """Seconds and peak memory per phase, from the moments that a stage tells.

    Args:
        kill_at: the moment and step at which the process ends; None for never.
    """

    def __init__(self, kill_at: tuple[str, int] | None = None) -> None:
        self.seconds: defaultdict[str, list[float]] = defaultdict(list)
        self.peak_gib: dict[str, float] = {}
        self._kill_at = kill_at
        self._last = time.monotonic()

    def __call__(self, moment: str, step: int) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            self.peak_gib[moment] = max(self.peak_gib.get(moment, 0.0), torch.cuda.max_memory_allocated() / GIB)
            torch.cuda.reset_peak_memory_stats()
        self.seconds[moment].append(round(time.monotonic() - self._last, 3))
        if (moment, step) == self._kill_at:
            os._exit(KILLED)
        self._last = time.monotonic()


def estimated(tokens: int, completions: int) -> dict[str, float]:
    """GiB by arithmetic for the 8B shape with LoRA of rank 16, `tokens` of prompt and as many of completion."""
    weights, adapter = 8_190_735_360 * 2 / GIB, 43_646_976 * 16 / GIB
    cache = completions * 2 * tokens * BYTES_OF_CACHE / GIB
    kept = completions * 2 * tokens * 4096 * 2 * 36 / GIB
    logits = completions * tokens * 151_936 * 2 * 2 / GIB
    return {
        "weights": weights,
        "adapter, gradients, Adam": adapter,
        "generated": weights + adapter + cache,
        "updated": weights + adapter + kept * (1 + 20 / 36) + logits,
        "updated, logits in fp32 as well": weights + adapter + kept * (1 + 20 / 36) + 2 * logits,
    }


def run_part(given: argparse.Namespace) -> None:
    """One part in this process; writes what it took."""
    began = time.monotonic()
    shape = {"tiny": TINY, "middle": MIDDLE, "8b": QWEN3_8B}[given.shape]
    base = given.model or (write_policy(given.base, TINY) if given.shape == "tiny" else write_large(given.base, shape))
    judging = RunConfig(device=given.device, size="small", evaluation=EvaluationConfig(input_sets=2))
    catalogue = environment_problems(judging)
    config, stage, name = settings(given, base), Stage.FRONTEND, given.part
    layout = TrainingLayout(given.out / (name if name in LENGTHS else "training"))
    phases = Phases(("judged", max(1, given.steps - 2)) if given.kill else None)
    found: dict[str, object] = {"part": name, "shape": given.shape if given.model is None else str(given.model)}
    if name == "warmup":
        lay_out(layout, catalogue, names=(PROBLEM,))
        add_backend_letters(layout)
        run_warmup(layout, config, phases)
    else:
        with open_evaluator(judging) as evaluator:
            judge = StoredJudge(SharedJudge(evaluator), catalogue, layout.judged)
            if name in LENGTHS:
                lay_out_long(layout, base, LENGTHS[name][0], given.shape)
            else:
                stage = Stage(name)
            if stage is Stage.BACKEND:
                lay_out_backend(layout, catalogue, judge)
            record = run_stage(layout, config, stage, judge, phases)
        found |= {"updates": record.updates, "judged": judge.judged, "begins_with": record.begins_with}
        found["metrics"] = record.metrics.model_dump() if record.metrics else None
        found["rewards"] = [one.reward for one in read_rollouts(layout.stage(stage))]
    plan = plan_of(config, stage)
    found |= {
        "seconds": dict(phases.seconds),
        "wall_seconds": round(time.monotonic() - began, 1),
        "peak_gib": phases.peak_gib,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "estimated_gib": estimated(LENGTHS.get(name, (16, 0))[0], plan.generations) if given.shape == "8b" else None,
        "torch": torch.__version__,
    }
    (given.out / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps({key: value for key, value in found.items() if key != "rewards"}), flush=True)


def settings(given: argparse.Namespace, base: Path) -> TrainConfig:
    """Of a part: lengths and KL term of the report where lengths are at issue, else what lets letters be learned."""
    if given.part in LENGTHS:
        tokens, steps = LENGTHS[given.part]
        tokens = 64 if given.shape == "tiny" else tokens
        return TrainConfig(
            model=base, preset=Preset.SEED, baseline=Baseline.START, steps=steps, prompt_tokens=tokens,
            completion_tokens=tokens,
        )  # fmt: skip
    return TrainConfig(
        model=base,
        steps=given.warmup_steps if given.part == "warmup" else given.steps,
        prompt_tokens=4096,
        completion_tokens=8,
        learning_rate=given.learning_rate,
        warmup_learning_rate=given.warmup_learning_rate,
        checkpoint_steps=max(1, given.steps // 2),
    )


def lay_out_long(layout: TrainingLayout, base: Path, tokens: int, shape: str) -> None:
    """A prompt of almost so many tokens: a byte is one, where the tokenizer is that of bytes."""
    text = "softmax " * ((64 if shape == "tiny" else tokens) // 8 - 2)
    row = PromptRow(
        prompt=(Message(role="user", content=text.strip()),), problem="level1/023", stage="frontend", precision="fp16",
        size="small", family="softmax", split="train",
    )  # fmt: skip
    write_rows(layout.prompts(Stage.FRONTEND), [row])


def add_backend_letters(layout: TrainingLayout) -> None:
    """The warm-up teaches letters for a short stand-in of the prompt of `backend`, too."""
    rows = read_rows(layout.data / "sft.jsonl", SftRow)
    more = [
        rows[0].model_copy(update={"prompt": _backend_question(), "completion": answer(letter), "stage": Stage.BACKEND})
        for letter in LETTERS * (RARE // 5)
    ]
    write_rows(layout.data / "sft.jsonl", [*rows, *more])


def _backend_question() -> tuple[Message, ...]:
    return (Message(role="user", content=f"{Stage.BACKEND.value[0]} Softmax"),)


def lay_out_backend(layout: TrainingLayout, catalogue: Catalogue, judge: StoredJudge) -> None:
    """Rows of stage `backend` as `train data` makes them, counters collected, asked in short and answered by letter."""
    problem = catalogue.find(PROBLEM)
    prompts = PromptBuilder(judge, make_splits(catalogue.problems), PromptForm.SHORT)
    rows = prompts.backend([problem], {})
    print(rows[0].prompt[-1].content[-1500:], flush=True)
    asked = [
        row.model_copy(
            update={
                "prompt": _backend_question(),
                "reply": ReplyForm.CHOICE,
                "choices": json.dumps(midend_choices(row.parent)),
            }
        )
        for row in rows[:1]
    ]
    write_rows(layout.prompts(Stage.BACKEND), asked)


def main() -> None:
    """The parts that are missing, each in a process of its own; `frontend` is killed once and started again."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("out/h200_training"))
    arguments.add_argument("--base", type=Path, help="where the random weights are written; OUT/base if not given")
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--warmup-steps", type=int, default=80)
    arguments.add_argument("--learning-rate", type=float, default=1e-4)
    arguments.add_argument("--warmup-learning-rate", type=float, default=1e-3)
    arguments.add_argument("--model", type=Path, help="weights of your own instead of random ones")
    arguments.add_argument("--device", default="cuda", help="of the judge")
    arguments.add_argument("--shape", choices=["tiny", "middle", "8b"], default="8b", help="of the random weights")
    arguments.add_argument("--parts", default=",".join(PARTS))
    arguments.add_argument("--part", choices=PARTS, help="one part in this process")
    arguments.add_argument("--kill", action="store_true", help="end the process in the middle of the stage")
    given = arguments.parse_args()
    given.base = given.base or given.out / "base"
    given.out.mkdir(parents=True, exist_ok=True)
    if given.part:
        run_part(given)
        return
    command = [sys.executable, __file__, *sys.argv[1:], "--part"]
    for part in given.parts.split(","):
        if (given.out / f"{part}.json").is_file():
            continue
        if part == Stage.FRONTEND:
            killed_and_resumed(given, [*command, part])
        else:
            subprocess.run([*command, part], check=True)


def killed_and_resumed(given: argparse.Namespace, command: list[str]) -> None:
    """`frontend`, ended in the middle and started again: what was generated before must stay, and nothing twice."""
    path = given.out / "training" / Stage.FRONTEND / GENERATIONS
    killed = subprocess.run([*command, "--kill"], check=False).returncode
    if killed != KILLED:
        sys.exit(f"the process that was to end itself ended with {killed}")
    kept = path.read_bytes()
    subprocess.run(command, check=True)
    lines = [json.loads(line)["step"] for line in path.read_text().splitlines()]
    found = {"kept": path.read_bytes().startswith(kept), "each step once": lines == sorted(set(lines))}
    (given.out / "resumed.json").write_text(json.dumps(found) + "\n")
    print(found, flush=True)


if __name__ == "__main__":
    main()
