"""Stage `frontend` on the template problems of `grpo_template.py`, answered once or in two turns, with either credit.

After a failure the next prompt holds the letter and the beginning of what the judge found. The warm-up teaches the
correct letter once in twenty, and only as an answer to first prompts.

    python benchmarks/grpo_turns.py --out docs/results       needs the extra `train`; no network, no GPU
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from pathlib import Path

from grpo_template import CONFIG, SIZE, VARIANTS, settings

from kernelblaster import environment_problems, open_evaluator
from kernelblaster.config.training import TurnCredit
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.training.arms import Arm
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.rollouts import read_rollouts
from kernelblaster.training.running import run_evaluation, run_stage, run_warmup
from kernelblaster.training.stages import Stage
from kernelblaster.training.template import template_rows, write_template
from kernelblaster.training.tiny_model import write_model

FORMS = ((1, TurnCredit.RETURNS), (2, TurnCredit.RETURNS), (2, TurnCredit.IMMEDIATE))
VARIANT = next(one for one in VARIANTS if one.rare)
LAST = 10
"""Updates at the end of a stage whose rates are told."""


def train_once(
    root: Path,
    catalogue: Catalogue,
    shared: SharedJudge,
    base: Path,
    turns: int,
    credit: TurnCredit,
    seed: int,
    steps: int,
) -> dict[str, object]:
    """Figures of one form and seed."""
    layout = TrainingLayout(root)
    judge = StoredJudge(shared, catalogue, layout.judged)
    write_template(layout, template_rows(catalogue, CONFIG.precision, SIZE, rare=True))
    config = settings(
        base, VARIANT, seed, steps, turns=turns, turn_credit=credit, prompt_tokens=700, feedback_characters=80,
    )  # fmt: skip
    run_warmup(layout, config.model_copy(update={"prompt_tokens": 128}))
    run_stage(layout, config, Stage.FRONTEND, judge)
    rollouts = read_rollouts(layout.stage(Stage.FRONTEND))
    last = [[one for one in rollouts if one.step >= steps - LAST and one.turn == turn] for turn in range(turns)]
    found: dict[str, object] = {
        "turns": turns,
        "credit": str(credit) if turns > 1 else "",
        "seed": seed,
        "judged_in_training": len(rollouts),
        "correct_by_turn": [
            statistics.fmean(one.verdict == "correct" for one in turn) if turn else None for turn in last
        ],
    }
    for split in ("train", "heldout"):
        overall = run_evaluation(layout, config, judge, Arm("frontend", Stage.FRONTEND, split)).overall
        found[split] = {"solved": overall.solved_rate, "dialogues": overall.dialogues, "judged": overall.completions}
    return found


def main() -> None:
    """Run all, and write `grpo_turns.json` and `.md`."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--out", type=Path, default=Path("docs/results"))
    arguments.add_argument("--seeds", type=int, default=5)
    arguments.add_argument("--steps", type=int, default=40)
    given = arguments.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    catalogue = environment_problems(CONFIG)
    runs = []
    with tempfile.TemporaryDirectory() as folder, open_evaluator(CONFIG) as evaluator:
        shared, base = SharedJudge(evaluator), write_model(Path(folder) / "base")
        for turns, credit in FORMS:
            for seed in range(given.seeds):
                root = Path(folder) / f"{turns}-{credit}-{seed}"
                runs.append(train_once(root, catalogue, shared, base, turns, credit, seed, given.steps))
                print(json.dumps(runs[-1]), flush=True)
                document = {"conditions": shared.conditions, "steps": given.steps, "runs": runs}
                (given.out / "grpo_turns.json").write_text(json.dumps(document) + "\n")
                (given.out / "grpo_turns.md").write_text(page(document))


def page(document: dict) -> str:
    """The table of all seeds."""
    lines = [
        "# Answering in turns, on template problems",
        "",
        "Written by `benchmarks/grpo_turns.py`: stage `frontend` of the tiny model and template problems of",
        "[grpo_template.md](grpo_template.md) with our preset, the correct letter taught once in twenty, and",
        f"{document['steps']} updates of three groups of four. With two turns a failing reply is answered with the",
        f"beginning of what the judge found. Judge: {document['conditions']['device_name']}. *Solved*: share of 16",
        "dialogues per problem with a correct kernel in any turn; beside it the kernels that took. More turns judge",
        "more kernels: forms are comparable by what they judged, not by updates.",
        "",
        "| turns | credit | seed | kernels judged in training | correct at the end, by turn | trained: solved (judged) "
        "| held-out: solved (judged) |",
        "|---|---|---|---|---|---|---|",
        *(_line(run) for run in document["runs"]),
    ]
    return "\n".join(lines) + "\n"


def _line(run: dict) -> str:
    by_turn = ", ".join("none" if one is None else f"{one:.2f}" for one in run["correct_by_turn"])
    splits = (f"{run[split]['solved']:.2f} ({run[split]['judged']})" for split in ("train", "heldout"))
    cells = [str(run["turns"]), run["credit"], str(run["seed"]), str(run["judged_in_training"]), by_turn, *splits]
    return f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
