"""Trains a tiny model in both stages on template problems with the emulated judge, over seeds and presets.

A reply is one letter that names one of five kernels, so that the choice is small and its consequences are real: each is
compiled, checked and modelled. The letters mean the same on every problem, so that what is learned on two problems can
hold on a third, held-out one.

    python benchmarks/grpo_template.py --out docs/results      needs the extra `train`; no network, no GPU
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from tiny_policy import write_policy

from kernelblaster import EvaluationConfig, RunConfig, environment_problems, open_evaluator
from kernelblaster.config.training import Baseline, Preset, TrainConfig
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.models.base import Message
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.start import read_start
from kernelblaster.training.arms import Arm
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import by_step
from kernelblaster.training.page import write_page
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.rows import PromptRow, ReplyForm, SftRow, answer, write_rows
from kernelblaster.training.running import run_evaluation, run_stage, run_warmup
from kernelblaster.training.stages import Stage

PROBLEMS = {"L1_23": "train", "L1_19": "train", "L1_89": "heldout"}
THREADS = "256"
"""Threads of a block, as the starts write it."""
CONFIG = RunConfig(device="emulated", evaluation=EvaluationConfig(input_sets=2))
ENDS = 5
"""Steps at either end of a curve whose mean reward is compared."""


def frontend_choices(start: str) -> dict[str, str]:
    """A kernel that does not build, a wrong one, one that cannot be launched, one without a launcher, a correct one."""
    head, _, body = start.rpartition("from_float(")
    return {
        "a": f"#error left out\n{start}",
        "b": f"{head}from_float(0.5f * {body}",
        "c": start.replace(THREADS, "2048"),
        "d": start.replace("void launch_gpu_implementation(", "void launch_gpu_implementation_("),
        "e": start,
    }


def midend_choices(start: str) -> dict[str, str]:
    """The kernel at several sizes of its block; one cannot be launched."""
    return {letter: start.replace(THREADS, threads) for letter, threads in zip("abcde", _SIZES, strict=True)}


_SIZES = ("32", "64", "2048", "256", "128")
PARENT_THREADS = "32"


def rows_of(catalogue: Catalogue, stage: Stage) -> list[PromptRow]:
    """A prompt per problem; that of `midend` begins with the smallest block."""
    rows = []
    for name, split in PROBLEMS.items():
        problem = catalogue.find(name)
        start = read_start(problem)
        choices = frontend_choices(start) if stage is Stage.FRONTEND else midend_choices(start)
        parent = start.replace(THREADS, PARENT_THREADS) if stage is Stage.MIDEND else ""
        rows.append(_row(problem, stage, split, choices, parent))
    return rows


def _row(problem: Problem, stage: Stage, split: str, choices: dict[str, str], parent: str) -> PromptRow:
    return PromptRow(
        prompt=(Message(role="user", content=f"{stage.value[0]} {problem.name}"),),
        problem=str(problem.id),
        stage=stage,
        precision=str(CONFIG.precision),
        size="small",
        parent=parent,
        parent_sha256=source_digest(parent) if parent else "",
        family=problem.tags[0],
        split=split,
        reply=ReplyForm.CHOICE,
        choices=json.dumps(choices),
    )


def lay_out(layout: TrainingLayout, catalogue: Catalogue) -> None:
    """Prompts of both stages; a warm-up that teaches the letters, and no letter more than another."""
    warmup = []
    for stage in Stage:
        rows = rows_of(catalogue, stage)
        write_rows(layout.prompts(stage), rows)
        for row in rows:
            warmup += [_letter(row, letter) for letter in row.sources if row.split == "train"]
    write_rows(layout.data / "sft.jsonl", warmup)


def _letter(row: PromptRow, letter: str) -> SftRow:
    return SftRow(
        prompt=row.prompt, completion=answer(letter), problem=row.problem, stage=row.stage, verdict="format",
        speedup=None, source="template", candidate_sha256="", family=row.family, split=row.split,
    )  # fmt: skip


def settings(base: Path, preset: Preset, seed: int, steps: int) -> TrainConfig:
    """A preset with a learning rate and lengths for a tiny model; what the presets differ in is left to them."""
    return TrainConfig(
        model=base,
        preset=preset,
        steps=steps,
        groups=2,
        generations=8,
        prompt_tokens=128,
        completion_tokens=3,
        warmup_learning_rate=1e-2,
        learning_rate=1e-3,
        baseline=Baseline.PARENT,
        checkpoint_steps=steps,
        samples=16,
        seed=seed,
    )


def train_once(root: Path, catalogue: Catalogue, shared: SharedJudge, config: TrainConfig) -> dict[str, object]:
    """Warm-up, both stages and the evaluation of each; figures of one seed."""
    layout = TrainingLayout(root)
    judge = StoredJudge(shared, catalogue, layout.judged)
    began = time.monotonic()
    lay_out(layout, catalogue)
    run_warmup(layout, config)
    found: dict[str, object] = {"preset": str(config.preset), "seed": config.seed}
    for stage in Stage:
        run_stage(layout, config, stage, judge)
        steps = [figures.reward for figures in by_step(read_rollouts(layout.stage(stage))).values()]
        rewards = [reward for reward in steps if reward is not None]
        groups = [figures.informative_groups for figures in by_step(read_rollouts(layout.stage(stage))).values()]
        found[stage] = {
            "first": statistics.fmean(rewards[:ENDS]),
            "last": statistics.fmean(rewards[-ENDS:]),
            "rewards": rewards,
            "informative_groups": groups,
        }
    for name in ("base", "sft", "frontend", "midend"):
        for stage in Stage:
            for split in ("train", "heldout"):
                figures = run_evaluation(layout, config, judge, Arm(name, stage, split)).overall
                found[f"{name}/{stage}/{split}"] = {"correct": figures.correct_rate, "faster": figures.fast["1"]}
    write_page([layout], layout.page)
    found["seconds"] = time.monotonic() - began
    found["judged"] = judge.judged
    return found


def main() -> None:
    """Run all, and write `grpo_template.json` and `.md`."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("docs/results"))
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=40)
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    catalogue = environment_problems(CONFIG)
    runs = []
    with tempfile.TemporaryDirectory() as folder, open_evaluator(CONFIG) as evaluator:
        shared, base = SharedJudge(evaluator), write_policy(Path(folder) / "base")
        for preset in Preset:
            for seed in range(given.seeds):
                config = settings(base, preset, seed, given.steps)
                runs.append(train_once(Path(folder) / f"{preset}-{seed}", catalogue, shared, config))
                print(json.dumps({key: value for key, value in runs[-1].items() if key not in list(Stage)}), flush=True)
                document = {"conditions": shared.conditions, "steps": given.steps, "runs": runs}
                (given.out / "grpo_template.json").write_text(json.dumps(document, indent=1) + "\n")
                (given.out / "grpo_template.md").write_text(page(document))


