"""Items that are made ready in the background: each is given out once, and what takes long keeps nobody waiting."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.runs.compile_queue import CompileQueue


@settings(max_examples=30, deadline=None)
@given(st.lists(st.lists(st.integers(), max_size=4), max_size=4), st.integers(0, 3), st.integers(1, 5))
def test_each_item_is_given_out_once_but_those_that_are_not_begun(
    numbers: list[list[int]], stragglers: int, dropped: int
) -> None:
    batches = [[(place, n) for n, _ in enumerate(batch)] for place, batch in enumerate(numbers)]

    def all_but_some(batch: Sequence[tuple[int, int]], wanted: Callable[[], bool]) -> Iterator[tuple[int, int]]:
        yield from (item for item in reversed(batch) if sum(item) % dropped == 0)

    found = [item for some in CompileQueue(all_but_some, stragglers).ready(batches) for item in some]
    assert sorted(found) == [item for batch in batches for item in batch if sum(item) % dropped == 0]


def test_a_straggler_comes_with_a_later_batch() -> None:
    release = threading.Event()

    def slowly(batch: Sequence[str], wanted: Callable[[], bool]) -> Iterator[str]:
        yield from (item for item in batch if item != "slow")
        if "slow" in batch:
            assert release.wait(10)
            yield "slow"

    ready = CompileQueue(slowly, stragglers=1).ready([["a", "slow", "b"], ["c"]])
    assert next(ready) == ["a", "b"]
    assert next(ready) == ["c"]
    release.set()
    assert next(ready) == ["slow"]
    assert list(ready) == []


def test_without_stragglers_a_batch_is_whole_before_any_of_it_is_given_out() -> None:
    assert list(CompileQueue(lambda batch, wanted: batch, stragglers=0).ready([[1, 2, 3], [4]])) == [[1, 2, 3], [4]]


@pytest.mark.parametrize("given_before", [0, 1, 2])
def test_what_a_compiler_raises_comes_after_what_it_had_ready(given_before: int) -> None:
    def fail(batch: Sequence[int], wanted: Callable[[], bool]) -> Iterator[int]:
        yield from batch[:given_before]
        raise OSError("no processes left")

    ready, found = CompileQueue(fail, stragglers=1).ready([[1, 2]]), list[int]()

    def take_all() -> None:
        for some in ready:
            found.extend(some)

    with pytest.raises(OSError, match="no processes left"):
        take_all()
    assert found == [1, 2][:given_before]


def test_who_stops_asking_has_nothing_more_begun() -> None:
    begun, go_on, ended = list[int](), threading.Event(), threading.Event()

    def one_after_the_other(batch: Sequence[int], wanted: Callable[[], bool]) -> Iterator[int]:
        for item in batch:
            if not wanted():
                break
            begun.append(item)
            yield item
            assert go_on.wait(10)
        ended.set()

    ready = CompileQueue(one_after_the_other, stragglers=2).ready([[1, 2, 3]])
    assert next(ready) == [1]
    ready.close()
    go_on.set()
    assert ended.wait(10)
    assert begun == [1]
