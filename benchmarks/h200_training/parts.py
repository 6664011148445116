"""The parts of `run.py`, each in a process of its own: what it does, and the file that tells what it took."""

from __future__ import annotations

import gc
import json
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self

import torch
from layouts import BACKEND, add_backend_letters, every_prompt, lay_out_backend, lay_out_long, link_to
from served import AT_ONCE, ask_served
from weights import SHAPES, of_long_texts, write_base

from kernelblaster import EvaluationConfig, RunConfig, environment_problems
from kernelblaster.api.training_support import open_judge
from kernelblaster.config.training import Baseline, Preset, TrainConfig
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.arms import BASE, Arm
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.phases import GIB, PhaseCost
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.running import open_served, run_evaluation, run_stage, run_warmup
from kernelblaster.training.serving import ServedModel
from kernelblaster.training.stage_records import StageRecord, read_record
from kernelblaster.training.stages import Stage, plan_of
from kernelblaster.training.template import template_rows, write_template

WEIGHTS, WARMUP, UNDISTURBED, EVAL, SERVE = "base", "warmup", "undisturbed", "eval", "serve"
ELSEWHERE = "elsewhere"
"""`frontend`, judged by a server on another GPU."""
LENGTHS = {"lengths-512": (512, 10), "lengths-2048": (2048, 2), "lengths-4096": (4096, 1)}
"""Part -> tokens of prompt and of completion, updates unless others are asked for."""
PARTS = (WEIGHTS, WARMUP, Stage.FRONTEND, UNDISTURBED, Stage.MIDEND, EVAL, SERVE, BACKEND, ELSEWHERE, *LENGTHS)
KILLED = 9
"""Exit code of the process that ends itself in the middle of a stage."""
SIZE = "small"
_BYTES_OF_CACHE = 2 * 36 * 8 * 128 * 2
"""Per token of the 8B shape: keys and values of 36 layers, 8 heads of 128, in bf16."""
_ARMS = ((BASE, Stage.FRONTEND, ""), (Stage.FRONTEND, Stage.FRONTEND, BASE), (BASE, Stage.MIDEND, ""),
         (Stage.MIDEND, Stage.MIDEND, BASE))  # fmt: skip
"""Weights, prompts, and what they are compared with."""


@dataclass(frozen=True)
class Asked:
    """What the command asks of a part.

    Attributes:
        part: its name.
        out: directory of its file.
        work: directory of weights and of trainings.
        shape: of the random weights.
        model: weights in their place.
        device: of the judge.
        steps, warmup_steps, lengths_steps: updates; None for those of `LENGTHS`.
        micro_batch: see `TrainConfig`.
        minutes: after which a stage ends.
        kill: end the process in the middle of the stage.
        judge: address of a server on another GPU.
    """

    part: str
    out: Path
    work: Path
    shape: str
    model: Path | None
    device: str
    steps: int
    warmup_steps: int
    lengths_steps: int | None
    micro_batch: int | None
    minutes: float | None
    kill: bool
    judge: str | None = None

    @property
    def tokens(self) -> int:
        """Of a prompt and of a completion, where lengths are at issue."""
        return 48 if self.shape == "tiny" else LENGTHS[self.part][0]


def estimated(tokens: int, completions: int) -> dict[str, float]:
    """GiB by arithmetic for the 8B shape with LoRA of rank 16, `tokens` of prompt and as many of completion."""
    weights, adapter = 8_190_735_360 * 2 / GIB, 43_646_976 * 16 / GIB
    cache = completions * 2 * tokens * _BYTES_OF_CACHE / GIB
    kept = completions * 2 * tokens * 4096 * 2 * 36 / GIB
    logits = completions * tokens * 151_936 * 2 * 2 / GIB
    return {
        "weights": weights,
        "adapter, gradients, Adam": adapter,
        "generating": weights + adapter + cache,
        "updating": weights + adapter + kept * (1 + 20 / 36) + logits,
        "updating, logits in fp32 as well": weights + adapter + kept * (1 + 20 / 36) + 2 * logits,
    }


class WholeGpu:
    """The most memory of the GPU that all processes together held, looked at five times a second."""

    def __init__(self) -> None:
        self.peak_gib: float | None = None
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="memory")

    def __enter__(self) -> Self:
        if torch.cuda.is_available():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()  # a thread in the driver while the process ends would have it aborted
        if self._thread.is_alive():
            self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.2):
            free, total = torch.cuda.mem_get_info()
            self.peak_gib = max(self.peak_gib or 0.0, (total - free) / GIB)


