"""Names match exactly; a seed draws the same problem whatever else was drawn."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.environment.catalogue import (
    ALL,
    Catalogue,
    ProblemPool,
    UnknownProblem,
    names_of,
    problem_identifier,
)
from kernelblaster.environment.headroom import LITTLE, MUCH, HeadroomList, headroom_list, shipped_headroom
from kernelblaster.paths import data_dir
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.tags import Tag
from kernelblaster.runs.check_records import read_checks


def test_each_name_finds_its_problem_and_no_two_problems_share_one(catalogue: Catalogue) -> None:
    every = [name for problem in catalogue.problems for name in set(names_of(problem))]
    assert len(every) == len(set(every))
    assert all(catalogue.find(name) is problem for problem in catalogue.problems for name in names_of(problem))
    assert problem_identifier(catalogue.find("level1/023")) == "L1_23_Softmax"
    assert catalogue.find("L1_2").id.number == 2


@pytest.mark.parametrize(
    "name", ["L1_23_Soft", "l1_23", "L1_023", "level1/23/", "23", " L1_23", "Softmax", "L99_1", "", "../L1_23"]
)
def test_anything_but_an_exact_name_is_no_other_problem(catalogue: Catalogue, name: str) -> None:
    with pytest.raises(UnknownProblem) as caught:
        catalogue.find(name)
    assert caught.value.hint


@given(seed=st.integers(), noise=st.integers())
def test_a_seed_repeats_its_draw_and_leaves_the_global_generator_alone(
    catalogue: Catalogue, seed: int, noise: int
) -> None:
    random.seed(noise)
    before = random.getstate()
    where = ProblemPool(split="train", levels=(1,))
    drawn = catalogue.draw(seed, where)
    assert random.getstate() == before
    assert drawn is catalogue.draw(seed, where)
    assert drawn.id.level == 1
    assert drawn in catalogue.tasks("train")


def test_nothing_that_is_held_out_is_drawn_unless_that_is_asked_for(catalogue: Catalogue) -> None:
    train, held_out = set(catalogue.tasks("train")), set(catalogue.tasks("heldout"))
    assert {catalogue.draw(seed, ProblemPool()) for seed in range(300)} <= train
    assert {catalogue.draw(seed, ProblemPool(levels=(1, 2))) for seed in range(300)} <= train
    assert {catalogue.draw(seed, ProblemPool(split="heldout")) for seed in range(30)} <= held_out
    assert {catalogue.draw(seed, ProblemPool(split=ALL)) for seed in range(300)} & held_out


def test_where_no_problem_is_tagged_all_are_drawn(catalogue: Catalogue) -> None:
    problems = [replace(problem, tags=()) for problem in catalogue.tasks("level1")[:3]]
    bare = Catalogue(problems)
    assert "train" not in bare.splits()
    assert {bare.draw(seed, ProblemPool()) for seed in range(50)} == set(bare.problems)


def test_splits_part_the_problems(catalogue: Catalogue) -> None:
    train, held_out = set(catalogue.tasks("train")), set(catalogue.tasks("heldout"))
    assert train
    assert held_out
    assert not train & held_out
    assert catalogue.tasks(ALL) == catalogue.problems
    by_level = [catalogue.tasks(split) for split in catalogue.splits() if split.startswith("level")]
    assert sum(by_level, ()) == catalogue.problems


def test_lists_by_operation_and_precision_hold_what_they_say_and_may_be_joined(catalogue: Catalogue) -> None:
    softmax = catalogue.tasks("softmax")
    assert catalogue.find("L1_23") in softmax
    assert all(Tag.SOFTMAX in problem.tags for problem in softmax)
    assert all(Precision.BF16 in problem.precisions for problem in catalogue.tasks("bf16"))
    joined = catalogue.choose(["L1_23", "softmax", "scan"])
    assert joined[0] is catalogue.find("L1_23")
    assert len(joined) == len(set(joined)) == len({*softmax, *catalogue.tasks("scan")})
    assert catalogue.choose([]) == catalogue.problems


def test_lists_by_what_starts_leave_to_gain_hold_each_measured_problem_once(catalogue: Catalogue) -> None:
    found = [catalogue.tasks(name) for name in HeadroomList]
    assert all(found)
    problems = [problem for tasks in found for problem in tasks]
    assert len(problems) == len(set(problems)) <= len(catalogue.problems)
    table = shipped_headroom()
    times = [[table[problem.definition_digest].times for problem in tasks] for tasks in found]
    assert max(times[0]) < LITTLE <= min(times[1])
    assert max(times[1]) < MUCH <= min(times[2])
    assert all(one.problem == str(p.id) for p in problems for one in [table[p.definition_digest]] if one.name == p.name)


def test_a_problem_that_computes_something_else_by_now_has_no_headroom(catalogue: Catalogue, tmp_path: Path) -> None:
    known = catalogue.tasks(HeadroomList.LITTLE)[0]
    (tmp_path / "reference.py").write_text(known.reference_path.read_text() + "\n")
    assert headroom_list(known) is HeadroomList.LITTLE
    assert headroom_list(replace(known, directory=tmp_path)) is None


@pytest.mark.parametrize("index", [-1, 10**6])
def test_a_place_beyond_a_list_is_refused(catalogue: Catalogue, index: int) -> None:
    with pytest.raises(UnknownProblem):
        catalogue.at("train", index)
    with pytest.raises(UnknownProblem):
        catalogue.tasks("test")
    with pytest.raises(UnknownProblem):
        catalogue.draw(0, ProblemPool(levels=(77,)))


def test_headroom_is_that_of_the_records_that_ship() -> None:
    starts = {record.problem: record for record in read_checks(data_dir() / "baselines/h200/starts/fp16_full.jsonl")}
    known = [one for one in shipped_headroom().values() if one.precision is Precision.FP16 and one.problem in starts]
    assert len(known) > 200
    for one in known:
        assert one.start_us == pytest.approx(starts[one.problem].median_us, rel=1e-4)
        assert one.attainable_us == pytest.approx(starts[one.problem].attainable_us, rel=1e-3)
