"""Devices and models of a caller's own making, and what a run tells its observer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_support import FASTER, make_dataset, reply

import kernelblaster as kb

pytestmark = [pytest.mark.nvcc, pytest.mark.usefixtures("nvcc")]


class Author:
    """Writes the same kernel every time; each reply costs a dollar."""

    name = "author"

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        return None

    async def complete(self, request: kb.Request) -> kb.Reply:
        usage = kb.Usage(prompt_tokens=10, completion_tokens=5, dollars=1.0)
        return kb.Reply(text=reply(FASTER), usage=usage, model=self.name)


class Watcher(kb.RunObserver):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def chosen(self, choices: kb.RunChoices) -> None:
        self.told.append(f"{choices.facts.arch} {choices.device_reason}, {choices.model_reason}")

    def emit(self, event: kb.Event) -> None:
        self.told.append(event.kind)


class Silent:
    """Half a model."""

    name = "silent"


def search(**parts: Any) -> None:
    kb.optimize("level1/23", **parts)


def judge(**parts: Any) -> None:
    kb.evaluate("level1/23", "__global__ void k() {}", **parts)


@pytest.mark.parametrize(
    ("call", "parts", "words"),
    [
        (search, {"model": object()}, ("model", "object", "name, complete, answerable")),
        (search, {"model": Silent()}, ("model", "lacks complete, answerable")),
        (search, {"model": Author}, ("class Author", "Author(...)")),
        (search, {"device": object()}, ("device", "lacks facts", "emulated")),
        (search, {"observer": object()}, ("observer", "lacks tell")),
        (search, {"on_event": 3}, ("on_event", "int", "function")),
        (search, {"on_stage": "loud"}, ("on_stage", "str", "function")),
        (judge, {"device": object()}, ("device", "lacks facts", "emulated")),
        (judge, {"on_stage": 3}, ("on_stage", "int", "function")),
    ],
)
def test_parts_that_cannot_be_used_are_refused_in_one_line(
    clean: Path, call: Callable[..., None], parts: dict[str, Any], words: tuple[str, ...]
) -> None:
    with pytest.raises(kb.UsageError) as refused:
        call(**parts)
    told = f"{refused.value.message} -> {refused.value.hint}"
    assert all(word in told for word in words), told
    assert "\n" not in told


@pytest.mark.parametrize("registry", [kb.POLICIES, kb.DEVICES, kb.PROFILERS, kb.BACKENDS, kb.REWARDS])
def test_what_cannot_be_used_is_not_registered(registry: kb.Registry[Any]) -> None:
    with pytest.raises(kb.UsageError, match="'mine' cannot be of type int: it lacks"):
        registry.register("mine", 3, "a number")
    assert "mine" not in registry


def test_own_device_and_model_search_under_a_cap_and_in_silence(
    clean: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dataset = make_dataset(clean / "data", small={"batch_size": 33, "dim": 517})
    watcher = Watcher()
    config = kb.RunConfig(
        search=kb.SearchConfig(rollouts=1, steps=4), budget=kb.BudgetConfig(dollars=2.0),
        evaluation=kb.EvaluationConfig(input_sets=2, profiler="events"),
    )  # fmt: skip
    device = kb.choose_device(kb.RunConfig(device="emulated", gpu_type="a100"), lambda stage: None).device
    summary = kb.optimize(
        kb.load_problem("23", dataset=dataset),
        config=config, device=device, model=Author(), observer=watcher,
    )  # fmt: skip
    assert summary.device.arch == "sm_80"
    assert watcher.told[0] == "sm_80 given, author: given"
    assert {"start_profiled", "evaluated", "finalized"} <= set(watcher.told)
    assert summary.problems[0].status is kb.OutcomeStatus.BUDGET
    # One call for the bottleneck, which times alone do not tell, and one for a kernel.
    assert (summary.spending.calls, summary.spending.dollars) == (
        2,
        2.0,
    )  # the bottleneck, which times alone do not tell, and a kernel
    assert capsys.readouterr().out == ""
    (search,) = kb.read_run(summary.directory).searches
    profile = search.outcome.start.profile if search.outcome and search.outcome.start else None
    assert profile is not None
    assert profile.source == "events"
