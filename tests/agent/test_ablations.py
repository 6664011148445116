"""Each part of the search that can be switched off leaves prompts, questions and choices when it is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from agent_support import EventList, ScriptedModel, answer, edit, kernel, make_context, make_knowledge, tunable

from kernelblaster.agent.graph import run_problem
from kernelblaster.config import SearchConfig, SearchPart
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.evaluation.results import Verdict
from kernelblaster.knowledge.schema import Core, Lesson, ShapeRegime
from kernelblaster.models.base import Purpose
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

PAIR_LESSON = "When loads are narrow, load four values at once, for each sector is then used whole."
LESSON = "Prefer wide loads when rows are long."
CORE = Core(
    problem="level1/099", op_family=OpFamily.NORMALIZATION, arch="sm_90", device_kind=DeviceKind.EMULATED,
    precision=Precision.FP16, regime=ShapeRegime.MEDIUM, median_us=20.0, attainable_us=19.9,
    source="int core_of_another;",
)  # fmt: skip
OWN = CORE.model_copy(update={"problem": "level1/023", "op_family": OpFamily.SOFTMAX, "whole": kernel(1.0, tag="own")})
"""No faster than the start: it is judged, and the search goes on as without."""


@dataclass(frozen=True)
class Searched:
    """What a search asked, and what it told."""

    prompts: list[str]
    purposes: set[Purpose]
    events: EventList

    @property
    def shown(self) -> str:
        return "\n".join(self.prompts)


def search(root: Path, *ablate: SearchPart) -> Searched:
    """Three steps: a compile error and its repair, then two kernels that are faster each time."""

    def script(rollout: int, step: int, attempt: int) -> str:
        if step == 1 and attempt == 0:
            return answer(kernel(verdict=Verdict.COMPILE_ERROR))
        if step == 1 and attempt == 1:
            return edit(("// speed: 1.0", "// speed: 2.0"), ("// verdict: compile_error", "// verdict: correct"))
        return answer(tunable(1.0 + step, 1.5 + step))

    root.mkdir()
    model = ScriptedModel(root / "model.log", script, others={Purpose.LESSON: json.dumps({"lesson": PAIR_LESSON})})
    knowledge = make_knowledge(root, techniques=3)
    learned = {"lessons": (Lesson(id="wide", text=LESSON),), "cores": (CORE, OWN)}
    knowledge.update(lambda known: known.model_copy(update=learned))
    events = EventList()
    archive = SearchPart.ARCHIVE not in ablate
    context = make_context(root, model, knowledge=knowledge, events=events, ablate=ablate, archive=archive)
    asyncio.run(run_problem(context))
    asked = [one for one in model.requests if one.purpose is Purpose.GENERATE]
    return Searched(
        prompts=[request.messages[-1].content for request in asked],
        purposes={request.purpose for request in model.requests},
        events=events,
    )


HAS: dict[SearchPart, Callable[[Searched], bool]] = {
    SearchPart.RETRIEVAL: lambda it: "technique_0" in it.shown and it.events.of("selected")[0].technique != "free_form",
    SearchPart.MEMORY: lambda it: any(event.evidence_count for event in it.events.of("selected")),
    SearchPart.CLASSIFICATION: lambda it: "Bottleneck: memory_bandwidth_saturated" in it.shown,
    SearchPart.LESSONS: lambda it: LESSON in it.shown,
    SearchPart.PAIR_LESSONS: lambda it: Purpose.LESSON in it.purposes,
    SearchPart.EXPERIENCE: lambda it: "first guess" in it.shown and "attempts" in it.shown,
    SearchPart.HYPOTHESES: lambda it: "Or better" in it.shown and "2. Else" in it.shown,
    SearchPart.HISTORY: lambda it: "Already tried" in it.shown,
    SearchPart.PROFILE: lambda it: str(Metric.DRAM_THROUGHPUT) in it.shown or "91" in it.prompts[0],
    SearchPart.TILES: lambda it: "Launch: 4 blocks of 256 threads" in it.shown,
    SearchPart.HOT_LINES: lambda it: "- 62% (global memory): // speed: 1.0" in it.shown,
    SearchPart.NSIGHT_RULES: lambda it: "wave_quantization (confidence 0.30)" in it.shown,
    SearchPart.SASS_CREDIT: lambda it: any(one.machine_code for one in it.events.of("credited")),
    SearchPart.RECALL: lambda it: bool(it.events.of("recalled")),
    SearchPart.CODE_MEMORY: lambda it: CORE.source in it.shown and any(one.core for one in it.events.of("selected")),
    SearchPart.SWEEP: lambda it: "// TUNE" in it.shown and bool(it.events.of("swept")),
    SearchPart.ARCHIVE: lambda it: bool(it.events.of("handed_out")),
    SearchPart.EDITS: lambda it: "SEARCH" in it.shown and any(one.edits for one in it.events.of("generated")),
    SearchPart.REPAIRS: lambda it: Purpose.REPAIR in it.purposes,
    SearchPart.REFLECTION: lambda it: Purpose.REFLECT in it.purposes,
    SearchPart.REVIEW: lambda it: Purpose.VERIFY in it.purposes,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Searched:
    """A search with all its parts."""
    return search(tmp_path_factory.mktemp("whole") / "search")


@pytest.mark.parametrize("part", SearchPart)
def test_what_is_ablated_is_gone_and_nothing_else_need_be(tmp_path: Path, whole: Searched, part: SearchPart) -> None:
    assert HAS[part](whole)
    assert not HAS[part](search(tmp_path / "search", part))


def test_everything_can_be_ablated_at_once(tmp_path: Path) -> None:
    bare = search(tmp_path / "search", *SearchPart)
    assert not any(has(bare) for has in HAS.values())
    assert bare.purposes == {Purpose.GENERATE}
    assert {event.state for event in bare.events.of("classified")} == {"hybrid_bound"}
    assert "EXPECTED_SPEEDUP" in bare.prompts[0]


def test_a_recording_without_free_answers_ends_a_search_without_retrieval(tmp_path: Path) -> None:
    model = ScriptedModel(tmp_path / "log", lambda *_: answer(kernel(2.0)), answerable=frozenset({"technique_0"}))
    events = EventList()
    context = make_context(tmp_path, model, events=events, ablate=(SearchPart.RETRIEVAL,))
    asyncio.run(run_problem(context))
    assert [event.reason for event in events.of("rollout_stopped")] == ["nothing_to_try"]


def test_names_are_read_from_text_and_switches_agree() -> None:
    config = SearchConfig.model_validate({"ablate": "review, Lessons", "reflect": False})
    assert not any(config.has(part) for part in (SearchPart.REVIEW, SearchPart.LESSONS, SearchPart.REFLECTION))
    assert config.has(SearchPart.MEMORY)
    assert all(part.about for part in SearchPart)