def page(document: dict) -> str:
    """The table of all seeds."""
    conditions = document["conditions"]
    lines = [
        "# GRPO in two stages on template problems",
        "",
        "Written by `benchmarks/grpo_template.py`. A model of the Qwen3 shape with random weights (64 wide, 2 layers,",
        "LoRA of rank 16) chooses among five kernels per problem by one letter; softmax and ReLU are learned from,",
        f"cumulative sum is held out. Judge: emulated {conditions['device_name']}, {conditions['precision']}, size",
        f"{conditions['workload']}, 2 input sets; times are **modelled**. {document['steps']} updates per stage, two",
        "groups of 8 completions each, learning rate 1e-3 in both presets; what else the presets differ in is theirs.",
        "Rewards of the two presets have different scales: compare each with itself, and the rates with each other.",
        "The letter that `frontend` has learned is a fast block in `midend` as well: the rates there are carried over",
        "in part, and say little of that stage alone.",
        "",
        f"| preset | seed | frontend reward, first {ENDS} steps | last {ENDS} | midend, first {ENDS} | last {ENDS} | "
        "correct, trained problems: warm-up, frontend | held-out: warm-up, frontend | "
        "faster, trained problems: warm-up, midend | held-out: warm-up, midend | seconds |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    lines += [_line(run) for run in document["runs"]]
    return "\n".join(lines) + "\n"


def _line(run: dict) -> str:
    def pair(figure: str, stage: Stage, split: str) -> str:
        return ", ".join(f"{run[f'{name}/{stage}/{split}'][figure]:.2f}" for name in ("sft", stage))

    ends = [f"{run[stage][end]:.2f}" for stage in Stage for end in ("first", "last")]
    rates = [
        pair(figure, stage, split)
        for figure, stage in (("correct", Stage.FRONTEND), ("faster", Stage.MIDEND))
        for split in ("train", "heldout")
    ]
    return f"| {' | '.join([run['preset'], str(run['seed']), *ends, *rates, format(run['seconds'], '.0f')])} |"


if __name__ == "__main__":
    main()
