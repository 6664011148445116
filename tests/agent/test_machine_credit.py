"""Machine code in credit: what was written and not compiled counts for nothing, what grew confirms a declaration."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from agent_support import EventList, ScriptedModel, kernel, make_context, make_knowledge

from kernelblaster.agent.events import Credited
from kernelblaster.agent.graph import run_problem
from kernelblaster.config import SearchPart
from kernelblaster.cuda_source.features import Feature

WGMMA = 'asm("wgmma.mma_async.sync.aligned");\n'


def compiled(machine: dict[str, int]) -> str:
    return f"// machine: {json.dumps(machine)}\n"


def credited(
    root: Path,
    machine: dict[str, int],
    code: str = WGMMA,
    *,
    declared: str = "",
    start: dict[str, int] | None = None,
    **changes,
) -> Credited:
    """The event of one step whose candidate holds `code` and compiles to `machine`."""
    reply = f"EXPECTED_SPEEDUP: 2\nTECHNIQUES: {declared}\n```cuda\n{compiled(machine)}{kernel(2.0)}{code}```\n"
    knowledge = make_knowledge(root, techniques=3)

    def sign(known):
        signed = {"technique_1": (Feature.WGMMA,), "technique_2": (Feature.VECTOR_ACCESS,)}
        entries = {
            name: entry.model_copy(update={"signs": signed.get(name, ())}) for name, entry in known.techniques.items()
        }
        return known.model_copy(update={"techniques": entries})

    knowledge.update(sign)
    events = EventList()
    model = ScriptedModel(root / "log", lambda *_: reply, answerable=frozenset({"technique_0"}))
    settings = {"steps": 1, "ablate": (SearchPart.PAIR_LESSONS,), **changes}
    context = make_context(root, model, knowledge=knowledge, events=events, **settings)
    with context.problem.init_path.open("a") as begun:
        begun.write(compiled(start or {}))
    asyncio.run(run_problem(context))
    (event,) = events.of("credited")
    return event


def test_what_was_compiled_is_credited(tmp_path: Path) -> None:
    event = credited(tmp_path, {"wgmma": 4})
    assert (event.asked, event.credited, event.gained, event.refuted) == ("technique_0", "technique_1", ["wgmma"], [])
    assert event.machine_code


def test_what_was_written_and_not_compiled_is_refuted(tmp_path: Path) -> None:
    event = credited(tmp_path, {"vector_access": 4}, declared="technique_1")
    assert event.refuted == ["wgmma"]
    assert event.gained == ["vector_access"]
    assert event.credited != "technique_1"


def test_without_it_the_source_is_believed(tmp_path: Path) -> None:
    off = (SearchPart.PAIR_LESSONS, SearchPart.SASS_CREDIT)
    event = credited(tmp_path, {"vector_access": 4}, declared="technique_1", ablate=off)
    assert (event.credited, event.machine_code) == ("technique_1", False)


@pytest.mark.parametrize(("after", "confirmed"), [(8, True), (3, False)])
def test_what_a_kernel_has_much_more_of_confirms_what_was_declared(tmp_path: Path, after: int, confirmed: bool) -> None:
    found = {"vector_access": after}
    event = credited(tmp_path, found, "", declared="technique_2", start={"vector_access": 2})
    assert (event.credited == "technique_2") is confirmed
    assert event.gained == []
