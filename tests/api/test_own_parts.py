"""Devices and models of a caller's own making, and what a run tells its observer."""

from __future__ import annotations

from pathlib import Path

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
