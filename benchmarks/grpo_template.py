"""Trains a tiny model in both stages on template problems with the emulated judge, over seeds, presets and an ablation.

A reply is one letter that names one of five kernels, so that the choice is small and its consequences are real: each is
compiled, checked and modelled. The letters mean the same on every problem, so that what is learned on three problems
can hold on three held-out ones; `midend` favours another letter than `frontend`.

The warm-up teaches all letters equally often (`even`), or the correct one once in twenty (`rare`): then most groups of
four hold none that is correct, and rewards by degrees can show what they are for.

    python benchmarks/grpo_template.py --out docs/results      needs the extra `train`; no network, no GPU
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from kernelblaster import EvaluationConfig, RunConfig, environment_problems, open_evaluator
from kernelblaster.config.training import Baseline, BeginWith, Preset, TrainConfig
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.training.arms import Arm, estimate
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import by_step
from kernelblaster.training.page import write_page
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.running import run_evaluation, run_stage, run_warmup
from kernelblaster.training.stages import Stage
from kernelblaster.training.template import RARE, template_rows, write_template
from kernelblaster.training.tiny_model import write_model

SIZE = "small"
CONFIG = RunConfig(device="emulated", size=SIZE, evaluation=EvaluationConfig(input_sets=2))
ENDS = 5
"""Steps at either end of a curve whose mean is compared, and over which `LEARNED` must hold."""
LEARNED = 0.9
"""Share of correct replies at which `frontend` counts as learned."""
_STAGES = (Stage.FRONTEND, Stage.MIDEND)


@dataclass(frozen=True)
class Variant:
    """What is compared.

    Attributes:
        name: of the row.
        preset: of the training.
        rare: the correct kernel is rare after the warm-up.
        reward, midend_reward: of the stages, where they are not the preset's.
        begin_with: whose weights `midend` begins with, where it is not the preset's.
    """

    name: str
    preset: Preset
    rare: bool
    reward: str | None = None
    midend_reward: str | None = None
    begin_with: BeginWith | None = None


VARIANTS = (
    Variant("ours", Preset.OURS, rare=False),
    Variant("seed", Preset.SEED, rare=False),
    Variant("ours, midend from frontend", Preset.OURS, rare=False, begin_with=BeginWith.LAST),
    Variant("ours, rewards of the report", Preset.OURS, False, "two-stage-correct", "two-stage-fast"),
    Variant("ours", Preset.OURS, rare=True),
    Variant("seed", Preset.SEED, rare=True),
    Variant("ours, reward binary", Preset.OURS, rare=True, reward="binary"),
)


def settings(base: Path, variant: Variant, seed: int, steps: int, **given: object) -> TrainConfig:
    """A preset with a learning rate and lengths for a tiny model; what the presets differ in is left to them."""
    values: dict[str, object] = {
        "model": base, "preset": variant.preset, "steps": steps, "groups": 3, "prompt_tokens": 128,
        "completion_tokens": 3, "warmup_learning_rate": 1e-2, "learning_rate": 1e-3, "baseline": Baseline.PARENT,
        "checkpoint_steps": steps, "samples": 16, "seed": seed, "begin_with": variant.begin_with,
    }  # fmt: skip
    return TrainConfig.model_validate(values | given)


def train_once(
    root: Path, catalogue: Catalogue, shared: SharedJudge, base: Path, variant: Variant, seed: int, steps: int
) -> dict[str, object]:
    """Warm-up, both stages and the evaluation of each; figures of one seed."""
    layout = TrainingLayout(root)
    judge = StoredJudge(shared, catalogue, layout.judged)
    cpu, began = _cpu_seconds(), time.monotonic()
    write_template(layout, template_rows(catalogue, CONFIG.precision, SIZE, rare=variant.rare))
    config = settings(base, variant, seed, steps)
    run_warmup(layout, config)
    found: dict[str, object] = {"variant": variant.name, "rare": variant.rare, "seed": seed}
    for stage in _STAGES:
        reward = variant.reward if stage is Stage.FRONTEND else variant.midend_reward
        run_stage(layout, config.model_copy(update={"reward": reward}), stage, judge)
        figures = list(by_step(read_rollouts(layout.stage(stage))).values())
        found[stage] = {
            "rewards": [one.reward for one in figures],
            "correct": [one.correct_rate for one in figures],
            "informative_groups": [one.informative_groups for one in figures],
            "geomean": [one.geomean for one in figures],
        }
    found["midend_begins_with"] = json.loads((layout.stage(Stage.MIDEND) / "train.json").read_text())["begins_with"]
    begun = (("sft", Stage.FRONTEND), (_before_midend(found), Stage.MIDEND))
    for name, stage in (*begun, *((one, one) for one in _STAGES)):
        for split in ("train", "heldout"):
            overall = run_evaluation(layout, config, judge, Arm(name, stage, split)).overall
            found[f"{name}/{stage}/{split}"] = {"correct": overall.correct_rate, "geomean": overall.geomean}
    write_page([layout], layout.page)
    return {
        **found,
        "cpu_seconds": _cpu_seconds() - cpu,
        "wall_seconds": time.monotonic() - began,
        "judged": judge.judged,
    }


def _cpu_seconds() -> float:
    """Of this process and of those it started and waited for."""
    return sum(os.times()[:4])


def main() -> None:
    """Run all, and write `grpo_template.json` and `.md`, and a page of curves per variant if asked for."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("docs/results"))
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--steps", type=int, default=60)
    arguments.add_argument("--pages", type=Path, help="write a page with the curves of all seeds per variant here")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    catalogue = environment_problems(CONFIG)
    runs = []
    with tempfile.TemporaryDirectory() as folder, open_evaluator(CONFIG) as evaluator:
        shared, base = SharedJudge(evaluator), write_model(Path(folder) / "base")
        for place, variant in enumerate(VARIANTS):
            roots = [Path(folder) / f"{place}-{seed}" for seed in range(given.seeds)]
            for seed, root in enumerate(roots):
                runs.append(train_once(root, catalogue, shared, base, variant, seed, given.steps))
                print(_line(runs[-1]), flush=True)
                document = {"conditions": shared.conditions, "steps": given.steps, "runs": runs}
                (given.out / "grpo_template.json").write_text(json.dumps(document) + "\n")
                (given.out / "grpo_template.md").write_text(page(document))
            if given.pages:
                write_page([TrainingLayout(root) for root in roots], given.pages / f"{place}.html")


