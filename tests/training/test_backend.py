"""Stage backend: prompts with counters, bottleneck and technique, and a reward that looks at the profile."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_judge import FakeJudge, evaluation, kernel, timing
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.config.training import Baseline
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelResources
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.rewards import REWARDS, RewardOptions, rewarded
from kernelblaster.environment.staged_rewards import ProfileAware
from kernelblaster.evaluation.results import Decision, Evaluation, Verdict
from kernelblaster.models.base import Message
from kernelblaster.training.judging import PolicyCompletion, Scorer, StoredJudge
from kernelblaster.training.prompt_rows import PromptBuilder
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.splits import make_splits

SCHEME = ProfileAware(RewardOptions())
BANDWIDTH_BOUND = {Metric.DRAM_THROUGHPUT: 93.0, Metric.MEMORY_THROUGHPUT: 93.0, Metric.SM_THROUGHPUT: 10.0}


def spilling() -> list[KernelResources]:
    return [
        KernelResources(name="k", registers=255, shared_bytes=0, spill_store_bytes=8, spill_load_bytes=8, stack_bytes=8)
    ]


def value(found: Evaluation | None, scheme: ProfileAware = SCHEME) -> float:
    return rewarded(scheme, found).value


class Profiling(FakeJudge):
    """Gives correct kernels counters where they are asked for."""

    def evaluate(self, problem, source: str, *, baseline: str | None, profile: bool, **rest: object) -> Evaluation:
        found = super().evaluate(problem, source, baseline=baseline, profile=profile)
        if profile and found.correct:
            found.profile = evaluation(Verdict.CORRECT, totals=dict(BANDWIDTH_BOUND)).profile
        return found


@pytest.mark.parametrize("form", PromptForm)
def test_prompts_show_counters_the_bottleneck_and_what_to_try(
    catalogue: Catalogue, tmp_path: Path, form: PromptForm
) -> None:
    problem, judge = catalogue.find("L1_19"), Profiling()
    shared = SharedJudge(judge)
    rows = PromptBuilder(StoredJudge(shared, catalogue, tmp_path), make_splits([problem]), form).backend([problem], {})
    assert len(rows) == 2
    assert len({row.technique for row in rows}) == 2
    for row in rows:
        told = row.prompt[-1].content
        assert row.parent.strip() in told
        assert f"Limited by {row.state}" in told
        assert row.technique in shared.knowledge.states[row.state].techniques
        assert shared.knowledge.techniques[row.technique].summary in told
        assert "dram 93" in told
        assert PromptRow.model_validate_json(row.model_dump_json()) == row
    judged = len(judge.judged)
    later = StoredJudge(SharedJudge(judge), catalogue, tmp_path)
    assert PromptBuilder(later, make_splits([problem]), form).backend([problem], {}) == rows
    assert len(judge.judged) == judged  # a command that is given again judges nothing twice


def test_a_kernel_without_counters_has_no_prompt(catalogue: Catalogue, tmp_path: Path) -> None:
    problem = catalogue.find("L1_19")
    judge = StoredJudge(SharedJudge(FakeJudge()), catalogue, tmp_path)
    assert PromptBuilder(judge, make_splits([problem]), PromptForm.SHORT).backend([problem], {}) == []


def test_nearness_to_the_floor_counts_and_a_blemish_costs() -> None:
    correct = evaluation(Verdict.CORRECT)
    correct.timing = timing(100.0)
    at_floor, spills = correct.model_copy(deep=True), correct.model_copy(deep=True)
    at_floor.timing = timing(1.0)
    spills.resources = spilling()
    assert value(correct) == pytest.approx(0.4 + 0.2 * 0.01)
    assert value(at_floor) == pytest.approx(0.6)
    assert value(spills) == pytest.approx(value(correct) - 0.1)
    missing = ProfileAware(RewardOptions(), technique_missing=True)
    assert value(correct, missing) == value(spills, missing) == pytest.approx(value(spills))


@given(
    verdict=st.sampled_from(Verdict),
    decision=st.sampled_from(Decision),
    speedup=st.floats(min_value=1e-3, max_value=1e6),
    missing=st.booleans(),
    spills=st.booleans(),
)
def test_no_failure_gets_less_than_a_cheat_nor_as_much_as_a_correct_kernel(
    verdict: Verdict, decision: Decision, speedup: float, missing: bool, spills: bool
) -> None:
    scheme = ProfileAware(RewardOptions(), technique_missing=missing)
    found = evaluation(verdict, speedup, decision)
    found.resources = spilling() if spills else []
    got = rewarded(scheme, found)
    assert SCHEME.lowest <= got.value <= SCHEME.highest
    assert got.hack or math.isclose(got.value, math.fsum(got.parts.values()))
    assert value(evaluation(Verdict.REWARD_HACK, 100.0, Decision.FASTER), scheme) == SCHEME.lowest
    assert (got.value > 0.25) == (verdict is Verdict.CORRECT)


@pytest.mark.parametrize(
    ("parent", "note", "missing"),
    [
        ("", "", True), ("", "// __shfl_sync\n", True), ("", "static void f() { __shfl_sync(1, 2, 3); }\n", False),
        ("void g() { __shfl_sync(1, 2, 3); }\n", "", False),
    ],
)  # fmt: skip
def test_what_was_asked_for_and_not_done_costs_unless_the_parent_did_it(
    stored: Callable[[], StoredJudge], parent: str, note: str, missing: bool
) -> None:
    row = PromptRow(
        prompt=(Message(role="user", content="?"),), problem="level1/023", stage="backend", precision="fp16",
        size="small", family="softmax", split="train", parent=kernel(Verdict.CORRECT, note=parent), technique="w",
        signs="shuffle",
    )  # fmt: skip
    scorer = Scorer(stored(), REWARDS.get("profile")(RewardOptions()), Baseline.PARENT, profile=True)
    source = kernel(Verdict.CORRECT, 2.0, Decision.FASTER, note=note)
    (found,) = scorer.score([PolicyCompletion(row, f"```cuda\n{source}```\n", tokens=1)])
    assert found.parts["blemish"] == (-0.1 if missing else 0.0)
