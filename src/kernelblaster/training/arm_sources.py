"""Reads the arms of a table: evaluations of trainings, and searches without training."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from kernelblaster.agent.outcome import ProblemOutcome
from kernelblaster.config.training import Baseline
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Verdict
from kernelblaster.records.layout import OUTCOME, RunLayout
from kernelblaster.records.run_record import read_record as read_run_record
from kernelblaster.training.arm_tables import FIGURES, ArmSamples
from kernelblaster.training.arms import BASE, read_figures, values_of
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import by_problem
from kernelblaster.training.rollouts import ROLLOUTS, RolloutHeader, read_header, read_rollouts
from kernelblaster.training.rows import PromptRow, read_rows
from kernelblaster.training.stage_records import StageRecord, read_record, settings_of
from kernelblaster.training.stages import Stage
from kernelblaster.training.winners import logarithms

GREEDY = "greedy"
SEARCH = "search"
_OF_SEARCHES = ("device_name", "precision", "workload")
"""Conditions that a search and a training both tell."""


def arms_of(layouts: Sequence[TrainingLayout], stage: Stage, split: str) -> list[ArmSamples]:
    """What was sampled in trainings on the prompts of a stage. Raises UsageError for damaged files."""
    found = [one for layout in layouts for one in _evaluations(layout, stage, split)]
    varying = _varying([settings for *_, settings in found])
    return [_samples(weights, greedy, directory, header, settings, varying) for
            weights, greedy, directory, header, settings in found]  # fmt: skip


def families_of(layouts: Sequence[TrainingLayout], stage: Stage) -> dict[str, str]:
    """Problem -> family. Raises UsageError."""
    return {row.problem: row.family for layout in layouts for row in read_rows(layout.prompts(stage), PromptRow)}


def evaluated_header(layouts: Sequence[TrainingLayout], stage: Stage, split: str) -> RolloutHeader:
    """What the first of the evaluations rests on. Raises StopIteration where there is none."""
    return next(header for layout in layouts for *_, header, _ in _evaluations(layout, stage, split))


def search_arm(run: Path, like: RolloutHeader, problems: Collection[str]) -> ArmSamples:
    """A run as an arm: its candidates, and its final kernel against the start as the best of them.

    Args:
        run: its directory.
        like: what the other arms rest on; they must compare with the start too, or with a prompt's kernel that is the
            start, as held-out prompts show it.
        problems: that the other arms were asked; others are left out.

    Raises UsageError where there is no run or no finished search, or where the arms compare with PyTorch.
    """
    if like.baseline == Baseline.PYTORCH:
        raise UsageError("a search tells times against the start", hint="evaluate with --set train.baseline=start")
    layout, outcomes = RunLayout(experiment=run.resolve().parent, run=run.resolve()), {}
    if not layout.record.is_file():
        raise UsageError(f"{run} is no directory of a run", hint="name the directory that holds run.json")
    record = read_run_record(layout.record)
    for directory in layout.problems():
        path = directory / OUTCOME
        if path.is_file():
            outcome = ProblemOutcome.model_validate_json(path.read_bytes())
            if outcome.problem in problems:
                outcomes[outcome.problem] = outcome
    judged = {name: sum(outcome.verdicts.values()) for name, outcome in outcomes.items()}
    if not judged:
        raise UsageError(f"no search in {run} on these problems has ended", hint="start it again: it continues")
    known = {
        "device_name": record.device.name,
        "precision": str(record.config.precision),
        "workload": record.workload,
    }
    return ArmSamples(
        label=SEARCH,
        seed=record.config.search.seed,
        rests_on={f"conditions.{name}": known[name] for name in _OF_SEARCHES},
        values={
            "correct": {name: _share(outcomes[name], count) for name, count in judged.items()},
            "best": {name: math.log(outcome.speedup or 1.0) for name, outcome in outcomes.items()},
        },
        judged=judged,
    )


def _share(outcome: ProblemOutcome, judged: int) -> float:
    return outcome.verdicts.get(Verdict.CORRECT, 0) / judged if judged else 0.0


Evaluated = tuple[str, bool, Path, RolloutHeader, Mapping[str, object]]
"""Weights, whether greedy, where, what it rests on, the settings of the training."""


def _evaluations(layout: TrainingLayout, stage: Stage, split: str) -> Iterator[Evaluated]:
    for weights in (BASE, layout.warmup.name, *Stage):
        for greedy in (False, True):
            directory = layout.evaluation(f"{weights}-{stage}-{split}{'-greedy' if greedy else ''}")
            header = read_header(directory / ROLLOUTS)
            if header is None:
                continue
            record = None if weights == BASE else read_record(layout.root / weights)
            yield weights, greedy, directory, header, _settings(record, header)


def _settings(record: StageRecord | None, header: RolloutHeader) -> dict[str, object]:
    """Of a training; of the base model what tells it from others."""
    if record is None:
        return {"weights": header.weights, "seed": int(header.sampling.get("seed", 0))}
    told = {**settings_of(record), "updates": record.updates}
    return {**told, "preset": str(record.config.preset)} if record.plan else told


def _varying(every: Sequence[Mapping[str, object]]) -> set[str]:
    """Names of settings, but the seed, that differ between trainings which have them."""
    values: dict[str, set[str]] = {}
    for settings in every:
        for name, value in settings.items():
            values.setdefault(name, set()).add(json.dumps(value, default=str, sort_keys=True))
    return {name for name, known in values.items() if len(known) > 1} - {"seed", "stage"}


def _samples(
    weights: str,
    greedy: bool,
    directory: Path,
    header: RolloutHeader,
    settings: Mapping[str, object],
    varying: set[str],
) -> ArmSamples:
    rollouts = read_rollouts(directory)
    values = values_of(rollouts)
    most = max((int(name.partition("@")[2]) for name in values if name.startswith("log_speedup@")), default=1)
    figures = {name: values[name] for name in FIGURES if name in values}
    figures["best"] = values.get(f"log_speedup@{most}", values["log_speedup"])
    winners = read_figures(directory).winners
    if winners is not None:
        figures["winner"] = dict(zip(figures["best"], logarithms(winners, list(figures["best"])), strict=True))
    return ArmSamples(
        label=_label(weights, greedy, settings, varying),
        seed=int(str(settings["seed"])),
        rests_on={
            "stage": header.stage,
            "modelled": header.modelled,
            "baseline": header.baseline,
            **{f"conditions.{name}": value for name, value in header.conditions.items()},
            **({} if greedy else {name: header.sampling.get(name) for name in ("samples", "temperature")}),
        },
        values=figures,
        judged={name: one.completions for name, one in by_problem(rollouts).items()},
    )


def _label(weights: str, greedy: bool, settings: Mapping[str, object], varying: set[str]) -> str:
    """Weights, and what tells this training from others. A preset stands for the settings that it gives."""
    differing = sorted(varying & settings.keys())
    if "preset" in differing:
        differing = ["preset", *(name for name in differing if name not in _OF_A_PRESET | {"preset"})]
    told = [f"{name}={settings[name]}" for name in differing]
    return ", ".join([weights, *([GREEDY] if greedy else []), *told])


_OF_A_PRESET = frozenset({"loss", "advantage", "beta", "prompt_tokens", "completion_tokens", "baseline", "reward"})
