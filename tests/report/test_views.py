"""From what was recorded to what templates show."""

from __future__ import annotations

import base64
import json
import re
import zlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup
from report_samples import P, profiled, recalled, record, step, two_rollouts

from kernelblaster.agent import events as ev
from kernelblaster.agent.files import DrawnLesson, SweepPoint
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.evaluation.results import Timing
from kernelblaster.evaluation.sweep import SweptVariant
from kernelblaster.knowledge.pairs import PairEffect
from kernelblaster.models.base import Message, Purpose, Reply, Request, Usage
from kernelblaster.problems.problem import Precision
from kernelblaster.records.summary import RunSummary, Spending
from kernelblaster.report.code import highlighted, hot_kernels, side_by_side
from kernelblaster.report.counters import counters
from kernelblaster.report.lessons import lessons_view
from kernelblaster.report.packing import PackRoom, TextPack
from kernelblaster.report.page import make_page
from kernelblaster.report.reading import steps_of
from kernelblaster.report.roofline import roofline
from kernelblaster.report.scales import LogScale, times
from kernelblaster.report.search_tree import StepEnding, search_tree
from kernelblaster.report.steps import step_views
from kernelblaster.report.sweeps import sweep_views
from kernelblaster.report.techniques import technique_table
from kernelblaster.report.winning_path import winning_path

FACTS = DeviceFacts(
    kind=DeviceKind.EMULATED, name="H200", arch="sm_90", compile_arch="sm_90a", sm_count=100, clock_mhz=1000,
    memory_bytes=1 << 37, l2_bytes=60 << 20, shared_per_block=227 << 10, shared_per_sm=228 << 10,
    registers_per_sm=65536, max_warps_per_sm=64, peak_bandwidth=4e12, peak_flops={}, peak_source="test",
)  # fmt: skip
SOURCES = st.text(st.sampled_from('ab{}();/*"\n <&>#'), max_size=120)


def plain(line: Markup) -> str:
    return Markup(re.sub(r"</?i[^>]*>", "", line)).unescape()


def test_the_tree_branches_off_what_was_accepted_and_marks_the_way_to_the_final_kernel(tmp_path: Path) -> None:
    tree = search_tree(record(tmp_path, two_rollouts(), final="c"))
    assert tree is not None
    assert [(dot.outcome, dot.best) for dot in tree.dots] == [
        (StepEnding.FASTER, True), (StepEnding.SLOWER, False), (StepEnding.FASTER, True), (StepEnding.WRONG, False),
    ]  # fmt: skip
    first, slower, last, _ = tree.dots
    assert first.y == slower.y == last.y < tree.lanes[1].y
    ways = [edge.path for edge in tree.edges if edge.best]
    assert any(path.startswith(f"M{first.x:g} ") and path.endswith(f"H{last.x:g}") for path in ways)
    assert len(ways) == 2


def test_what_was_recalled_stands_between_the_start_and_what_was_made_of_it(tmp_path: Path) -> None:
    steps = [*step(0, 1, "known", "a", "faster", 1.5, 3.0), *step(1, 1, "known", "b", "slower", 0.5, 2.0)]
    found = replace(record(tmp_path, steps, final="a"), recalled=recalled(), rounds={1: "known"})
    tree = search_tree(found)
    assert tree is not None
    known, first, second = tree.dots
    assert (known.figure.text, known.outcome, known.best) == ("2.00\u00d7", StepEnding.FASTER, True)
    assert "core-1" in known.title
    assert "no model was asked" in known.title
    assert [lane.name for lane in tree.lanes] == ["recalled", "r1 · 0", "r1 · 1"]
    (root,) = tree.roots
    x, y = root.x, root.y
    assert (root.name.text, y) == ("start", known.y)
    assert x < known.x < first.x == second.x
    begins = [edge.path.split("H")[0].split("C")[0] for edge in tree.edges]
    assert sorted(begins) == sorted([f"M{x:g} {y:g}", *[f"M{known.x:g} {known.y:g}"] * 2])
    assert [edge.best for edge in tree.edges] == [False, True, True]


