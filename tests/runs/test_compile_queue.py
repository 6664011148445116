"""Items that are made ready in the background: each is given out once, and what takes long keeps nobody waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

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

    def all_but_some(batch: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        yield from (item for item in reversed(batch) if sum(item) % dropped == 0)

    found = [item for some in CompileQueue(all_but_some, stragglers).ready(batches) for item in some]
    assert sorted(found) == [item for batch in batches for item in batch if sum(item) % dropped == 0]


def test_a_straggler_comes_with_a_later_batch() -> None:
    release = threading.Event()

    def slowly(batch: Sequence[str]) -> Iterator[str]:
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
    assert list(CompileQueue(iter, stragglers=0).ready([[1, 2, 3], [4]])) == [[1, 2, 3], [4]]


def test_what_a_compiler_raises_is_raised_where_it_is_waited_for() -> None:
    def fail(batch: Sequence[int]) -> Iterator[int]:
        yield batch[0]
        raise OSError("no processes left")

    with pytest.raises(OSError, match="no processes left"):
        list(CompileQueue(fail, stragglers=0).ready([[1, 2]]))
