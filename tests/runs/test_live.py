"""Views: every event can be shown, modelled figures are called so, and a long silence is explained."""

from __future__ import annotations

import io
import threading
import time
from typing import get_args

import pytest
from rich.console import Console

from kernelblaster.agent import events as ev
from kernelblaster.agent.outcome import Incumbent, OutcomeStatus, StopReason
from kernelblaster.agent.state import Allocation
from kernelblaster.cli.live import LiveView, PlainView
from kernelblaster.cli.progress import Heartbeat, Progress
from kernelblaster.devices.base import Device
from kernelblaster.models.base import ChatModel
from kernelblaster.records.summary import Spending
from kernelblaster.runs.progress import ProgressDevice, ProgressModel

P = "level1/023"
STEP = f"{P}/r1/rollout-0/step-1"
TRY = f"{STEP}/attempt-0"
EVENTS = [
    ev.StartWritten(problem=P, slot=f"{P}/start/attempt-0", candidate="abc", verdict="correct", reason="",
                    prompt_tokens=1, completion_tokens=1, dollars=None),
    ev.StartWritten(problem=P, slot=f"{P}/start/attempt-1", candidate=None, verdict="unusable_reply",
                    reason="no code block", prompt_tokens=1, completion_tokens=1, dollars=None),
    ev.StartProfiled(problem=P, slot=f"{P}/start", verdict="correct", reason="", median_us=12.5, floor_fraction=0.1,
                     modelled=True),
    ev.StartProfiled(problem=P, slot=f"{P}/start", verdict="compile_error", reason="no such header", median_us=None,
                     floor_fraction=None, modelled=None),
    ev.Recalled(problem=P, slot=f"{P}/recall", core="core-1", start="abc", candidate="jkl", verdict="correct",
                speedup=1.5, decision="faster", median_us=8.0, accepted=True, reason=""),
    ev.Recalled(problem=P, slot=f"{P}/recall", core="core-1", start="abc", candidate="jkl", verdict="wrong_values",
                speedup=None, decision=None, median_us=None, accepted=False, reason="it is judged wrong_values now"),
    ev.RoundStarted(problem=P, slot=f"{P}/r1", round=1, rollouts=1, incumbent="abc", gain=1.0),
    ev.HandedOut(problem=P, slot=f"{P}/r1/generation-1", round=1, generation=1, allocations=[
        Allocation(index=0, parent=Incumbent(sha256="abc", evaluation="e")),
        Allocation(index=1, parent=Incumbent(sha256="abc", evaluation="e"), donor="def"),
    ]),
    ev.Swept(problem=P, slot=TRY, candidate="def", skipped="TUNE BM: no such constant"),
    ev.Swept(problem=P, slot=TRY, candidate="def", winner="ghi", gain=1.2),
    ev.StepStarted(problem=P, slot=STEP, parent="abc", gain=1.0),
    ev.Classified(problem=P, slot=STEP, state="latency", confidence=0.9, decided_by="rules", evidence=[]),
    ev.Selected(problem=P, slot=STEP, state="latency", technique="unroll", expected_speedup=None, p_correct=None,
                evidence_count=0),
    ev.Generated(problem=P, slot=TRY, candidate=None, stated_speedup=None, reason="no code block", prompt_tokens=1,
                 completion_tokens=1, dollars=None),
    ev.Generated(problem=P, slot=TRY, candidate="def", stated_speedup=2.0, reason="", prompt_tokens=1,
                 completion_tokens=1, dollars=None),
    ev.Evaluated(problem=P, slot=TRY, candidate="def", verdict="correct", reason="", speedup=1.5, decision="faster",
                 median_us=8.0, reused=False),
    ev.Evaluated(problem=P, slot=TRY, candidate="ghi", verdict="wrong_values", reason="[red]worst[/red] output[3]",
                 speedup=None, decision=None, median_us=None, reused=False),
    ev.Credited(problem=P, slot=STEP, asked="unroll", declared=[], credited="unroll", gained=[], refuted=[],
                machine_code=False),
    ev.ReplyCutShort(problem=P, slot=TRY, number=0, reason="nothing for 60 s", characters=7, partial="__globa"),
    ev.LessonsDrawn(problem=P, slot=f"{P}/r1/lessons", drawn=[], skipped=["no lesson"], prompt_tokens=1,
                    completion_tokens=1, dollars=None),
    ev.Decided(problem=P, slot=STEP, technique="unroll", outcome="correct", accepted=True, gain=1.5),
    ev.Decided(problem=P, slot=STEP, technique="unroll", outcome="correct", accepted=False, gain=1.5),
    ev.RolloutStopped(problem=P, slot=f"{P}/r1/rollout-0", reason=StopReason.BUDGET, steps=1, incumbent="def",
                      gain=1.5),
    ev.Waiting(problem=P, slot=TRY, request_id="1", request_file="requests-001.jsonl"),
    ev.Reflected(problem=P, slot=f"{P}/r1/reflect", round=1, changes=["added"], refused=["no"], skipped=""),
    ev.Reflected(problem=P, slot=f"{P}/r1/reflect", round=1, changes=[], refused=[], skipped="no transitions"),
    ev.FinalistMeasured(problem=P, slot=f"{P}/final", candidate="def", verdict="correct", speedup=1.5,
                        decision="faster", rejected=None),
    ev.FinalistMeasured(problem=P, slot=f"{P}/final", candidate="def", verdict="wrong_values", speedup=None,
                        decision=None, rejected="vetoed: copies its input"),
    ev.Finalized(problem=P, slot=f"{P}/final", status=OutcomeStatus.IMPROVED, reason="1.500x over the start",
                 speedup=1.5, final_sha256="def"),
]  # fmt: skip


