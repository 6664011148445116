"""Mutants are derived as their rules say, and a fixed sample of them is noticed by the judge."""

from __future__ import annotations

from collections.abc import Iterator
from shutil import which

import pytest
from mutants import EQUIVALENT, SURVIVED, MutantJudge, MutantRow, Origin, judge_origin, origins
from mutation_rules import RULES, Mutant, derive

from kernelblaster.devices.build.toolchain import SearchPath, ToolMissing, find_nvccs
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules

SAMPLE = {"guard_strict", "store_scaled", "tail_missing"}
MORE = {"guard_loose", "index_next"}
"""Rules whose mutants of one kernel are judged; the second set with --all."""


def _has_tools() -> bool:
    try:
        find_nvccs(SearchPath.current())
    except ToolMissing:
        return False
    return which("g++") is not None


needs_tools = pytest.mark.skipif(not _has_tools(), reason="needs nvcc and g++")


@pytest.fixture(scope="module")
def derived() -> dict[str, list[Mutant]]:
    """All mutants of each origin."""
    return {origin.name: list(derive(origin.name, origin.source)) for origin in origins()}


def test_there_are_hundreds_of_mutants_of_every_problem() -> None:
    counts = {origin.name: len(list(derive(origin.name, origin.source, per_rule=2))) for origin in origins()}
    starts = {name: count for name, count in counts.items() if name.endswith("/start")}
    assert len(starts) == 19
    assert min(starts.values()) >= 10
    assert sum(starts.values()) >= 300


def test_every_rule_applies_somewhere_and_changes_one_place(derived: dict[str, list[Mutant]]) -> None:
    used = set()
    for origin in origins():
        for mutant in derived[origin.name]:
            used.add(mutant.rule)
            before, after = origin.source.splitlines(), mutant.source.splitlines()
            changed = [i for i, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]]
            assert changed, mutant.id
            assert changed[0] == mutant.line - 1, mutant.id
    assert used == {rule.name for rule in RULES}


@pytest.mark.parametrize(
    ("outcome", "counted", "caught"),
    [("wrong_values", True, True), (SURVIVED, True, False), (EQUIVALENT, False, False), ("DeviceError", False, False)],
)
def test_a_failure_of_the_machine_catches_nothing(outcome: str, counted: bool, caught: bool) -> None:
    row = MutantRow(id="a", problem="b", rule="c", does="d", line=1, text="e", outcome=outcome, seconds=0.0)
    assert (row.counted, row.caught) == (counted, caught)


def test_ids_are_unique_and_come_again(derived: dict[str, list[Mutant]]) -> None:
    ids = [mutant.id for mutants in derived.values() for mutant in mutants]
    assert [mutant.id for origin in origins() for mutant in derive(origin.name, origin.source)] == ids
    assert len(set(ids)) == len(ids)


def test_comments_strings_and_the_error_check_are_left_alone() -> None:
    source = 'static void check(int s) {\n    if (s < n) x = 0;\n}\n// if (i < n)\nconst char* t = "if (i < n)";\n'
    assert list(derive("a", source)) == []


def test_device_and_host_code_are_told_apart() -> None:
    source = "__global__ void k() {\n    __syncthreads();\n}\n\nvoid launch() {\n    f((n + T - 1) / T);\n}\n"
    assert {mutant.rule: mutant.on_device for mutant in derive("a", source)} == {
        "barrier_dropped": True,
        "tail_missing": False,
    }


@pytest.fixture(scope="module")
def start() -> Origin:
    """The starting kernel of ReLU: quick to judge."""
    return next(origin for origin in origins() if origin.name == "level1_019/start")


@pytest.fixture(scope="module")
def judge(start: Origin, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MutantJudge]:
    from kernelblaster.devices.emulated.device import EmulatedDevice

    with InputStore(tmp_path_factory.mktemp("inputs")) as inputs:
        opened = MutantJudge(EmulatedDevice.create("h200", policy=CandidateRules()), inputs)
        assert opened.check(start) == ""
        yield opened


@needs_tools
@pytest.mark.parametrize("rules", [SAMPLE, pytest.param(MORE, marks=pytest.mark.slow)], ids=["sample", "more"])
def test_a_sample_is_caught(judge: MutantJudge, start: Origin, rules: set[str]) -> None:
    chosen = [mutant for mutant in derive(start.name, start.source, per_rule=2) if mutant.rule in rules]
    rows = list(judge_origin(judge, start, chosen, workers=2))
    assert {row.rule for row in rows} == rules
    assert [row.id for row in rows if not row.caught] == []


@needs_tools
def test_a_mutant_whose_device_code_is_the_same_is_equivalent(judge: MutantJudge, start: Origin) -> None:
    same = start.source.replace("if (i < count)", "if (!(count <= i))")
    assert judge.judge(start, Mutant("x", "guard_loose", same, 1, "", on_device=True)).outcome == EQUIVALENT


@needs_tools
def test_a_kernel_that_is_right_in_another_way_survives(judge: MutantJudge, start: Origin) -> None:
    """The harness of mutants must not call everything caught."""
    other = start.source.replace("fmaxf(to_float(x[i]), 0.0f)", "to_float(x[i]) > 0.0f ? to_float(x[i]) : 0.0f")
    assert judge.judge(start, Mutant("x", "guard_loose", other, 1, "", on_device=True)).outcome == SURVIVED