def test_rounds_branch_off_the_start_where_a_recalled_kernel_was_refused(tmp_path: Path) -> None:
    for refused, ending in ((recalled(None, None), StepEnding.WRONG), (recalled("slower", 0.5), StepEnding.SLOWER)):
        tree = search_tree(replace(record(tmp_path, two_rollouts(), final="c"), recalled=refused))
        assert tree is not None
        assert (tree.dots[0].outcome, tree.dots[0].figure.text, tree.dots[0].best) == (ending, "", False)
        (root,) = tree.roots
        assert sum(edge.path.startswith(f"M{root.x:g} {root.y:g}") for edge in tree.edges) == 3


def test_a_search_that_ended_with_what_was_recalled_has_a_tree_and_its_kernel(tmp_path: Path) -> None:
    found = replace(record(tmp_path, [], final="known"), recalled=recalled(), rounds={1: "known"})
    found.files.candidate_path("known").parent.mkdir(parents=True)
    found.files.candidate_path("known").write_text("int kernel;")
    tree = search_tree(found)
    assert tree is not None
    (dot,), (edge,) = tree.dots, tree.edges
    assert (dot.best, edge.best, edge.accepted) == (True, True, True)
    (view,) = step_views(found, TextPack())
    assert (view.anchor, view.result, view.time) == (dot.anchor, "2.00\u00d7", "5.00 µs")
    assert [text.name for text in view.attempts[0].texts] == ["kernel"]


def test_a_step_that_chose_nothing_is_none(tmp_path: Path) -> None:
    opened = ev.StepStarted(problem=P, slot=f"{P}/r1/rollout-0/step-4", parent="c", gain=3.0)
    assert len(list(steps_of([*two_rollouts(), opened]))) == 4
    assert search_tree(record(tmp_path, [opened])) is None


def test_a_kernel_lies_under_both_ceilings_of_the_roofline(tmp_path: Path) -> None:
    # In 10 us 100 SMs issue 4e6 warp instructions at 1 GHz, and 4e7 bytes are all that DRAM can move.
    at_peak = profiled("start", instructions=2e6, read=4e7, ns=1e4)
    quick = profiled("a", instructions=1e6, read=1e6, ns=1e4)
    plot = roofline(record(tmp_path, two_rollouts(), final="a", start=at_peak, a=quick), FACTS)
    assert plot is not None
    start, final = sorted(plot.points, key=lambda point: point.kind, reverse=True)
    assert (start.kind, final.kind) == ("start", "final")
    x0, y0, x1, y1 = map(float, re.findall(r"[\d.]+", plot.roof)[:4])
    on_roof = y0 + (start.x - x0) * (y1 - y0) / (x1 - x0)
    assert start.y == pytest.approx(on_roof, abs=1.0)
    assert final.y > y1
    assert plot.move


def test_without_counters_there_is_no_roofline(tmp_path: Path) -> None:
    lacking = profiled("a", instructions=0, read=0, ns=0)
    assert roofline(record(tmp_path, two_rollouts(), a=lacking), FACTS) is None


@given(SOURCES, SOURCES)
def test_a_diff_holds_every_line_of_both_sides_once(before: str, after: str) -> None:
    rows = [row for part in side_by_side(before, after).parts for row in part.rows]
    for text, lines in ((before, [row.left for row in rows]), (after, [row.right for row in rows])):
        shown = [line for line in lines if line is not None]
        assert [line.number for line in shown] == list(range(1, len(shown) + 1))
        assert [plain(line.html) for line in shown] == text.rstrip("\n").split("\n")[: len(shown)]


@given(SOURCES)
def test_highlighting_changes_no_character(source: str) -> None:
    assert "\n".join(plain(line) for line in highlighted(source)) == source


def test_long_unchanged_runs_are_folded() -> None:
    lines = [f"line{number};" for number in range(40)]
    diff = side_by_side("\n".join(lines), "\n".join([*lines[:20], "new;", *lines[21:]]))
    assert [part.folded for part in diff.parts] == [True, False, True]
    assert (diff.removed, diff.added) == (1, 1)
    assert len(diff.parts[1].rows) == 7


