"""Trains a model of the 8B shape with random weights on one GPU, and says what it took: memory and seconds per phase.

Random weights write no CUDA. Two kinds of parts therefore stand for the whole:

- `lengths-512`, `lengths-2048`: prompts and completions of full length, whose random text is judged as "no code".
  What generation and update take is real.
- `warmup`, `frontend`, `midend`, `backend`: an answer is the letter of one of five kernels of softmax; these are built,
  checked and timed. Generation, judging and update are real, completions short. The process of `frontend` ends itself
  in the middle once and is started again.

The random weights are written such that they name these letters about equally often (`name_letters`), so that each
part can run alone. Where the warm-up ran before, the others begin with what it taught. Weights of your own (`--model`)
hardly answer by letter before the warm-up.

Each part is a process of its own and writes a JSON file anew after each update, which says whether it is finished; the
same command makes what is missing. How well a writer of kernels can become cannot be shown this way.

    python benchmarks/h200_training.py --out out/h200_training       needs the extra `train` and a GPU with 40 GiB free
    python benchmarks/h200_training.py --parts lengths-512,backend   these alone, on weights that are made if missing
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import torch
from grpo_template import LETTERS, RARE, lay_out, midend_choices, rows_of
from tiny_policy import MIDDLE, QWEN3_8B, TINY, Shape, byte_tokenizer, decoder, name_letters

from kernelblaster import EvaluationConfig, RunConfig, environment_problems, open_evaluator
from kernelblaster.config.training import Baseline, Preset, TrainConfig
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.models.base import Message
from kernelblaster.problems.start import read_start
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.prompt_rows import PromptBuilder
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rollouts import GENERATIONS, read_rollouts
from kernelblaster.training.rows import PromptRow, ReplyForm, SftRow, answer, read_rows, write_rows
from kernelblaster.training.running import run_stage, run_warmup
from kernelblaster.training.splits import make_splits
from kernelblaster.training.stage_records import StageRecord
from kernelblaster.training.stages import Stage, plan_of

GIB = 1 << 30
PROBLEM = "L1_23"
KILLED = 9
"""Exit code of the process that ends itself in the middle of a stage."""
LENGTHS = {"lengths-512": (512, 2), "lengths-2048": (2048, 2)}
"""Part -> tokens of prompt and of completion, updates."""
BASE = "base"
PARTS = [BASE, *LENGTHS, "warmup", *Stage]
BYTES_OF_CACHE = 2 * 36 * 8 * 128 * 2
"""Per token of the 8B shape: keys and values of 36 layers, 8 heads of 128, in bf16."""


def write_base(directory: Path, shape: Shape) -> Path:
    """Random weights that name letters, in bf16 but for the smallest shape, and the byte tokenizer."""
    if (directory / "config.json").is_file():
        return directory
    catalogue = environment_problems(RunConfig())
    asked = [row.prompt for stage in (Stage.FRONTEND, Stage.MIDEND) for row in rows_of(catalogue, stage, (PROBLEM,))]
    if shape is not TINY:
        torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = decoder(shape, seed=0)
    torch.set_default_dtype(torch.float32)
    tokenizer = byte_tokenizer(shape.vocabulary)
    name_letters(model, tokenizer, [*asked, _backend_question()], LETTERS)
    tokenizer.save_pretrained(directory)
    model.save_pretrained(directory)
    return directory


class Phases:
    """Seconds and peak memory per phase, from the moments that a stage tells.

    Args:
        keep: called after each update, to write down what there is.
        kill_at: the moment and step at which the process ends; None for never.
    """

    def __init__(self, keep: Callable[[Phases], None], kill_at: tuple[str, int] | None = None) -> None:
        self._keep = keep
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
        print(f"{moment}, step {step}: {self.seconds[moment][-1]} s", flush=True)
        if moment == "updated":
            self._keep(self)
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


class Part:
    """One part in this process, and the file that tells what it took.

    Args:
        given: the command's arguments.
    """

    def __init__(self, given: argparse.Namespace) -> None:
        self._given = given
        self._name = given.part
        self._began = time.monotonic()
        self._shape = {"tiny": TINY, "middle": MIDDLE, "8b": QWEN3_8B}[given.shape]
        self._stage = Stage(self._name) if self._name in set(Stage) else Stage.FRONTEND
        self._layout = TrainingLayout(given.out / (self._name if self._name in LENGTHS else "training"))
        self._phases = Phases(self._keep, ("judged", max(1, given.steps - 2)) if given.kill else None)

    def run(self) -> None:
        """Runs it, and leaves its file."""
        given = self._given
        print(f"{self._name}: begun on {_device_name()}", flush=True)
        base = given.model or write_base(given.base, self._shape)
        if self._name == BASE:
            self._keep(self._phases, finished=True)
            return
        config = settings(given, base)
        judging = RunConfig(device=given.device, size="small", evaluation=EvaluationConfig(input_sets=2))
        catalogue = environment_problems(judging)
        if self._name in LENGTHS:
            lay_out_long(self._layout, LENGTHS[self._name][0], given.shape)
        else:
            lay_out(self._layout, catalogue, names=(PROBLEM,))
            add_backend_letters(self._layout)
        if self._name == "warmup":
            run_warmup(self._layout, config, self._phases)
            self._keep(self._phases, finished=True)
            return
        with open_evaluator(judging) as evaluator:
            judge = StoredJudge(SharedJudge(evaluator), catalogue, self._layout.judged)
            if self._name == Stage.BACKEND:
                lay_out_backend(self._layout, catalogue, judge)
            print(f"{self._name}: prompts are made, {time.monotonic() - self._began:.1f} s", flush=True)
            record = run_stage(self._layout, config, self._stage, judge, self._phases)
            self._keep(self._phases, finished=True, record=record, judged=judge.judged)

    def _keep(
        self, phases: Phases, *, finished: bool = False, record: StageRecord | None = None, judged: int | None = None
    ) -> None:
        """Write what is known by now."""
        given, name = self._given, self._name
        estimate = estimated(LENGTHS.get(name, (16, 0))[0], plan_of(TrainConfig(), self._stage).generations)
        rollouts = [] if name in (BASE, "warmup") else read_rollouts(self._layout.stage(self._stage))
        found = {
            "part": name,
            "finished": finished,
            "shape": given.shape if given.model is None else str(given.model),
            "updates": len(phases.seconds["updated"]) if record is None else record.updates,
            "judged": judged,
            "begins_with": None if record is None else record.begins_with,
            "metrics": None if record is None or record.metrics is None else record.metrics.model_dump(),
            "tokens": [one.tokens for one in rollouts],
            "rewards": [one.reward for one in rollouts],
            "seconds": dict(phases.seconds),
            "wall_seconds": round(time.monotonic() - self._began, 1),
            "peak_gib": phases.peak_gib,
            "device": _device_name(),
            "estimated_gib": estimate if given.shape == "8b" else None,
            "torch": torch.__version__,
        }
        write_atomically(given.out / f"{name}.json", json.dumps(found, indent=1) + "\n")
        if finished:
            print(json.dumps({key: value for key, value in found.items() if key != "rewards"}), flush=True)


def _device_name() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def settings(given: argparse.Namespace, base: Path) -> TrainConfig:
    """Of a part: lengths and KL term of the report where lengths are at issue, else what lets letters be learned."""
    if given.part in LENGTHS:
        tokens, steps = LENGTHS[given.part]
        tokens = 64 if given.shape == "tiny" else tokens
        return TrainConfig(
            model=base, preset=Preset.SEED, baseline=Baseline.START, steps=steps, prompt_tokens=tokens,
            completion_tokens=tokens, minutes=given.minutes,
        )  # fmt: skip
    return TrainConfig(
        model=base,
        steps=given.warmup_steps if given.part == "warmup" else given.steps,
        prompt_tokens=4096,
        completion_tokens=1,
        learning_rate=given.learning_rate,
        warmup_learning_rate=given.warmup_learning_rate,
        checkpoint_steps=max(1, given.steps // 2),
        minutes=given.minutes,
    )


def lay_out_long(layout: TrainingLayout, tokens: int, shape: str) -> None:
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
    if not rows:
        profile = judge.evaluate(problem, read_start(problem), read_start(problem), profile=True)[1].profile
        sys.exit(f"no bottleneck could be named, so there is no prompt: {'no profile' if profile is None else profile}")
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
    arguments.add_argument("--minutes", type=float, help="after which a part ends; the same command goes on with it")
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
        Part(given).run()
        return
    command = [sys.executable, __file__, *sys.argv[1:], "--part"]
    asked = given.parts.split(",")
    for part in asked if given.model or BASE in asked else [BASE, *asked]:
        if _is_finished(given.out / f"{part}.json"):
            continue
        if part == Stage.FRONTEND:
            killed_and_resumed(given, [*command, part])
        else:
            subprocess.run([*command, part], check=True)


def _is_finished(path: Path) -> bool:
    return path.is_file() and bool(json.loads(path.read_text())["finished"])


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
