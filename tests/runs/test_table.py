"""The final table: what it says, and what it never leaves out."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console
from runs_samples import FACTS, row, summary, timing

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.cli.summary_table import print_summary
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.problems.problem import StandardWorkload
from kernelblaster.records.summary import RunSummary


def printed(run: RunSummary) -> str:
    text = io.StringIO()
    print_summary(Console(file=text, width=120), run)
    return text.getvalue()


def test_modelled_times_are_called_so_and_have_no_interval() -> None:
    text = printed(summary(row(OutcomeStatus.IMPROVED, 2.0)))
    head, *_ = text.split("improved")
    assert "modelled" in head
    assert "2.00x\n" in text
    assert "95 %" not in text


def test_weakly_verified_problems_are_named() -> None:
    weak = row(OutcomeStatus.IMPROVED, 2.0).model_copy(update={"weakly_verified": True})
    (named,) = [line for line in printed(summary(weak)).splitlines() if "weakly" in line]
    assert named.endswith(" level1/023")
    assert "weakly" not in printed(summary(row(OutcomeStatus.IMPROVED, 2.0)))


def test_measured_times_have_their_interval() -> None:
    improved = row(OutcomeStatus.IMPROVED, 2.0)
    measured = improved.comparison.model_copy(update={"candidate": timing(50).model_copy(update={"modelled": False})})
    facts = FACTS.model_copy(update={"kind": DeviceKind.CUDA})
    run = summary(improved.model_copy(update={"comparison": measured})).model_copy(update={"device": facts})
    text = printed(run)
    assert "2.00x [2.00, 2.00]" in text
    assert "modelled" not in text


def test_what_was_recalled_stands_apart_from_what_replies_brought() -> None:
    known = row(OutcomeStatus.IMPROVED, 3.0).model_copy(update={"recalled_speedup": 2.0})
    told = "level1/023: 2.00x recalled from the knowledge base, 1.50x by this search's replies"
    assert told in printed(summary(known)).splitlines()
    assert "recalled" not in printed(summary(row(OutcomeStatus.IMPROVED, 3.0)))


def test_a_start_without_improvement_has_its_time() -> None:
    text = printed(summary(row(OutcomeStatus.NO_IMPROVEMENT).model_copy(update={"start": timing(123.4)})))
    assert "no improvement" in text
    assert "123.4" in text


def test_pytorch_and_the_attainable_time_stand_beside_the_times() -> None:
    known = timing(50).model_copy(update={"attainable_us": 41.5})
    beside = row(OutcomeStatus.NO_IMPROVEMENT).model_copy(
        update={"start": known, "pytorch_us": {"eager": 80.25, "compile": 60.75}}
    )
    text = printed(summary(beside, row(OutcomeStatus.IMPROVED, 2.0)))
    assert "41.5" in text
    assert "60.8 compile" in text
    assert "80.2" not in text
    assert "PyTorch" not in printed(summary(row(OutcomeStatus.IMPROVED, 2.0)))


def test_unknown_prices_are_not_zero_dollars() -> None:
    run = summary(row(OutcomeStatus.IMPROVED, 2.0))
    unknown = run.spending.model_copy(update={"calls": 2, "dollars": None})
    text = printed(run.model_copy(update={"spending": unknown}))
    assert "$0.0000" not in text
    assert "unknown" in text
    assert "$0.0000" in printed(run.model_copy(update={"spending": run.spending.model_copy(update={"calls": 0})}))


def test_calls_of_a_start_that_continues_are_told_apart_from_those_of_the_run() -> None:
    run = summary(row(OutcomeStatus.IMPROVED, 2.0))
    whole = run.spending.model_copy(update={"calls": 7, "prompt_tokens": 900, "dollars": 0.0})
    this = whole.model_copy(update={"calls": 3, "prompt_tokens": 400})
    once = printed(run.model_copy(update={"spending": whole, "spending_of_start": whole}))
    assert "model calls: 7, 900 +" in once
    assert "this start" not in once
    again = printed(run.model_copy(update={"spending": whole, "spending_of_start": this}))
    assert "model calls of this start: 3, 400 +" in again
    assert "model calls of the run, earlier starts included: 7, 900 +" in again


def test_reasons_with_brackets_are_printed_as_they_are() -> None:
    failed = row(OutcomeStatus.FAILED).model_copy(update={"reason": "output[3] [bold]is[/bold] wrong"})
    assert "output[3] [bold]is[/bold] wrong" in printed(summary(failed))


def test_several_problems_have_a_mean() -> None:
    text = printed(summary(row(OutcomeStatus.IMPROVED, 4.0), row(OutcomeStatus.NO_IMPROVEMENT)))
    (mean,) = [line for line in text.splitlines() if "mean" in line]
    assert "2.00x" in mean
    assert "mean" not in printed(summary(row(OutcomeStatus.IMPROVED, 4.0)))


def test_waiting_and_budget_say_how_to_go_on() -> None:
    waiting = summary(row(OutcomeStatus.WAITING)).model_copy(
        update={"pending_requests": [Path("x/requests-001.jsonl")]}
    )
    assert "x/requests-001.jsonl" in printed(waiting)
    assert "same command" in printed(waiting)
    capped = printed(summary(row(OutcomeStatus.BUDGET)))
    assert "cap" in capped.splitlines()[-1]
    assert "cap" not in printed(summary(row(OutcomeStatus.IMPROVED, 2.0))).splitlines()[-1]


def test_declared_sizes_that_nobody_judged_are_named() -> None:
    told = row(OutcomeStatus.IMPROVED, 2.0).model_copy(update={"unjudged": ["medium", "full"], "workload": "medium"})
    run = summary(told)
    assert "full" in run.unjudged
    assert "medium" not in run.unjudged, "of the timed size it is told how it was timed as well"
    assert run.unjudged in printed(run)
    assert summary(row(OutcomeStatus.IMPROVED, 2.0)).unjudged == ""


def test_sizes_that_were_timed_in_part_and_not_judged_are_said_to_be_so() -> None:
    whole = row(OutcomeStatus.IMPROVED, 2.0)
    assert summary(whole).sampled == ""
    sampled = whole.comparison.model_copy(
        update={"candidate": whole.comparison.candidate.model_copy(update={"executed_share": 0.25})}
    )
    partly = whole.model_copy(
        update={"comparison": sampled, "outputs_judged": False, "workload": StandardWorkload.MEDIUM}
    )
    run = summary(whole, partly)
    assert run.sampled in printed(run)
    assert "medium" in run.sampled
    assert "0.25" in run.sampled