def test_hot_lines_stand_among_their_neighbours() -> None:
    source = "\n".join(f"int x{number};" for number in range(1, 41))
    found = profiled(
        "a", instructions=1, read=1, ns=5e3, hot="candidate.cu:10 40%, candidate.cu:30 20%, candidate.cu:99 1%"
    )
    (kernel,) = hot_kernels(found, source)
    assert (kernel.name, kernel.time_us) == ("k", 5.0)
    shown = [(line.number, line.percent) if line else None for line in kernel.lines]
    assert [line[0] if line else 0 for line in shown] == [8, 9, 10, 11, 12, 0, 28, 29, 30, 31, 32]
    assert {line for line in shown if line and line[1]} == {(10, 40), (30, 20)}
    assert hot_kernels(profiled("a", instructions=1, read=1, ns=1), source) == ()


def test_counters_say_which_way_is_better() -> None:
    before = profiled("start", instructions=2e6, read=1e6, ns=1e4)
    after = profiled("a", instructions=1e6, read=1.2e6, ns=1e4)
    rows = {row.label: row for row in counters(before, after)}
    assert {label: row.change for label, row in rows.items()} == {
        "time in kernels": "", "warp instructions": "good", "read from DRAM": "bad",
    }  # fmt: skip
    assert rows["warp instructions"].shares == (100.0, 50.0)
    assert counters(None, None) == ()


def test_techniques_count_every_candidate(tmp_path: Path) -> None:
    table = technique_table([record(tmp_path, two_rollouts())])
    assert table is not None
    (row,) = table.rows
    assert (row.asked, row.done, row.correct, row.accepted, row.best) == (4, 4, 3, 2, times(2.0))
    assert len(row.trials) == 3
    assert [trial.x > table.one for trial in row.trials] == [True, False, True]


def test_what_was_done_is_named_everywhere_beside_what_was_asked_for(tmp_path: Path) -> None:
    done = ev.Credited(
        problem=P, slot=f"{P}/r1/rollout-0/step-1", asked="unroll", declared=[], credited="split_k", gained=[],
        refuted=[], machine_code=True,
    )  # fmt: skip
    quick = profiled("a", instructions=1e6, read=1e6, ns=1e4)
    found = record(tmp_path, [*two_rollouts(), done], final="c", a=quick)
    for name in ("start", "a", "c"):
        found.files.candidate_path(name).parent.mkdir(exist_ok=True)
        found.files.candidate_path(name).write_text(name)
    tree, roof, table = search_tree(found), roofline(found, FACTS), technique_table([found])
    assert tree is not None
    assert roof is not None
    assert table is not None
    told = [
        tree.dots[0].title,
        roof.points[0].title,
        step_views(found, TextPack())[0].technique,
        winning_path(found)[0].told,
        next(row for row in table.rows if row.name == "split_k").trials[0].title,
    ]
    assert all("split_k" in one and "unroll" in one for one in told)
    assert {row.name: (row.asked, row.done) for row in table.rows} == {"split_k": (0, 1), "unroll": (4, 3)}
    assert table.undone == ()
    every = [done.model_copy(update={"slot": step.slot}) for step in found.steps]
    other = technique_table([record(tmp_path, [*two_rollouts(), *every])])
    assert other is not None
    assert ([row.name for row in other.rows], other.undone) == (["split_k"], (("unroll", 4),))


def test_each_edge_has_its_gain_over_the_kernel_that_it_leaves(tmp_path: Path) -> None:
    tree = search_tree(record(tmp_path, two_rollouts(), final="c"))
    assert tree is not None
    by_dot = {edge.path.rpartition("H")[2]: edge.figure.text for edge in tree.edges if edge.figure.y < tree.lanes[0].y}
    assert [by_dot[f"{dot.x:g}"] for dot in tree.dots[:3]] == [times(2.0), times(0.5), times(1.5)]
    assert [dot.figure.text for dot in tree.dots] == [times(2.0), "", times(3.0), ""]
    assert sum(not edge.figure.text for edge in tree.edges) == 1, "what was not timed has no gain"