def test_the_list_above_has_every_kind_of_event() -> None:
    kinds = get_args(get_args(ev.Event)[0])
    assert {type(event) for event in EVENTS} == set(kinds)


def plain(*, modelled: bool) -> list[str]:
    text = io.StringIO()
    with PlainView(Console(file=text, width=40), modelled=modelled) as view:
        for event in EVENTS:
            view.emit(event)
    return text.getvalue().splitlines()


def test_plain_lines_say_what_happened() -> None:
    text = "\n".join(plain(modelled=False))
    for words in (
        "start: correct, 12.5 us", "no such header", "latency: asked for unroll", "not evaluated: no code block",
        "1.50x against its parent: faster", "[red]worst[/red] output[3]", "accepted unroll", "after 1 step (budget)",
        "requests-001.jsonl", "1 changes proposed, 1 do not fit", "no reflection: no transitions",
        "vetoed: copies its input", "improved: 1.500x over the start",
    ):  # fmt: skip
        assert words in text
    assert "modelled" not in text


def test_a_step_is_named_by_what_was_done_and_by_what_was_asked_for_where_that_is_another() -> None:
    def told(credited: str) -> str:
        text = io.StringIO()
        view = PlainView(Console(file=text, width=200), modelled=False)
        for event in EVENTS:
            done = {"credited": credited} if isinstance(event, ev.Credited) else {}
            view.emit(event.model_copy(update=done))
        (line,) = [line for line in text.getvalue().splitlines() if "accepted" in line]
        return line

    assert "unroll" in told("unroll")
    assert told("unroll").count("unroll") == 1
    assert told("split_k").index("split_k") < told("split_k").index("unroll")


def test_modelled_figures_are_called_so() -> None:
    figures = [line for line in plain(modelled=True) if " us" in line or "50x" in line]
    assert len(figures) >= 5
    assert all("modelled" in line for line in figures if "over the start" not in line)


@pytest.mark.parametrize("width", [40, 120])
def test_the_live_table_shows_every_event(width: int) -> None:
    text = io.StringIO()
    console = Console(file=text, width=width, height=20, force_terminal=True)
    view = LiveView(console, [P, "level1/001"], 2, lambda: Spending(calls=1), lambda: 90.0, modelled=True)
    with view:
        for event in EVENTS:
            view.emit(event)
            view.tell("compiling")
            console.print(view._render())
    shown = text.getvalue()
    assert P in shown
    assert "1.50x" in shown
    assert width < 80 or "at most 2 min left" in shown


def test_what_a_problem_may_be_held_against_stands_beside_its_times() -> None:
    start = ev.StartProfiled(
        problem=P, slot=f"{P}/start", verdict="correct", reason="", median_us=300.0, floor_fraction=0.1, modelled=False,
        attainable_us=183.4, pytorch_us={"eager": 200.7, "compile": 174.1},
    )  # fmt: skip
    text = io.StringIO()
    console = Console(file=text, width=120, height=20)
    view = LiveView(console, [P], 2, Spending, lambda: None, modelled=False)
    view.emit(start)
    view.emit(ev.Decided(problem=P, slot=STEP, technique="unroll", outcome="correct", accepted=True, gain=1.5))
    console.print(view._render())
    assert "200.0 183.4 174.1" in " ".join(text.getvalue().split())

    line = io.StringIO()
    PlainView(Console(file=line, width=200), modelled=False).emit(start)
    assert all(figure in line.getvalue() for figure in ("300.0", "183.4", "174.1", "compile"))


def test_more_problems_than_lines_are_counted() -> None:
    text = io.StringIO()
    console = Console(file=text, width=100, height=10, force_terminal=True)
    names = [f"level1/{number:03}" for number in range(50)]
    view = LiveView(console, names, 2, Spending, lambda: None, modelled=False)
    view.emit(EVENTS[0].model_copy(update={"problem": "level1/049"}))
    console.print(view._render())
    shown = text.getvalue()
    assert "level1/049" in shown
    assert "and 46 more problems" in shown
    assert shown.count("\n") <= 10


def test_a_long_silence_is_explained_and_a_short_one_is_not() -> None:
    text = io.StringIO()
    with Heartbeat(Console(file=text, width=80), first_s=1.5, repeat_s=60) as heartbeat:
        heartbeat.tell("compiling")
        heartbeat.tell("running [a] kernel")
        deadline = time.monotonic() + 30
        while "running" not in text.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)
    assert text.getvalue().startswith("... running [a] kernel (")
    assert "compiling" not in text.getvalue()
    assert text.getvalue().count("\n") == 1


def test_progress_ends_with_its_block() -> None:
    before = threading.active_count()
    with Progress(Console(file=io.StringIO(), force_terminal=True, width=80)) as progress:
        progress.tell("working")
    with Progress(Console(file=io.StringIO(), width=80)) as progress:
        progress.tell("working")
    deadline = time.monotonic() + 30
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert threading.active_count() <= before


@pytest.mark.parametrize(("seam", "wrapper"), [(Device, ProgressDevice), (ChatModel, ProgressModel)])
def test_a_wrapper_that_tells_progress_hides_nothing(seam: type, wrapper: type) -> None:
    promised = {name for name in vars(seam) if not name.startswith("_")}
    assert promised
    assert promised <= set(dir(wrapper))
