"""Trains a tiny model in stage `frontend` on candidates in Triton, with the emulated judge, over seeds.

As in `grpo_template.py` a reply is one letter, here of five Python modules: each is recorded, compiled by Triton,
judged and modelled as a candidate that a user hands in. The correct one is the module that ships in `examples/triton`;
the others have no `ModelNew`, call torch, launch nothing or do not parse. Three problems are trained on, two others
are held out; the warm-up teaches all letters equally often.

    python benchmarks/grpo_triton.py --out docs/results      needs the extras `train` and `triton`; no network, no GPU
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections import Counter
from pathlib import Path

from grpo_template import CONFIG, SIZE, Variant, learned_at, settings

from kernelblaster import environment_problems, open_evaluator
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.models.base import Message
from kernelblaster.problems.tags import Split
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.training.arms import BASE, Arm
from kernelblaster.training.exporting import SFT
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import by_step
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.rows import PromptRow, ReplyForm, SftRow, write_rows
from kernelblaster.training.running import run_evaluation, run_stage, run_warmup
from kernelblaster.training.stages import Stage
from kernelblaster.training.template import CORRECT, LETTERS, warmup_row
from kernelblaster.training.tiny_model import write_model

MODULES = Path(__file__).parents[1] / "examples" / "triton"
PROBLEMS = {
    "level1_019_relu": Split.TRAIN, "level1_023_softmax": Split.TRAIN, "level1_036_rms_norm": Split.TRAIN,
    "level1_026_gelu": Split.HELD_OUT, "level1_047_sum": Split.HELD_OUT,
}  # fmt: skip
STAGE = Stage.FRONTEND
REPEATS = 12
"""Warm-up rows per prompt and letter: with a third as many the tiny model writes hardly a letter."""


def choices(module: str) -> dict[str, str]:
    """A module without a class, one that calls torch, one that launches nothing, one that is no Python; the module."""
    head, _, _ = module.partition("class ModelNew")
    returned = module.rindex("return out")
    return {
        "a": head,
        "b": f"{module[:returned]}return torch.add(out, 0)\n",
        "c": "\n".join(line for line in module.splitlines() if "_kernel[(" not in line) + "\n",
        "d": module.replace("def forward(", "def forward((", 1),
        CORRECT: module,
    }


def prompt_row(catalogue: Catalogue, name: str, split: Split) -> PromptRow:
    """Of a module that ships, by the beginning of its file's name."""
    level, number = name.split("_")[:2]
    problem = catalogue.find(f"{level}/{number}")
    module = (MODULES / f"{name}.py").read_text(encoding="utf-8")
    return PromptRow(
        prompt=(Message(role="user", content=f"f {problem.name}"),),
        problem=str(problem.id), stage=STAGE, language=CandidateLanguage.TRITON, precision=str(CONFIG.precision),
        size=SIZE, family=problem.tags[0], split=split, reply=ReplyForm.CHOICE, choices=json.dumps(choices(module)),
    )  # fmt: skip


def warmup(rows: list[PromptRow]) -> list[SftRow]:
    """Every letter equally often, of the problems that are trained on."""
    return [
        warmup_row(row, letter)
        for row in rows
        for letter in row.sources
        for _ in range(REPEATS)
        if row.split == Split.TRAIN
    ]


def train_once(
    root: Path, catalogue: Catalogue, shared: SharedJudge, base: Path, seed: int, steps: int
) -> dict[str, object]:
    """Warm-up, the stage and its evaluation; figures of one seed."""
    layout = TrainingLayout(root)
    judge = StoredJudge(shared, catalogue, layout.judged)
    rows = [prompt_row(catalogue, name, split) for name, split in PROBLEMS.items()]
    write_rows(layout.prompts(STAGE), rows)
    write_rows(layout.data / SFT, warmup(rows))
    config = settings(base, Variant("ours", rare=False), seed, steps)
    run_warmup(layout, config)
    run_stage(layout, config, STAGE, judge)
    rollouts = read_rollouts(layout.stage(STAGE))
    figures = list(by_step(rollouts).values())
    found: dict[str, object] = {
        "seed": seed,
        "rewards": [one.reward for one in figures],
        "correct": [one.correct_rate for one in figures],
        "verdicts": {f"{letter} {verdict}": many for (letter, verdict), many in sorted(_told(rollouts).items())},
    }
    for weights in (BASE, STAGE):
        for split in (Split.TRAIN, Split.HELD_OUT):
            overall = run_evaluation(layout, config, judge, Arm(weights, STAGE, str(split))).overall
            found[f"{weights}/{split}"] = overall.correct_rate
    return found


def _told(rollouts: list) -> Counter[tuple[str, str]]:
    """How often each completion got each verdict."""
    letters = (one.completion.strip() for one in rollouts)
    return Counter(
        (letter if letter in set(LETTERS) else "other", one.verdict)
        for letter, one in zip(letters, rollouts, strict=True)
    )


def main() -> None:
    """Train with each seed, and write `grpo_triton.json` and `.md`."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("docs/results"))
    arguments.add_argument("--seeds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=60)
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    catalogue = environment_problems(CONFIG)
    with tempfile.TemporaryDirectory() as folder, open_evaluator(CONFIG) as evaluator:
        shared, base = SharedJudge(evaluator), write_model(Path(folder) / "base")
        runs = []
        for seed in range(given.seeds):
            runs.append(train_once(Path(folder) / str(seed), catalogue, shared, base, seed, given.steps))
            print(json.dumps(runs[-1]), flush=True)
        document = {"conditions": shared.conditions, "steps": given.steps, "runs": runs}
    (given.out / "grpo_triton.json").write_text(json.dumps(document) + "\n", encoding="utf-8")
    (given.out / "grpo_triton.md").write_text(page(document), encoding="utf-8")


def page(document: dict) -> str:
    """The table of all seeds."""
    conditions = document["conditions"]
    lines = [
        "# GRPO on candidates in Triton",
        "",
        "Written by `benchmarks/grpo_triton.py`. A model of the Qwen3 shape with random weights (64 wide, 2 layers,",
        "LoRA of rank 16) chooses among five Python modules per problem by one letter, the same on every problem:",
        "without `ModelNew`, computed by torch, launching nothing, no Python, correct. ReLU, softmax and RMSNorm are",
        "learned from, GELU and a sum are held out. Each module is recorded, compiled by Triton and judged.",
        "",
        f"Judge: {conditions['device_name']}, {conditions['precision']}, size {conditions['workload']}, 2 input sets;",
        f"{document['steps']} updates, three groups of four completions each, learning rate 1e-3, graded rewards.",
        "*Learned at*: the first update from which 90 % of replies were correct over five updates. Rates are of 16",
        "samples per problem.",
        "",
        "| seed | reward, first five updates | last five | learned at | correct, trained: before, after "
        "| held out: before, after | what letters were judged |",
        "|---|---|---|---|---|---|---|",
        *map(_line, document["runs"]),
    ]
    return "\n".join(lines) + "\n"


def _line(run: dict) -> str:
    learned = learned_at(run["correct"])
    pairs = (f"{run[f'{BASE}/{split}']:.2f}, {run[f'{STAGE}/{split}']:.2f}" for split in (Split.TRAIN, Split.HELD_OUT))
    told = "; ".join(f"{name} {many}" for name, many in run["verdicts"].items())
    first, last = (statistics.fmean(part) for part in (run["rewards"][:5], run["rewards"][-5:]))
    cells = [
        str(run["seed"]),
        f"{first:.2f}",
        f"{last:.2f}",
        "never" if learned is None else str(learned),
        *pairs,
        told,
    ]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
