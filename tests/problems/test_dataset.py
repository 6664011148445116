"""Selecting problems by level and number."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from problem_files import REFERENCE, write_problem

from kernelblaster.errors import UsageError
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset, find_problem, parse_levels, parse_numbers
from kernelblaster.problems.problem import ProblemId
from kernelblaster.problems.tags import HELD_OUT, Split, Tag, split_of

NUMBERS = {1: (1, 4, 12, 19, 23, 95), 2: (1, 12, 99), 3: (43,)}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    root = tmp_path_factory.mktemp("problems")
    for level, numbers in NUMBERS.items():
        for number in numbers:
            write_problem(root / f"level{level}" / f"{number:03d}_Thing_{number}")
    (root / "level1" / "notes").mkdir()
    (root / "level1" / "README.md").write_text("not a problem")
    return Dataset(root)


def ids(dataset: Dataset, subset: str | None = None, numbers: str | None = None) -> list[str]:
    return [str(problem.id) for problem in dataset.select(subset, numbers)]


def test_without_a_selection_every_problem_comes_by_level_and_number(dataset: Dataset) -> None:
    assert ids(dataset) == [f"level{level}/{n:03d}" for level, numbers in NUMBERS.items() for n in numbers]
    assert [problem.id for problem in dataset.problems()] == list(dataset.ids)


def test_a_subset_is_one_level_or_several(dataset: Dataset) -> None:
    assert ids(dataset, "level2") == ["level2/001", "level2/012", "level2/099"]
    assert ids(dataset, "level3,level2") == ["level2/001", "level2/012", "level2/099", "level3/043"]
    chosen = dataset.select(["level3", "level2"])
    assert [problem.id.level for problem in chosen] == [2, 2, 2, 3]


def test_numbers_apply_to_each_chosen_level(dataset: Dataset) -> None:
    assert ids(dataset, numbers="12") == ["level1/012", "level2/012"]
    assert ids(dataset, "level1", "1-12,23") == ["level1/001", "level1/004", "level1/012", "level1/023"]
    assert ids(dataset, "level1", "23, 4 , 4-5") == ["level1/004", "level1/023"]


@pytest.mark.parametrize(
    ("subset", "numbers", "message", "hint"),
    [
        (None, "7", "no problem has the number 7", "level1: 1, 4, 12, 19, 23, 95; level2: 1, 12, 99; level3: 43"),
        ("level1", "1,5-11", "no problem has the number 5-11", "level1: 1, 4, 12"),
        ("level3", "1", "no problem has the number 1", "level3: 43"),
        (None, "9-3", "the range 9-3 is empty", "write 3-9"),
        (None, "", "does not name problems", "write N, N-M"),
        (None, "1,,2", "does not name problems", "write N, N-M"),
        (None, "1-2-3", "does not name problems", "write N, N-M"),
        (None, "-3", "does not name problems", "write N, N-M"),
        (None, "all", "does not name problems", "write N, N-M"),
        (None, "9" * 5000, "does not name problems", "write N, N-M"),
        ("level4", None, "has no level4", "it has level1, level2, level3"),
        ("easy", None, "'easy' is not a subset", "write level1"),
        ("", None, "is not a subset", "write level1"),
    ],
)
def test_a_selection_that_names_nothing_is_refused_with_a_hint(
    dataset: Dataset, subset: str | None, numbers: str | None, message: str, hint: str
) -> None:
    with pytest.raises(UsageError) as caught:
        dataset.select(subset, numbers)
    assert message in caught.value.message
    assert hint in caught.value.hint


def test_an_empty_list_of_levels_is_refused(dataset: Dataset) -> None:
    with pytest.raises(UsageError) as caught:
        dataset.select([])
    assert caught.value.hint


@pytest.mark.parametrize("make", [None, "empty", "file"])
def test_a_root_without_problems_is_refused(tmp_path: Path, make: str | None) -> None:
    root = tmp_path / "data"
    if make == "empty":
        (root / "level1").mkdir(parents=True)
    elif make == "file":
        root.write_text("")
    with pytest.raises(UsageError) as caught:
        Dataset(root)
    assert str(root) in caught.value.message
    assert caught.value.hint


def test_two_directories_with_one_number_are_refused(tmp_path: Path) -> None:
    write_problem(tmp_path / "level1" / "001_A")
    write_problem(tmp_path / "level1" / "01_B")
    with pytest.raises(UsageError, match="both 001_A and 01_B"):
        Dataset(tmp_path)


def test_a_broken_problem_does_not_stand_in_the_way_of_others(tmp_path: Path) -> None:
    write_problem(tmp_path / "level1" / "001_Sound")
    (tmp_path / "level1" / "002_Broken").mkdir()
    dataset = Dataset(tmp_path)
    assert [str(problem.id) for problem in dataset.select(numbers="1")] == ["level1/001"]
    with pytest.raises(UsageError, match=r"002_Broken has no reference\.py"):
        dataset.select(numbers="2")


ranges = st.lists(st.tuples(st.integers(0, 120), st.integers(0, 120)).map(sorted), min_size=1, max_size=6)


@given(ranges=ranges, spaces=st.sampled_from(["", " "]))
def test_parsed_ranges_hold_exactly_the_numbers_written(ranges: list[list[int]], spaces: str) -> None:
    text = f",{spaces}".join(str(a) if a == b else f"{a}{spaces}-{spaces}{b}" for a, b in ranges)
    parsed = parse_numbers(text)
    expected = {number for a, b in ranges for number in range(a, b + 1)}
    assert {number for number in range(130) if any(number in r for r in parsed)} == expected


@given(ranges=ranges, levels=st.sets(st.sampled_from(sorted(NUMBERS)), min_size=1))
def test_a_selection_is_the_intersection_of_ranges_and_levels(
    dataset: Dataset, ranges: list[list[int]], levels: set[int]
) -> None:
    present = [ProblemId(level, number) for level in sorted(levels) for number in NUMBERS[level]]
    assume(all(any(a <= identity.number <= b for identity in present) for a, b in ranges))
    chosen = dataset.select([f"level{level}" for level in levels], ",".join(f"{a}-{b}" for a, b in ranges))
    expected = [identity for identity in present if any(a <= identity.number <= b for a, b in ranges)]
    assert [problem.id for problem in chosen] == expected


@given(text=st.text(alphabet="0123456789-, level٣\n", max_size=20))
def test_any_other_text_names_something_or_is_refused_with_a_hint(text: str) -> None:
    for parse in (parse_numbers, parse_levels):
        hint = ""
        try:
            parsed = parse(text)
        except UsageError as error:
            parsed, hint = (), error.hint
        assert bool(parsed) != bool(hint)


def test_tags_and_the_split_choose_problems(tmp_path: Path) -> None:
    declared = {1: '("matmul", "norm")', 2: '("conv",)', 3: '("scan", "matmul")', 4: "()"}
    for number, tags in declared.items():
        write_problem(tmp_path / "level1" / f"{number:03d}_P", reference=f"{REFERENCE}\nTAGS = {tags}\n")
    dataset = Dataset(tmp_path)

    def numbers(**how: Any) -> list[int]:
        return [problem.id.number for problem in dataset.select(**how)]

    assert numbers(tags=["matmul"]) == [1, 3]
    assert numbers(tags=[Tag.NORM, Tag.CONV]) == [1, 2]
    assert numbers(split="train") == [1, 2]
    assert numbers(split=Split.HELD_OUT, tags=["matmul"]) == [3]
    for wrong in ({"tags": ["magic"]}, {"split": "half"}, {"tags": ["pool"]}):
        with pytest.raises(UsageError) as caught:
            numbers(**wrong)
        assert caught.value.hint


@given(tags=st.sets(st.sampled_from(Tag), min_size=1))
def test_no_problem_to_learn_from_holds_a_held_out_operation(tags: set[Tag]) -> None:
    assert (split_of(tags) is Split.TRAIN) == tags.isdisjoint(HELD_OUT)


@pytest.mark.parametrize("name", ["nope", "level1/Softmax", "./missing"])
def test_a_name_that_is_no_directory_is_told_what_it_can_be(name: str) -> None:
    with pytest.raises(UsageError, match="names no problem") as caught:
        find_problem(name, data_dir() / "kernelbench-cuda")
    assert "level1/23" in caught.value.hint


@pytest.mark.parametrize("name", ["level2/007_Sum", "7_Sum", "007_Sum", "level2/007_Sum/"])
def test_a_directory_is_called_by_its_name(tmp_path: Path, name: str) -> None:
    for place in ("level1/007_Max", "level2/007_Sum", "level1/008_Both", "level2/008_Both"):
        write_problem(tmp_path / place)
    assert str(find_problem(name, tmp_path).id) == "level2/007"
    assert str(find_problem("level2/008_Both", tmp_path).id) == "level2/008"


@pytest.mark.parametrize(
    ("name", "hint"),
    [("7_Product", "level1/007_Max"), ("level2/7_Max", "none"), ("8_Both", "level1/008_Both"), ("009_Max", "none")],
)
def test_a_name_of_no_directory_or_of_two_is_refused(tmp_path: Path, name: str, hint: str) -> None:
    for place in ("level1/007_Max", "level1/008_Both", "level2/008_Both"):
        write_problem(tmp_path / place)
    with pytest.raises(UsageError) as caught:
        find_problem(name, tmp_path)
    assert hint in caught.value.hint


def test_digits_of_other_scripts_are_no_numbers() -> None:
    for text in ("\u0661", "1-\u0663"):
        with pytest.raises(UsageError):
            parse_numbers(text)
    with pytest.raises(UsageError):
        parse_levels("level\u0661")
