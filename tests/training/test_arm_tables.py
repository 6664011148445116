"""Arms of several trainings in one table: seeds pooled, what is not alike refused, a search beside them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from fake_judge import FACTS, evaluation
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.agent.outcome import OutcomeStatus, ProblemOutcome
from kernelblaster.api.training_comparison import compare_trainings
from kernelblaster.config import RunConfig
from kernelblaster.config.training import Preset, TrainConfig
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import Message
from kernelblaster.records.run_record import RunRecord
from kernelblaster.training.arm_pages import markdown_of
from kernelblaster.training.arm_tables import ArmSamples, Resampled, table_of
from kernelblaster.training.arms import ArmFigures
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import metrics_of
from kernelblaster.training.rollouts import Rollout, RolloutHeader, RolloutStore
from kernelblaster.training.rows import PromptRow, write_rows
from kernelblaster.training.stage_records import StageRecord, write_record
from kernelblaster.training.stages import Stage, plan_of
from kernelblaster.training.winners import Winner

PROBLEMS = ("level1/089", "level1/091", "level1/095", "level3/043")
CONDITIONS = {"device": "emulated", "device_name": "GPU", "precision": "fp16", "workload": "small"}


def trained(root: Path, seed: int, preset: Preset = Preset.OURS) -> TrainingLayout:
    """A training of which `midend` has ended, with a prompt per problem."""
    layout = TrainingLayout(root)
    config = TrainConfig(seed=seed, preset=preset, steps=2)
    record = StageRecord(
        stage="midend", updates=2, config=config, model_sha256="m", plan=vars(plan_of(config, Stage.MIDEND)),
        conditions=CONDITIONS, versions={}, data_sha256="d", begins_with="sft", rows=4, left_out=0,
    )  # fmt: skip
    layout.stage(Stage.MIDEND).mkdir(parents=True)
    write_record(layout.stage(Stage.MIDEND), StageRecord.model_validate_json(record.model_dump_json()))
    rows = [
        PromptRow(
            prompt=(Message(role="user", content=name),), problem=name, stage="midend", precision="fp16",
            size="small", family=name[:6], split="heldout",
        )
        for name in PROBLEMS
    ]  # fmt: skip
    write_rows(layout.prompts(Stage.MIDEND), rows)
    return layout


def sampled(
    layout: TrainingLayout, weights: str, speedups: Sequence[float | None], device: str = "GPU", seed: int = 0
) -> None:
    """Two samples per problem, of which the first has this speed-up; None for a wrong one. The second is correct."""
    directory = layout.evaluation(f"{weights}-midend-heldout")
    directory.mkdir(parents=True)
    header = RolloutHeader(
        stage="midend", conditions={**CONDITIONS, "device_name": device}, modelled=True, reward="seed",
        baseline="parent", sampling={"samples": 2, "temperature": 1.0, "seed": seed}, weights="w",
    )  # fmt: skip
    store = RolloutStore(directory, header)
    figures = ArmFigures(overall=metrics_of([]), problems={}, estimates={}, winners=[winner(PROBLEMS[0])])
    (directory / "eval.json").write_text(figures.model_dump_json())
    for step, (name, speedup) in enumerate(zip(PROBLEMS, speedups, strict=True)):
        for index, one in enumerate((speedup, 1.0)):
            store.keep(
                Rollout(
                    step=step, index=index, group=step, problem=name, prompt=name, completion="", tokens=1,
                    truncated=False, reward=0.0, verdict="wrong_values" if one is None else "correct", speedup=one,
                    decision="" if one is None else Decision.FASTER if one > 1 else Decision.INCONCLUSIVE,
                )
            )  # fmt: skip


def winner(problem: str) -> Winner:
    """One that holds."""
    return Winner(problem=problem, source_sha256="s", speedup=9.0, again=(1.5, 2.0, 3.0), findings=())


def test_seeds_are_one_arm_and_presets_are_two(tmp_path: Path) -> None:
    for preset, gain in ((Preset.OURS, 4.0), (Preset.SEED, 1.0)):
        for seed in range(3):
            layout = trained(tmp_path / f"{preset}-{seed}", seed, preset)
            sampled(layout, "base", [1.0] * 4, seed=seed)
            sampled(layout, "midend", [gain, gain, gain, None if seed == 0 else gain], seed=seed)
    table = compare_trainings(sorted(tmp_path.iterdir()), against="base", output=tmp_path / "table.md")
    rows = {row.label: row for row in table.rows}
    assert list(rows) == ["base", "midend, preset=ours", "midend, preset=seed"]
    assert all(row.seeds == [0, 1, 2] and row.problems == 4 for row in rows.values())
    ours, report = rows["midend, preset=ours"], rows["midend, preset=seed"]
    assert ours.estimates["correct"].value == pytest.approx(1 - 1 / 24)
    assert ours.differences["best"].value == pytest.approx(math.log(4) * 11 / 12)
    assert ours.differences["best"].decided
    assert not report.differences["best"].decided
    assert ours.estimates["winner"].value == pytest.approx(math.log(2) / 4)
    assert ours.by_problem["level3/043"]["best"] == pytest.approx(math.log(4) * 2 / 3)
    assert ours.judged_per_problem == 2
    assert "midend, preset=seed" in (tmp_path / "table.md").read_text()
    assert markdown_of(table) == (tmp_path / "table.md").read_text()


def test_what_rests_on_other_things_is_refused_and_so_is_nothing(tmp_path: Path) -> None:
    one, other = trained(tmp_path / "one", 0), trained(tmp_path / "other", 1)
    with pytest.raises(UsageError, match="nothing was sampled"):
        compare_trainings([one.root, other.root])
    sampled(one, "midend", [2.0] * 4)
    sampled(other, "midend", [2.0] * 4, device="another GPU")
    with pytest.raises(UsageError, match="another GPU"):
        compare_trainings([one.root, other.root])
    with pytest.raises(UsageError, match="no arm 'frontend'"):
        compare_trainings([one.root], against="frontend")


def test_an_ambiguous_reference_is_refused(tmp_path: Path) -> None:
    for preset in Preset:
        sampled(trained(tmp_path / preset, 0, preset), "midend", [2.0] * 4)
    with pytest.raises(UsageError, match="several arms"):
        compare_trainings([tmp_path / preset for preset in Preset], against="midend")


def test_a_search_is_an_arm_by_its_final_kernels(tmp_path: Path) -> None:
    layout = trained(tmp_path / "one", 0)
    sampled(layout, "midend", [2.0] * 4)
    finals = dict(zip((*PROBLEMS, "level1/001"), (3.0, 3.0, None, 3.0, 9.0), strict=True))
    run = searched(tmp_path / "run", "GPU", finals)
    table = compare_trainings([layout.root], runs=[run])
    found = table.rows[1]
    assert (found.label, found.judged_per_problem) == ("search", 4)
    assert found.estimates["correct"].value == pytest.approx(0.75)
    assert found.estimates["best"].value == pytest.approx(math.log(3) * 3 / 4)
    assert found.differences.keys() == {"correct", "best"}
    with pytest.raises(UsageError, match="another GPU"):
        compare_trainings([layout.root], runs=[searched(tmp_path / "other", "another GPU", {PROBLEMS[0]: 2.0})])
    with pytest.raises(UsageError, match="no directory of a run"):
        compare_trainings([layout.root], runs=[tmp_path])


def searched(run: Path, device: str, speedups: dict[str, float | None]) -> Path:
    """A run whose searches judged three correct candidates and a wrong one each."""
    run.mkdir()
    facts = FACTS.model_copy(update={"name": device})
    record = RunRecord(
        run="r", started="now", config=RunConfig(), workload="small", device=facts, device_reason="", model_reason="",
        versions={},
    )  # fmt: skip
    (run / "run.json").write_text(record.model_dump_json())
    for name, speedup in speedups.items():
        level, number = name.split("/")
        directory = run / level / f"{number}_Name"
        directory.mkdir(parents=True)
        comparison = None
        if speedup is not None:
            comparison = evaluation(Verdict.CORRECT, speedup, Decision.FASTER).comparison
        outcome = ProblemOutcome(
            problem=name, status=OutcomeStatus.IMPROVED, comparison=comparison,
            verdicts={"correct": 3, "wrong_values": 1},
        )  # fmt: skip
        (directory / "outcome.json").write_text(outcome.model_dump_json())
    return run


@given(
    values=st.lists(st.lists(st.floats(-2, 2), min_size=5, max_size=5), min_size=1, max_size=4),
    resampled=st.sampled_from(Resampled),
)
def test_the_mean_is_that_of_all_seeds_and_problems_and_lies_in_its_interval(
    values: list[list[float]], resampled: Resampled
) -> None:
    names = [f"level1/{number:03}" for number in range(5)]
    arms = [
        ArmSamples("a", seed, {}, {"correct": dict(zip(names, one, strict=True))}, dict.fromkeys(names, 1))
        for seed, one in enumerate(values)
    ]
    families = {name: str(place // 2) for place, name in enumerate(names)}
    (row,) = table_of(arms, stage="midend", split="heldout", against="a", families=families, resampled=resampled).rows
    found = row.estimates["correct"]
    every = [one for seed in values for one in seed]
    assert found.value == pytest.approx(sum(every) / len(every), abs=1e-12)
    assert found.low is not None
    assert found.high is not None
    assert min(every) - 1e-9 <= found.low <= found.high <= max(every) + 1e-9
