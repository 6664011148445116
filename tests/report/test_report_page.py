"""The report of a run that never happened: complete, self-contained, and honest about what is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernelblaster.agent import events as ev
from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.evaluation.results import Timing
from kernelblaster.problems.problem import Precision
from kernelblaster.records.journal import Journal
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.summary import ProblemSummary, RunSummary, Spending
from kernelblaster.report.build import write_report
from kernelblaster.report.page import make_page
from kernelblaster.report.reading import read_problem

P = "level1/023"
FACTS = DeviceFacts(
    kind=DeviceKind.EMULATED, name="<b>H200</b>", arch="sm_90", compile_arch="sm_90a", sm_count=132, clock_mhz=1980,
    memory_bytes=1 << 37, l2_bytes=60 << 20, shared_per_block=227 << 10, shared_per_sm=228 << 10,
    registers_per_sm=65536, max_warps_per_sm=64, peak_bandwidth=4.3e12, peak_flops={"fp32": 6.7e13}, peak_source="test",
)  # fmt: skip


def decided(rollout: int, step: int, gain: float) -> ev.Decided:
    slot = f"{P}/r1/rollout-{rollout}/step-{step}"
    return ev.Decided(problem=P, slot=slot, technique="unroll", outcome="correct", accepted=True, gain=gain)


@pytest.fixture
def layout(tmp_path: Path) -> RunLayout:
    return RunLayout(experiment=tmp_path, run=tmp_path / "model")


def summary_of(layout: RunLayout, status: OutcomeStatus, reason: str = "") -> RunSummary:
    row = ProblemSummary(
        problem=P, name="Softmax", status=status, reason=reason, directory=layout.run / "level1" / "023_Softmax"
    )
    return RunSummary(
        run="r", device=FACTS, precision=Precision.FP16, model="m", model_kind="recorded", problems=[row],
        spending=Spending(), knowledge_base=Path("kb.json"), directory=layout.run, seconds=1,
    )  # fmt: skip


def test_events_repeated_after_a_kill_count_once(layout: RunLayout) -> None:
    summary = summary_of(layout, OutcomeStatus.WAITING)
    directory = summary.problems[0].directory
    journal = Journal(directory / "events.jsonl")
    for event in (decided(0, 1, 1.2), decided(1, 1, 1.0), decided(0, 1, 1.2), decided(0, 2, 1.5)):
        journal.emit(event)
    steps = read_problem(summary.problems[0], directory).steps
    assert [(step.rollout, step.number, step.decided.gain) for step in steps if step.decided] == [
        ("r1/rollout-0", 1, 1.2),
        ("r1/rollout-0", 2, 1.5),
        ("r1/rollout-1", 1, 1.0),
    ]


def test_a_run_without_results_has_a_report(layout: RunLayout) -> None:
    summary = summary_of(layout, OutcomeStatus.FAILED, reason="the start is <script>alert(1)</script> wrong")
    path = write_report(summary, layout)
    html = path.read_text(encoding="utf-8")
    page = html[html.index("<body>") :]
    assert "failed" in page
    assert "modelled" in page
    assert "<script>alert(1)" not in page
    assert "&lt;b&gt;H200" in page


def test_nothing_is_fetched(layout: RunLayout) -> None:
    summary = summary_of(layout, OutcomeStatus.WAITING)
    journal = Journal(summary.problems[0].directory / "events.jsonl")
    journal.emit(decided(0, 1, 1.2))
    html = write_report(summary, layout).read_text(encoding="utf-8")
    assert not re.search(r"<(script|link|img|iframe)\b[^>]*\b(src|href)\s*=", html)
    assert "url(" not in html
    assert "://" not in html


def test_a_moved_run_is_found(layout: RunLayout, tmp_path: Path) -> None:
    summary = summary_of(layout, OutcomeStatus.WAITING)
    journal = Journal(summary.problems[0].directory / "events.jsonl")
    journal.emit(decided(0, 1, 1.25))
    layout.run.rename(tmp_path / "elsewhere")
    moved = RunLayout(experiment=tmp_path, run=tmp_path / "elsewhere")
    html = write_report(summary, moved).read_text(encoding="utf-8")
    assert "level1-023-r1-rollout-0-1" in html


def test_the_headline_tells_wrong_candidates_from_slow_ones(layout: RunLayout) -> None:
    summary = summary_of(layout, OutcomeStatus.NO_IMPROVEMENT)

    def headline(**verdicts: int) -> str:
        (row,) = summary.problems
        return make_page(
            summary.model_copy(update={"problems": [row.model_copy(update={"verdicts": verdicts})]}), []
        ).headline_told

    assert headline(compile_error=3) == headline(wrong_values=1)
    assert headline(compile_error=3) != headline(compile_error=3, correct=1) == headline()


def test_known_times_of_pytorch_stand_beside_the_two_kernels(layout: RunLayout) -> None:
    summary = summary_of(layout, OutcomeStatus.NO_IMPROVEMENT)
    start = Timing(
        median_us=40.0, low_us=39.0, high_us=41.0, iqr_us=1.0, samples=9, floor_us=None, floor_fraction=None,
        modelled=False,
    )  # fmt: skip
    (row,) = summary.problems
    row = row.model_copy(update={"start": start, "pytorch_us": {"eager": 25.0, "reduce-overhead": 20.0}})
    (problem,) = make_page(summary, [read_problem(row, row.directory)]).problems
    assert [(bar.kind, bar.width) for bar in problem.pytorch] == [
        ("start", 100.0),
        ("eager", 62.5),
        ("reduce-overhead", 50.0),
    ]
    assert problem.pytorch_told
