"""Trains a tiny model in both stages on template problems with the emulated judge: over seeds, by both presets and by
ours with one thing changed at a time.

A reply is one letter that names one of five kernels, so that the choice is small and its consequences are real: each is
compiled, checked and modelled. The letters mean the same on every problem, so that what is learned on three problems
can hold on three held-out ones; `midend` favours another letter than `frontend`.

The warm-up teaches all letters equally often (`even`), or the correct one once in twenty (`rare`): then most groups of
four hold none that is correct, and rewards by degrees can show what they are for. One variant has no warm-up.

    python benchmarks/grpo_template.py --out docs/results      needs the extra `train`; no network, no GPU
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from kernelblaster import EvaluationConfig, RunConfig, environment_problems, open_evaluator
from kernelblaster.config.training import Advantage, Baseline, BeginWith, Loss, Preset, TrainConfig
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.training.arms import BASE, Arm, estimate
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


@dataclass(frozen=True, eq=False)
class Variant:
    """What is compared.

    Attributes:
        name: of the row.
        rare: the correct kernel is rare after the warm-up.
        preset: of the training.
        changed: settings that are not the preset's.
        rewards: of the stages, where they are not the preset's.
        warmup: whether there is one.
    """

    name: str
    rare: bool
    preset: Preset = Preset.OURS
    changed: Mapping[str, object] = field(default_factory=dict)
    rewards: Mapping[Stage, str] = field(default_factory=dict)
    warmup: bool = True


_REPORTED = {Stage.FRONTEND: "two-stage-correct", Stage.MIDEND: "two-stage-fast"}


OURS = "ours"
VARIANTS = (
    Variant(OURS, rare=False),
    Variant("seed", False, Preset.SEED),
    Variant("ours, rewards of the report", False, rewards=_REPORTED),
    Variant("ours, loss of the report", False, changed={"loss": Loss.GRPO}),
    Variant("ours, plain mean of the group", False, changed={"advantage": Advantage.MEAN}),
    Variant("ours, KL weight 0.1", False, changed={"beta": 0.1}),
    Variant("ours, divided by the group's spread", False, changed={"advantage": Advantage.SPREAD}),
    Variant("ours, midend from frontend", False, changed={"begin_with": BeginWith.LAST}),
    Variant("ours, no warm-up", False, warmup=False),
    Variant(OURS, rare=True),
    Variant("seed", True, Preset.SEED),
    Variant("ours, reward binary", True, rewards={Stage.FRONTEND: "binary"}),
    Variant("ours, divided by the group's spread", True, changed={"advantage": Advantage.SPREAD}),
)
"""Both presets, and ours with one thing changed. Lengths and the baseline are the same in all."""


def settings(base: Path, variant: Variant, seed: int, steps: int, **given: object) -> TrainConfig:
    """A preset with a learning rate and lengths for a tiny model; what the presets differ in is left to them."""
    values: dict[str, object] = {
        "model": base, "preset": variant.preset, "steps": steps, "groups": 3, "prompt_tokens": 128,
        "completion_tokens": 3, "warmup_learning_rate": 1e-2, "learning_rate": 1e-3, "baseline": Baseline.PARENT,
        "checkpoint_steps": steps, "samples": 16, "seed": seed,
    }  # fmt: skip
    return TrainConfig.model_validate(values | dict(variant.changed) | given)


def train_once(
    root: Path, catalogue: Catalogue, shared: SharedJudge, base: Path, variant: Variant, seed: int, steps: int
) -> dict[str, object]:
    """Warm-up, both stages and the evaluation of each; figures of one seed."""
    layout = TrainingLayout(root)
    judge = StoredJudge(shared, catalogue, layout.judged)
    cpu = _cpu_seconds()
    write_template(layout, template_rows(catalogue, CONFIG.precision, SIZE, rare=variant.rare))
    config = settings(base, variant, seed, steps)
    if variant.warmup:
        run_warmup(layout, config)
    found: dict[str, object] = {"variant": variant.name, "rare": variant.rare, "seed": seed}
    for stage in _STAGES:
        record = run_stage(layout, config.model_copy(update={"reward": variant.rewards.get(stage)}), stage, judge)
        found[_begun(stage)] = record.begins_with or BASE
        figures = list(by_step(read_rollouts(layout.stage(stage))).values())
        found[stage] = {
            "rewards": [one.reward for one in figures],
            "correct": [one.correct_rate for one in figures],
            "informative_groups": [one.informative_groups for one in figures],
            "geomean": [one.geomean for one in figures],
        }
    for name, stage in (*((str(found[_begun(stage)]), stage) for stage in _STAGES), *((one, one) for one in _STAGES)):
        for split in ("train", "heldout"):
            overall = run_evaluation(layout, config, judge, Arm(name, stage, split)).overall
            found[f"{name}/{stage}/{split}"] = {"correct": overall.correct_rate, "geomean": overall.geomean}
    write_page([layout], layout.page)
    return {
        **found,
        "cpu_seconds": _cpu_seconds() - cpu,
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
    arguments.add_argument("--resume", action="store_true", help="keep what the table in --out holds, of this version")
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    catalogue = environment_problems(CONFIG)
    table = given.out / "grpo_template.json"
    runs = json.loads(table.read_text())["runs"] if given.resume and table.exists() else []
    known = {(run["variant"], run["rare"], run["seed"]) for run in runs}
    with tempfile.TemporaryDirectory() as folder, open_evaluator(CONFIG) as evaluator:
        shared, base = SharedJudge(evaluator), write_model(Path(folder) / "base")
        roots = {
            variant: [Path(folder) / f"{place}-{seed}" for seed in range(given.seeds)]
            for place, variant in enumerate(VARIANTS)
        }
        for seed in range(given.seeds):
            for variant in VARIANTS:
                if (variant.name, variant.rare, seed) in known:
                    continue
                runs.append(train_once(roots[variant][seed], catalogue, shared, base, variant, seed, given.steps))
                print(_line(runs[-1]), flush=True)
                document = {"conditions": shared.conditions, "steps": given.steps, "runs": sorted(runs, key=_order)}
                table.write_text(json.dumps(document) + "\n")
                table.with_suffix(".md").write_text(page(document))
        if given.pages:
            for place, found in enumerate(roots.values()):
                write_page([TrainingLayout(root) for root in found if root.exists()], given.pages / f"{place}.html")


def _order(run: dict) -> tuple[int, int]:
    """By variant, then by seed."""
    return [(one.name, one.rare) for one in VARIANTS].index((run["variant"], run["rare"])), run["seed"]


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
        "of all processes; a first run judges each kernel, and later ones find what it found.",
        "",
        "| start | preset | seed | informative groups, first 10 updates | learned at "
        "| correct, trained: before frontend, after | held-out: before, after "
        "| speed-up, trained: before midend, after | held-out: before, after | CPU s |",
        "|---|---|---|---|---|---|---|---|---|---|",
        *(_line(run) for run in document["runs"]),
        "",
        "Means over seeds:",
        "",
        "| start | preset | seeds that learned | held-out correct after frontend | held-out speed-up after midend |",
        "|---|---|---|---|---|",
        *_means(document["runs"]),
        "",
        "Each row minus `ours` of the same start, paired by training seed, with 95 % bootstrap intervals over seeds.",
        "Only an interval that leaves zero out tells a difference; of so many, drawn from so few seeds, some do by",
        "chance:",
        "",
        "| start | preset | held-out correct after frontend | logarithm of the held-out speed-up after midend |",
        "|---|---|---|---|",
        *_differences(document["runs"]),
    ]
    return "\n".join(lines) + "\n"


def _line(run: dict) -> str:
    def pair(figure: str, stage: Stage, split: str) -> str:
        return ", ".join(f"{run[f'{name}/{stage}/{split}'][figure]:.2f}" for name in (run[_begun(stage)], stage))

    frontend = run[Stage.FRONTEND]
    learned = learned_at(frontend["correct"])
    cells = [
        _start(run),
        run["variant"],
        str(run["seed"]),
        f"{statistics.fmean(frontend['informative_groups'][:10]):.2f}",
        "never" if learned is None else str(learned),
        *(pair("correct", Stage.FRONTEND, split) for split in ("train", "heldout")),
        *(pair("geomean", Stage.MIDEND, split) for split in ("train", "heldout")),
        f"{run['cpu_seconds']:.0f}",
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
    lines = []
    for start, name in dict.fromkeys((_start(run), run["variant"]) for run in runs):
        variant, ours = (
            {run["seed"]: run for run in runs if (_start(run), run["variant"]) == (start, one)} for one in (name, OURS)
        )
        shared = sorted(variant.keys() & ours.keys())
        if name == OURS or not shared:
            continue
        pairs = [(variant[seed], ours[seed]) for seed in shared]
        correct = [_held(one, "frontend", "correct") - _held(other, "frontend", "correct") for one, other in pairs]
        speed = [math.log(_held(one, "midend", "geomean") / _held(other, "midend", "geomean")) for one, other in pairs]
        lines.append(f"| {start} | {name} | {_interval(correct)} | {_interval(speed)} |")
    return lines


def _held(run: dict, stage: str, figure: str) -> float:
    return float(run[f"{stage}/{stage}/heldout"][figure])


def _interval(values: list[float]) -> str:
    found = estimate(values)
    return f"{found.value:+.2f} ({'too few' if found.low is None else f'{found.low:+.2f} to {found.high:+.2f}'})"


def _begun(stage: Stage) -> str:
    """Where a run tells what a stage began with."""
    return f"{stage}_begins_with"


def _start(run: dict) -> str:
    return "rare" if run["rare"] else "even"


if __name__ == "__main__":
    main()
