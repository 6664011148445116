"""`run.json`: what is recorded of a run, and what may be continued."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "agent"))

from agent_support import FACTS

from kernelblaster.config import RunConfig, SearchConfig, SearchPart
from kernelblaster.records.run_record import RunRecord, new_record


def record(**search: object) -> RunRecord:
    """The record of a start with these settings of the search."""
    return new_record(RunConfig(search=SearchConfig(**search)), "small", FACTS, "given", "given")


def test_settings_and_origins_are_read_back() -> None:
    written = record(ablate=(SearchPart.LESSONS,), policy="ucb").model_copy(
        update={"origins": {"search.policy": "option --policy"}}
    )
    assert RunRecord.model_validate_json(written.model_dump_json()) == written


@pytest.mark.parametrize(
    ("search", "comparable"),
    [({}, True), ({"steps": 3}, True), ({"ablate": (SearchPart.LESSONS,)}, False)],
)
def test_an_ablated_search_does_not_continue_a_whole_one(search: dict[str, object], comparable: bool) -> None:
    assert record().comparable(record(**search)) is comparable
    assert record(**search).comparable(record(**search))
