"""Runs side by side: what is compared, what is refused, and what counts for a problem that was not improved."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from test_report_page import FACTS

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.api.runs import compare_runs
from kernelblaster.config import RunConfig, SearchConfig, SearchPart
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Comparison, Decision, Timing
from kernelblaster.problems.problem import Precision
from kernelblaster.records.run_record import RunRecord
from kernelblaster.records.summary import ProblemSummary, RunSummary, Spending
from kernelblaster.report.build import write_comparison
from kernelblaster.report.comparison import RunToCompare, make_comparison
from kernelblaster.report.costs import Cost


def timing(us: float) -> Timing:
    return Timing(
        median_us=us, low_us=us, high_us=us, iqr_us=0, samples=1, floor_us=None, floor_fraction=None, modelled=True
    )


def row(problem: str, speedup: float | None) -> ProblemSummary:
    compared = speedup and Comparison(
        speedup=speedup, low=speedup, high=speedup, baseline=timing(100), candidate=timing(100 / speedup),
        decision=Decision.FASTER, threshold=0.01,
    )  # fmt: skip
    status = OutcomeStatus.IMPROVED if speedup else OutcomeStatus.NO_IMPROVEMENT
    return ProblemSummary(
        problem=problem, name="x", status=status, reason="" if speedup else "none was faster", start=timing(100),
        comparison=compared, directory=Path(),
    )  # fmt: skip


def run(
    label: str, *, tokens: int = 10_000, ablate: tuple[SearchPart, ...] = (), **speedups: float | None
) -> RunToCompare:
    summary = RunSummary(
        run=label, device=FACTS, precision=Precision.FP16, model="m", model_kind="given",
        problems=[row(f"level1/{name}", speedup) for name, speedup in speedups.items()],
        spending=Spending(prompt_tokens=10_000), knowledge_base=Path(), directory=Path(), seconds=1,
    )  # fmt: skip
    record = RunRecord(
        run=label, started="", config=RunConfig(search=SearchConfig(ablate=ablate)), workload="small", device=FACTS,
        device_reason="", model_reason="", versions={},
    )  # fmt: skip
    return RunToCompare(label, summary, record)


def test_means_are_over_problems_that_all_searched_and_failures_count_as_one() -> None:
    page = make_comparison([run("a", p1=4.0, p2=None, p3=9.0), run("b", p1=2.0, p2=2.0)])
    assert page.shared == 2
    assert [column.mean for column in page.columns] == ["2.00\u00d7", "2.00\u00d7"]
    assert not any(column.best for column in page.columns)
    assert [column.improved for column in page.columns] == ["2 of 3", "2 of 2"]
    other, own = (column.per_doubling for column in page.columns)
    assert own == Cost(5_000, None).told
    assert "tokens" not in other, "its tokens were spent on p3, too"


def test_the_best_run_of_each_problem_is_marked_where_one_leads() -> None:
    page = make_comparison([run("a", p1=4.0, p2=1.5, p3=None), run("b", p1=2.0, p2=1.502, p3=1.2), run("c", p4=3.0)])
    marked = {line.title: [cell.best for cell in line.cells] for line in page.lines}
    assert marked == {
        "level1/p1 x": [True, False, False], "level1/p2 x": [False, False, False],
        "level1/p3 x": [False, True, False], "level1/p4 x": [False, False, False],
    }  # fmt: skip
    told = [cell.told for cell in page.lines[2].cells]
    assert told[0]
    assert not told[2]
    assert page.shared == 0
    assert not page.columns[0].mean


def test_what_was_recalled_is_not_bought_with_tokens() -> None:
    bought, known = run("a", p1=3.0, p2=2.0), run("b", p1=3.0, p2=2.0)
    for row, part in zip(known.summary.problems, (1.5, 2.0), strict=True):
        row.recalled_speedup = part
    page = make_comparison([bought, known])
    assert page.columns[0].mean == page.columns[1].mean
    told = [line.cells[1].recalled for line in page.lines]
    assert [float(cell.partition("\u00d7")[0]) for cell in told] == [1.5, 2.0]
    assert not any(line.cells[0].recalled for line in page.lines)
    costs = [Cost(10_000, None).per_doubling(math.log(gain)) for gain in (6, 2)]
    assert [column.per_doubling for column in page.columns] == [cost.told for cost in costs if cost]


def test_settings_that_differ_are_told() -> None:
    page = make_comparison([run("a", p1=2.0), run("b", p1=2.0, ablate=(SearchPart.PROFILE,))])
    assert {setting.name: setting.values for setting in page.settings} == {"search.ablate": ("", "profile")}


def test_runs_on_different_devices_are_refused() -> None:
    one, other = run("a", p1=2.0), run("b", p1=2.0)
    measured = other.summary.model_copy(update={"device": FACTS.model_copy(update={"kind": DeviceKind.CUDA})})
    with pytest.raises(UsageError):
        make_comparison([one, RunToCompare("b", measured, other.record)])


def test_the_page_is_one_file_and_escapes_names(tmp_path: Path) -> None:
    path = write_comparison([run("<i>a</i>", p1=2.0), run("b", p1=3.0)], tmp_path / "page.html")
    html = path.read_text(encoding="utf-8")
    assert "<i>a</i>" not in html
    assert "<b>H200" not in html
    assert not any(reference in html for reference in ("src=", 'href="http', "url("))


def test_one_run_is_no_comparison(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        compare_runs([tmp_path, tmp_path])


def test_a_search_that_has_not_ended_says_so_and_is_no_failure() -> None:
    ended, open_run = run("a", p1=4.0), run("b", p1=None)
    open_run.summary.problems[0].status = OutcomeStatus.WAITING
    open_run.summary.problems[0].reason = ""
    page = make_comparison([ended, open_run])
    assert page.shared == 0
    assert page.lines[0].cells[1].told == str(OutcomeStatus.WAITING)
    assert not page.lines[0].cells[0].best
    assert [column.per_doubling for column in page.columns] == ["", ""]