def page(document: dict) -> str:
    """The table of all seeds."""
    conditions = document["conditions"]
    lines = [
        "# GRPO in two stages on template problems",
        "",
        "Written by `benchmarks/grpo_template.py`. A model of the Qwen3 shape with random weights (64 wide, 2 layers,",
        "LoRA of rank 16) chooses among five kernels per problem by one letter; softmax, ReLU and RMSNorm are learned",
        "from, two prefix sums and cross entropy are held out. In `frontend` one letter of five names a correct kernel",
        "on every problem, in `midend` another one the fastest block. The warm-up teaches all letters equally often",
        f"(`even`), or the correct one of `frontend` once in {RARE} (`rare`); what a model has learned by then, the",
        "first figure of each pair tells.",
        "",
        f"Judge: {conditions['device_name']}, {conditions['precision']}, size {conditions['workload']}, 2",
        f"input sets; times are **modelled**. {document['steps']} updates per stage, three groups of four completions",
        "each, learning rate 1e-3 and the prompt's kernel as the baseline in all; what else the presets differ in is",
        f"theirs. *Learned at*: the first update from which {100 * LEARNED:.0f} % of replies were correct over {ENDS}",
        "updates. Rates are of 16 samples per problem, speed-ups geometric means with failures as 1. CPU seconds are",
        "of all processes; the first run judges each kernel, and later ones find what it found.",
        "",
        "| start | preset | seed | informative groups, first 10 updates | learned at "
        "| correct, trained: warm-up, frontend | held-out: warm-up, frontend "
        "| speed-up, trained: before midend, after | held-out: before, after | CPU s | wall s |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
        *(_line(run) for run in document["runs"]),
        "",
        "Means over seeds:",
        "",
        "| start | preset | seeds that learned | held-out correct after frontend | held-out speed-up after midend |",
        "|---|---|---|---|---|",
        *_means(document["runs"]),
        "",
        "Ours minus seed, paired by training seed, with 95 % bootstrap intervals over seeds:",
        "",
        "| start | held-out correct after frontend | logarithm of the held-out speed-up after midend |",
        "|---|---|---|",
        *_differences(document["runs"]),
    ]
    return "\n".join(lines) + "\n"