class Part:
    """One part in this process, and the file that tells what it took."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._name = asked.part
        self._began = time.monotonic()
        self._whole = WholeGpu()
        self._stage = Stage(self._name) if self._name in set(Stage) else Stage.FRONTEND
        own = self._name in LENGTHS or self._name in (UNDISTURBED, ELSEWHERE)
        self._layout = TrainingLayout(asked.work / (self._name if own else "training"))
        self._directory = self._layout.warmup if self._name == WARMUP else self._layout.stage(self._stage)

    def run(self) -> None:
        """Runs it, and leaves its file."""
        with self._whole:
            self._run()

    def _run(self) -> None:
        asked = self._asked
        print(f"{self._name}: begun on {_device_name()}", flush=True)
        if self._name == ELSEWHERE and asked.judge is None:
            raise SystemExit(
                f"{ELSEWHERE} needs --judge: `kernelblaster env serve --judge --size {SIZE}` says its address"
            )
        train = TrainConfig(judge=asked.judge if self._name == ELSEWHERE else None)
        judging = RunConfig(device=asked.device, size=SIZE, evaluation=EvaluationConfig(input_sets=2), train=train)
        catalogue = environment_problems(judging)
        rows = template_rows(catalogue, judging.precision, SIZE)
        prompts = every_prompt(rows, [48] if asked.shape == "tiny" else [tokens for tokens, _ in LENGTHS.values()])
        base = asked.model or write_base(asked.work / BASE, SHAPES[asked.shape], prompts)
        if self._name == WEIGHTS:
            self._keep({}, finished=True)
            return
        if self._name in LENGTHS:
            base = asked.model or of_long_texts(base, SHAPES[asked.shape])
            lay_out_long(self._layout, rows, asked.tokens)
        else:
            write_template(self._layout, rows)
            add_backend_letters(self._layout)
        if self._name == UNDISTURBED:
            link_to(self._layout, TrainingLayout(asked.work / "training"))
        config = settings(asked, base)
        if self._name == WARMUP:
            self._keep(_of(run_warmup(self._layout, config, self._moment)), finished=True)
            return
        with open_judge(judging, None, None) as shared:
            judge = StoredJudge(shared, catalogue, self._layout.judged)
            if self._name == BACKEND:
                lay_out_backend(self._layout, catalogue, judge)
            print(f"{self._name}: prompts are made, {time.monotonic() - self._began:.1f} s", flush=True)
            told = self._do(config, judge)
            self._keep({**told, "judged": judge.judged}, finished=True)

    def _do(self, config: TrainConfig, judge: StoredJudge) -> dict[str, Any]:
        if self._name == EVAL:
            return {"arms": self._evaluated(config, judge)}
        if self._name == SERVE:
            told: dict[str, Any] = {}
            for figure in ask_served(partial(self._opened, config), self._asked.device, SIZE, self._asked.work):
                told |= figure
                self._keep(told)
            return told
        return _of(run_stage(self._layout, config, self._stage, judge, self._moment))

    def _opened(self, config: TrainConfig, weights: str) -> ServedModel:
        return open_served(self._layout, config, weights, AT_ONCE)

    def _evaluated(self, config: TrainConfig, judge: StoredJudge) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for weights, stage, against in _ARMS:
            began = time.monotonic()
            arm = Arm(weights, stage, "heldout")
            figures = run_evaluation(self._layout, config, judge, arm, against)
            found[arm.name] = {"seconds": time.monotonic() - began, **figures.model_dump(exclude={"problems"})}
            gc.collect()
            self._keep({"arms": found})
        return found

    def _moment(self, moment: str, step: int) -> None:
        """Told by a stage: writes down what there is, and ends the process where it is to be killed."""
        print(f"{moment}, step {step}, {time.monotonic() - self._began:.1f} s", flush=True)
        if moment == "updated":
            record = read_record(self._directory)
            self._keep({} if record is None else {"phases": _phases(record.phases), "updates": step})
        if self._asked.kill and (moment, step) == ("judged", max(1, self._asked.steps - 2)):
            os._exit(KILLED)

    def _keep(self, told: Mapping[str, Any], *, finished: bool = False) -> None:
        """Write what is known by now."""
        asked, name = self._asked, self._name
        tokens = LENGTHS[name][0] if name in LENGTHS else 16
        judged = read_rollouts(self._directory) if name != WEIGHTS and self._stage == self._directory.name else []
        found = {
            "part": name,
            "finished": finished,
            "shape": asked.shape if asked.model is None else str(asked.model),
            **told,
            "tokens": [one.tokens for one in judged],
            "rewards": [one.reward for one in judged],
            "wall_seconds": round(time.monotonic() - self._began, 1),
            "whole_gpu_peak_gib": self._whole.peak_gib,
            "device": _device_name(),
            "estimated_gib": estimated(tokens, plan_of(TrainConfig(), self._stage).generations),
            "torch": torch.__version__,
        }
        if asked.shape != "8b" or asked.model is not None:
            del found["estimated_gib"]
        write_atomically(asked.out / f"{name}.json", json.dumps(found, indent=1) + "\n")
        if finished:
            print(json.dumps(found), flush=True)


def _of(record: StageRecord) -> dict[str, Any]:
    return {
        "updates": record.updates,
        "begins_with": record.begins_with,
        "metrics": None if record.metrics is None else record.metrics.model_dump(),
        "phases": _phases(record.phases),
        "micro_batch": record.config.micro_batch,
    }


def _phases(phases: Mapping[str, PhaseCost]) -> dict[str, dict[str, object]]:
    return {
        name: {"seconds": [round(one, 3) for one in phase.seconds], "peak_gib": phase.peak_gib}
        for name, phase in phases.items()
    }


def _device_name() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"


def settings(asked: Asked, base: Path) -> TrainConfig:
    """Of a part: lengths and KL term of the report where lengths are at issue, else what lets letters be learned."""
    shared: dict[str, Any] = {"model": base, "minutes": asked.minutes, "micro_batch": asked.micro_batch}
    if asked.part in LENGTHS:
        steps = asked.lengths_steps or LENGTHS[asked.part][1]
        return TrainConfig(
            preset=Preset.SEED, baseline=Baseline.START, steps=steps, prompt_tokens=asked.tokens,
            completion_tokens=asked.tokens, checkpoint_steps=steps, **shared,
        )  # fmt: skip
    # Two of the shapes differ in what an update moves.
    rate, warmup_rate = (1e-3, 1e-2) if asked.shape == "tiny" else (1e-4, 1e-3)
    return TrainConfig(
        steps=asked.warmup_steps if asked.part == WARMUP else asked.steps,
        groups=3,
        samples=16,
        prompt_tokens=4096,
        completion_tokens=1,
        learning_rate=rate,
        warmup_learning_rate=warmup_rate,
        checkpoint_steps=max(1, asked.steps // 2),
        **shared,
    )