def test_kernel_prompt_and_reply_of_a_candidate_are_in_the_pack(tmp_path: Path) -> None:
    problem = record(tmp_path, two_rollouts())
    problem.files.candidate_path("a").parent.mkdir()
    problem.files.candidate_path("a").write_text("the kernel")
    slot = f"{P}/r1/rollout-0/step-1/attempt-0"
    request = Request(slot=slot, purpose=Purpose.GENERATE, messages=(Message(role="user", content="the question"),))
    usage = Usage(prompt_tokens=1, completion_tokens=1, dollars=None)
    problem.files.put_reply(request, Reply(text="the reply", usage=usage, model="m"))
    pack = TextPack()
    first = step_views(problem, pack)[0]
    texts = json.loads(zlib.decompress(base64.b64decode(pack.packed())))
    opened = {text.name: texts[text.number] for text in first.attempts[0].texts}
    assert opened["kernel"] == "the kernel"
    assert opened["reply"] == "the reply"
    assert "the question" in opened["prompt"]
    assert (first.technique, first.result, first.expected) == ("unroll", times(2.0), times(1.3))


def test_a_page_has_room_for_so_many_texts_and_no_more() -> None:
    room = PackRoom(left=10)
    assert [room.take("12345678"), room.take("123"), room.take("12")] == ["12345678", "", "12"]


@given(st.floats(1e-3, 1e6), st.floats(1.1, 1e6))
def test_a_logarithmic_axis_keeps_order_and_its_ends(low: float, ratio: float) -> None:
    scale = LogScale(low, low * ratio, 10, 110)
    assert scale(low) == 10
    assert scale(low * ratio) == 110
    ticks = scale.ticks()
    assert len(ticks) <= 8
    assert all(10 <= tick.at <= 110 for tick in ticks)
    assert [tick.at for tick in ticks] == sorted(tick.at for tick in ticks)


def test_lessons_are_told_with_their_figure_and_how_often_they_were_shown(tmp_path: Path) -> None:
    drawn = DrawnLesson(
        step=f"{P}/r1/rollout-0/step-1", state="dram_bound", technique="unroll", speedup=2.0, low=1.9, high=2.1,
        effect=PairEffect.ADDED, lesson="lesson-1", text="Load four values at once.",
    )  # fmt: skip
    refused = drawn.model_copy(update={"effect": PairEffect.REFUSED, "lesson": "", "text": "enough lessons"})
    told = ev.LessonsDrawn(
        problem=P, slot=f"{P}/r1/generation-1/lessons", drawn=[drawn, refused], skipped=[], prompt_tokens=1000,
        completion_tokens=234, dollars=None,
    )  # fmt: skip
    events = [
        event.model_copy(update={"lessons": ["lesson-1"]})
        if event.kind == "selected" and "step-3" in event.slot
        else event
        for event in two_rollouts()
    ]
    view = lessons_view(replace(record(tmp_path, events), lessons=(told,)))
    assert view is not None
    assert [(row.place, row.effect, row.shown) for row in view.rows] == [
        ("r1 · 0 · 1", "added", 1),
        ("r1 · 0 · 1", "refused", 0),
    ]
    assert "[1.90, 2.10]" in view.rows[0].figure
    assert "1.23 k tokens" in view.told
    assert "1 of 4 prompts" in view.told
    assert lessons_view(record(tmp_path, two_rollouts())) is None