def _line(run: dict) -> str:
    def pair(figure: str, stage: Stage, before: str, split: str) -> str:
        return ", ".join(f"{run[f'{name}/{stage}/{split}'][figure]:.2f}" for name in (before, stage))

    frontend = run[Stage.FRONTEND]
    learned = learned_at(frontend["correct"])
    cells = [
        _start(run),
        run["variant"],
        str(run["seed"]),
        f"{statistics.fmean(frontend['informative_groups'][:10]):.2f}",
        "never" if learned is None else str(learned),
        *(pair("correct", Stage.FRONTEND, "sft", split) for split in ("train", "heldout")),
        *(pair("geomean", Stage.MIDEND, _before_midend(run), split) for split in ("train", "heldout")),
        f"{run['cpu_seconds']:.0f}",
        f"{run['wall_seconds']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def learned_at(correct: list[float]) -> int | None:
    """The first update from which `LEARNED` holds over `ENDS` updates; None where it never does."""
    starts = range(len(correct) - ENDS + 1)
    return next((step for step in starts if statistics.fmean(correct[step : step + ENDS]) >= LEARNED), None)


def _means(runs: list[dict]) -> list[str]:
    lines = []
    for key in dict.fromkeys((_start(run), run["variant"]) for run in runs):
        same = [run for run in runs if (_start(run), run["variant"]) == key]
        learned = sum(learned_at(run[Stage.FRONTEND]["correct"]) is not None for run in same)
        correct = statistics.fmean(run["frontend/frontend/heldout"]["correct"] for run in same)
        faster = statistics.geometric_mean(run["midend/midend/heldout"]["geomean"] for run in same)
        lines.append(f"| {' | '.join(key)} | {learned} of {len(same)} | {correct:.2f} | {faster:.2f} |")
    return lines


def _differences(runs: list[dict]) -> list[str]:
    """Of variants that both presets have."""
    lines = []
    for start in dict.fromkeys(map(_start, runs)):
        ours, seed = (
            {run["seed"]: run for run in runs if (_start(run), run["variant"]) == (start, name)} for name in Preset
        )
        shared = sorted(ours.keys() & seed.keys())
        if shared:
            correct = [
                _held(ours[one], "frontend", "correct") - _held(seed[one], "frontend", "correct") for one in shared
            ]
            speed = [
                math.log(_held(ours[one], "midend", "geomean") / _held(seed[one], "midend", "geomean"))
                for one in shared
            ]
            lines.append(f"| {start} | {_interval(correct)} | {_interval(speed)} |")
    return lines


def _held(run: dict, stage: str, figure: str) -> float:
    return float(run[f"{stage}/{stage}/heldout"][figure])


def _interval(values: list[float]) -> str:
    found = estimate(values)
    return f"{found.value:+.2f} ({'too few' if found.low is None else f'{found.low:+.2f} to {found.high:+.2f}'})"


def _before_midend(run: dict) -> str:
    return str(run["midend_begins_with"])


def _start(run: dict) -> str:
    return "rare" if run["rare"] else "even"


if __name__ == "__main__":
    main()
