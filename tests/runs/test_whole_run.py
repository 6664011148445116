"""A run's files hold what every start of it has found, finished or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs_samples import row, summary

from kernelblaster.agent import events as ev
from kernelblaster.agent.outcome import OutcomeStatus, ProblemOutcome
from kernelblaster.config import BudgetConfig
from kernelblaster.errors import ExitCode, UsageError
from kernelblaster.models.base import Message, Purpose, Request, Usage
from kernelblaster.models.ledger import CostLedger, stored_totals
from kernelblaster.records.journal import Journal
from kernelblaster.records.layout import JOURNAL, OUTCOME, RunLayout
from kernelblaster.records.rows import row_on_disk
from kernelblaster.records.whole_run import with_every_problem


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return RunLayout(experiment=tmp_path, run=tmp_path / "model")


def finished(layout: RunLayout, name: str, status: OutcomeStatus) -> Path:
    directory = layout.run / "level1" / name
    directory.mkdir(parents=True)
    outcome = ProblemOutcome(problem=f"level1/{name[:3]}", status=status)
    (directory / OUTCOME).write_text(outcome.model_dump_json())
    return directory


def cut_off(layout: RunLayout, name: str) -> Path:
    directory = layout.run / "level1" / name
    journal = Journal(directory / JOURNAL)
    place = {"problem": f"level1/{name[:3]}", "slot": "r1/rollout-0/step-1"}
    started = {"verdict": "correct", "reason": "", "median_us": 4.0, "floor_fraction": None, "modelled": False}
    journal.emit(ev.StartProfiled(problem=place["problem"], slot=f"{place['problem']}/start", **started))
    journal.emit(
        ev.Evaluated(
            **place,
            candidate="c",
            verdict="correct",
            reason="",
            speedup=2.0,
            decision="faster",
            median_us=1.0,
            reused=False,
        )
    )
    journal.emit(ev.Decided(**place, technique="unroll", outcome="faster", accepted=True, gain=2.0))
    return directory


def test_what_earlier_starts_found_stays(layout: RunLayout) -> None:
    finished(layout, "001_Product", OutcomeStatus.IMPROVED)
    finished(layout, "023_Softmax", OutcomeStatus.IMPROVED)
    cut_off(layout, "089_cumsum")
    (layout.run / "level1" / "001_Product.before-20261122").mkdir()
    latest = row(OutcomeStatus.IMPROVED, 2.0).model_copy(update={"directory": layout.run / "level1" / "023_Softmax"})
    whole = with_every_problem(summary(latest), layout)
    assert [(found.problem, found.status) for found in whole.problems] == [
        ("level1/001", OutcomeStatus.IMPROVED),
        ("level1/023", OutcomeStatus.IMPROVED),
        ("level1/089", OutcomeStatus.INTERRUPTED),
    ]


def test_a_search_that_waits_is_not_called_interrupted(layout: RunLayout) -> None:
    directory = cut_off(layout, "023_Softmax")
    waiting = row(OutcomeStatus.WAITING).model_copy(update={"directory": directory})
    assert with_every_problem(summary(waiting), layout).problems == [waiting]


def test_an_unfinished_search_tells_what_it_has(layout: RunLayout) -> None:
    found = row_on_disk(cut_off(layout, "023_Softmax"))
    assert (found.name, found.verdicts, found.transitions) == ("Softmax", {"correct": 1}, 1)
    assert "4.00x" in found.reason, "its start took 4 us, its fastest reply 1"
    assert summary(found).exit_code is ExitCode.INTERRUPTED
    assert summary(found).geometric_mean is None


def test_a_problem_of_ones_own_keeps_its_name(layout: RunLayout) -> None:
    level = layout.run / "level0"
    for directory in (level / "my_kernel", level / "7_up"):
        directory.mkdir(parents=True)
        found = row_on_disk(directory)
        assert found.problem == found.name == found.title == directory.name


def test_a_damaged_outcome_is_named(layout: RunLayout) -> None:
    directory = finished(layout, "023_Softmax", OutcomeStatus.IMPROVED)
    (directory / OUTCOME).write_text("{")
    with pytest.raises(UsageError, match=OUTCOME):
        row_on_disk(directory)


def test_a_start_knows_what_it_spent_itself(layout: RunLayout) -> None:
    for calls in (2, 1):
        ledger = CostLedger(layout.ledger, BudgetConfig())
        for number in range(calls):
            request = Request(
                slot=f"{calls}/{number}", purpose=Purpose.GENERATE, messages=(Message(role="user", content="?"),)
            )
            ledger.record(request, Usage(prompt_tokens=10, completion_tokens=5, dollars=0.5), model="m", seconds=0)
    assert (ledger.totals().calls, ledger.totals_of_start().calls) == (3, 1)
    assert ledger.totals_of_start().dollars == 0.5
    before = layout.ledger.read_bytes()
    assert stored_totals(layout.ledger) == ledger.totals()
    assert layout.ledger.read_bytes() == before