def test_a_sweep_is_a_heat_map_of_the_two_constants_that_mattered_most(tmp_path: Path) -> None:
    def point(tile: int, stages: int, threads: int, us: float | None) -> SweepPoint:
        values = {"TILE": str(tile), "STAGES": str(stages), "THREADS": str(threads)}
        reason = "" if us else "too much shared memory"
        return SweepPoint(
            values=values, found=SweptVariant(source_sha256="x", median_us=us, modelled=True, reason=reason)
        )

    points = [
        point(64, 2, 128, 40), point(128, 2, 128, 10), point(128, 2, 256, 11),
        point(64, 4, 128, 50), point(128, 4, 128, None),
    ]  # fmt: skip
    place = {"problem": P, "slot": f"{P}/r1/rollout-0/step-1/attempt-0"}
    swept = ev.Swept(**place, candidate="a", winner="b", gain=4.0, points=points, seconds=3.0)
    (view,) = sweep_views(record(tmp_path, [*two_rollouts(), swept]))
    assert {view.across, view.down} == {"TILE", "STAGES"}
    cells = {(column, row): cell for row, cells in view.rows for column, cell in zip(view.columns, cells, strict=True)}
    fastest = next(cell for cell in cells.values() if cell.best)
    assert "THREADS 128" in fastest.title
    assert fastest.heat == 100
    assert min(cell.heat for cell in cells.values() if cell.text) == 0
    assert [cell.title for cell in cells.values() if not cell.text] == ["too much shared memory"]
    assert "4 of 5" in view.told


def test_a_rollout_goes_on_from_its_own_copy_of_a_kernel(tmp_path: Path) -> None:
    """Both rollouts make `a` first; what each makes of it branches off in its own lane."""
    events = [
        *step(0, 1, "start", "a", "faster", 2.0, 2.0),
        *step(1, 1, "start", "a", "faster", 2.0, 2.0),
        *step(1, 2, "a", "b", "faster", 1.5, 3.0),
    ]
    tree = search_tree(record(tmp_path, events, final="b"))
    assert tree is not None
    second = [dot for dot in tree.dots if dot.y == tree.lanes[1].y]
    assert f"M{second[0].x:g} {second[0].y:g}H{second[1].x:g}" in [edge.path for edge in tree.edges]


def test_braces_and_empty_lines_are_no_landmarks_between_changes() -> None:
    before = "void a() {\n  x();\n}\n\nvoid b() {\n  y();\n}\nint end;"
    after = "void c() {\n  u();\n}\n\nvoid d() {\n  v();\n}\nint end;"
    parts = side_by_side(before, after).parts
    kinds = [row.kind for part in parts for row in part.rows]
    assert kinds == ["changed"] * 6 + ["same", "same"], "what follows the last change stays as it is"
    same = side_by_side("a;\n}\nb;", "a;\n}\nb;")
    assert (same.removed, same.added) == (0, 0)


def test_what_is_reached_is_told_of_the_attainable_time_and_else_of_the_floor(tmp_path: Path) -> None:
    def timed(attainable: float | None) -> Timing:
        return Timing(
            median_us=10, low_us=10, high_us=10, iqr_us=0, samples=1, floor_us=1, floor_fraction=0.1,
            attainable_us=attainable, modelled=True,
        )  # fmt: skip

    shares, bars = [], []
    for attainable in (5.0, None):
        found = record(tmp_path, two_rollouts())
        found = replace(found, row=found.row.model_copy(update={"start": timed(attainable)}))
        summary = RunSummary(
            run="r", device=FACTS, precision=Precision.FP16, model="m", model_kind="given", problems=[found.row],
            spending=Spending(), knowledge_base=tmp_path, directory=tmp_path, seconds=1,
        )  # fmt: skip
        page = make_page(summary, [found])
        shares.append(page.rows[0].share)
        bars.append([bar.kind for bar in page.problems[0].times])
        assert bool(page.problems[0].attainable_told) == (attainable is not None)
    assert shares == ["50 % of attainable", "10 % of the roofline floor"]
    assert bars == [["start", "attainable"], ["start", "floor"]]


def test_code_is_shown_in_the_order_in_which_it_is_compiled() -> None:
    shown = "".join(highlighted("int a; /* \u202e } \u2066 */ int b;\n"))
    assert not set(shown) & set("\u202e\u2066")
    assert "U+202E" in shown
