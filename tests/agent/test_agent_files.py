"""The checkpoint file stays small and rebuilds only the search's own types; files and events survive round trips."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest
from agent_support import ScriptedModel, answer, kernel, make_context
from pydantic import ValidationError

from kernelblaster.agent.checkpoints import open_checkpoints
from kernelblaster.agent.events import parse_event
from kernelblaster.agent.files import EvaluationKey, ProblemFiles
from kernelblaster.agent.graph import CHECKPOINTS, run_problem
from kernelblaster.agent.state import (
    Incumbent,
    OutcomeStatus,
    RolloutResult,
    RolloutState,
    StopReason,
    replace_by_place,
)
from kernelblaster.devices.profiles import KernelResources
from kernelblaster.models.base import ReplyPending
from kernelblaster.storage.atomic import write_atomically


def slow_progress(rollout: int, step: int, attempt: int):
    speed = 1 + 0.02 * (step // 4 + 1) if step % 4 == 0 else 0.5
    return answer(kernel(speed, tag=f"_{rollout}_{step}"))


def checkpoint_rows(context) -> tuple[int, int, int]:
    """Rows of checkpoints, rows of writes, bytes of both."""
    with sqlite3.connect(context.directory / CHECKPOINTS) as connection:
        rows = connection.execute("SELECT COUNT(*), TOTAL(LENGTH(checkpoint)) FROM checkpoints").fetchone()
        writes = connection.execute("SELECT COUNT(*), TOTAL(LENGTH(value)) FROM writes").fetchone()
    return rows[0], writes[0], int(rows[1] + writes[1])


@pytest.mark.parametrize("steps", [4, 24])
def test_checkpoints_do_not_pile_up(tmp_path, steps):
    """Cut off by a pending reply, only the latest checkpoint of the root and of the open rollout are there."""

    def script(rollout, step, attempt):
        return ReplyPending("q", "f") if step == steps else slow_progress(rollout, step, attempt)

    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", script), steps=steps, patience=steps)
    assert asyncio.run(run_problem(context)).status is OutcomeStatus.WAITING
    checkpoints, writes, size = checkpoint_rows(context)
    assert checkpoints == 2
    assert writes < 12
    assert size < 20_000


def test_a_finished_search_leaves_one_checkpoint(tmp_path):
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", slow_progress), rollouts=3)
    asyncio.run(run_problem(context))
    assert checkpoint_rows(context)[0] == 1


def test_only_registered_types_are_rebuilt(tmp_path):
    async def round_trip(value):
        async with open_checkpoints(tmp_path / "c.sqlite") as saver:
            return saver.serde.loads_typed(saver.serde.dumps_typed(value))

    incumbent = Incumbent(sha256="0" * 64, evaluation="x", gain=2.0)
    assert asyncio.run(round_trip(incumbent)) == incumbent
    stranger = KernelResources(
        name="k", registers=1, shared_bytes=0, spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0
    )
    assert not isinstance(asyncio.run(round_trip(stranger)), KernelResources)


def test_every_event_of_a_search_survives_its_line(tmp_path):
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", slow_progress), steps=4)
    asyncio.run(run_problem(context))
    events = context.events.events
    assert [parse_event(event.model_dump_json()) for event in events] == events
    assert [event.kind for event in events[:6]] == [
        "start_profiled", "round_started", "step_started", "classified", "selected", "generated",
    ]  # fmt: skip
    assert events[-1].kind == "finalized"
    with pytest.raises(ValidationError):
        parse_event('{"kind": "unheard_of"}')


def test_a_continued_rollout_replaces_its_cut_off_result():
    incumbent = Incumbent(sha256="a", evaluation="e")
    cut = RolloutResult(
        round=1, index=1, incumbent=incumbent, stop=StopReason.BUDGET, steps=1, transitions=1, verdicts={},
        cut_off=RolloutState(round=1, index=1, incumbent=incumbent),
    )  # fmt: skip
    other = cut.model_copy(update={"index": 0, "stop": StopReason.STEPS, "cut_off": None})
    done = cut.model_copy(update={"stop": StopReason.STEPS, "cut_off": None})
    assert replace_by_place([cut], [other]) == [other, cut]
    assert replace_by_place([other, cut], [done]) == [other, done]


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "deep" / "file.json"
    write_atomically(path, "old")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "\ud800")
    assert path.read_text() == "old"
    assert [entry.name for entry in path.parent.iterdir()] == ["file.json"]


def test_a_torn_evaluation_file_is_made_again(tmp_path):
    files = ProblemFiles(tmp_path)
    files.evaluation_path("k").parent.mkdir()
    files.evaluation_path("k").write_text('{"problem": "le')
    assert files.find_evaluation("k") is None
    assert files.find_evaluation("absent") is None


def test_every_part_of_an_evaluation_key_matters():
    base = {
        "source": "a", "baseline": "b", "device": "emulated/H200/sm_90", "precision": "fp16", "size": "small",
        "purpose": "search",
    }  # fmt: skip
    names = {EvaluationKey(**{**base, field: "other"}).name for field in base}
    assert len(names | {EvaluationKey(**base).name, EvaluationKey(**{**base, "baseline": None}).name}) == 8
