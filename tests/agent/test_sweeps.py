"""Tunables of a reply are tried by the machine: the fastest variant that is correct becomes the candidate."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

from agent_support import CommentEvaluator, EventList, ScriptedModel, answer, kernel, make_context, tunable

from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import ProblemOutcome


def searched(root: Path, reply: str, **changes) -> tuple[ProblemOutcome, EventList, CommentEvaluator]:
    events, evaluator = EventList(), CommentEvaluator(root / "evaluations.log")
    model = ScriptedModel(root / "model.log", lambda *_: answer(reply))
    context = make_context(root, model, evaluator, events=events, steps=1, **changes)
    return asyncio.run(run_problem(context)), events, evaluator


def test_the_fastest_variant_is_the_candidate_and_all_are_told(tmp_path: Path) -> None:
    outcome, events, _ = searched(tmp_path, tunable(2, 4, 3))
    assert outcome.speedup == 4
    (swept,) = events.of("swept")
    assert [point.values for point in swept.points] == [{"SPEED": "2"}, {"SPEED": "4"}, {"SPEED": "3"}]
    assert swept.gain == 2
    assert swept.winner == outcome.final_sha256
    assert "#define SPEED 4\n" in (outcome.final_kernel).read_text()


def test_a_wrong_winner_gives_way_to_the_next(tmp_path: Path) -> None:
    outcome, events, _ = searched(tmp_path, tunable(2, 4, 3, wrong=(4,)))
    assert outcome.speedup == 3
    assert [event.verdict for event in events.of("evaluated")] == ["wrong_values", "correct"]
    assert outcome.verdicts == {"wrong_values": 1, "correct": 1}


def test_a_start_after_a_kill_sweeps_nothing_again(tmp_path: Path) -> None:
    first, told, _ = searched(tmp_path, tunable(2, 4))
    shutil.rmtree(tmp_path / "out" / "rollouts")
    again, retold, evaluator = searched(tmp_path, tunable(2, 4))
    assert again.final_sha256 == first.final_sha256
    assert evaluator.sweeps == []
    assert [event.identity for event in retold.events] == [event.identity for event in told.events]


def test_a_declaration_that_cannot_be_followed_is_told_and_the_source_judged_as_it_is(tmp_path: Path) -> None:
    outcome, events, evaluator = searched(tmp_path, "// TUNE ROWS 1 2\n" + kernel(2.0))
    assert outcome.speedup == 2
    assert evaluator.sweeps == []
    assert "ROWS" in events.of("swept")[0].skipped


def test_a_source_without_tunables_is_not_swept(tmp_path: Path) -> None:
    _, events, evaluator = searched(tmp_path, kernel(2.0))
    assert events.of("swept") == []
    assert evaluator.sweeps == []
