"""Scores of kernels that nothing was fitted to are those of their rows, failures included."""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks" / "ptxemu"


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("held_out_scores")


def _row(scores, name: str, modelled: float | None, **more: object):
    given = {"real_us": None, "speedup": None, "executed_share": 0.5, "failure": "", "reason": "", "seconds": 1.0}
    own = {"id": name, "parent": "level1/023/aa", "family": "softmax", "modelled_us": modelled}
    return scores.Modelled(**{**given, **own, **more})


def _rows(scores) -> list:
    return [
        _row(scores, "level1/023/aa", 120.0, real_us=100.0),
        _row(scores, "faster", 80.0, speedup=2.0),
        _row(scores, "slower", 110.0, speedup=0.8),
        _row(scores, "alike", 160.0, speedup=1.02),
        _row(scores, "failed", None, speedup=1.5, failure="timeout", reason="a | b"),
    ]


def test_a_reply_takes_its_parents_time_over_its_speedup(scores) -> None:
    found = scores.times(_rows(scores))
    assert {name: one.real for name, one in found.items() if name != "alike"} == {
        "level1/023/aa": 100.0, "faster": 50.0, "slower": 125.0,
    }  # fmt: skip
    assert scores.times_table(list(found.values()))[2] == (
        "| reductions and norms | 4 | 1 |  | 1.40 | 50% | 50% | 100% | 1.63 | 1.40 |"
    )


def test_only_what_an_h200_decides_has_a_right_sign(scores) -> None:
    """The model says of the slower reply that it is faster, and of the one alike that it is slower."""
    table = scores.signs_table(scores.against_parents(_rows(scores)))
    assert table[-1] == "| all | 3 | 1 | 1 | 1 of 2 (50%) | 1 of 1 (100%) | 0 of 1 (0%) | 1 of 2 |  |  |"


def test_values_that_tie_share_a_rank(scores) -> None:
    assert scores.spearman([1, 2, 3, 4], [5, 5, 7, 7]) == pytest.approx(2 / 5**0.5)


def test_siblings_are_compared_with_each_other(scores) -> None:
    """faster < alike < slower on the H200, faster < slower < alike modelled."""
    assert scores.siblings_table(scores.among_siblings(_rows(scores)))[-1] == "| all | 3 | 3 | 2 of 3 (67%) | 1 of 3 |"


def test_what_failed_is_told_and_no_reply_of_a_parent_that_failed_is_compared(scores, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(asdict(row)) + "\n" for row in _rows(scores)))
    section = scores.section(path)
    assert "| reductions and norms | timeout | 1 | a / b |" in section
    assert any(line.startswith("Tried: 1 parents and 4 replies. Failed: 1.") for line in section)
    parent, *replies = _rows(scores)
    failed = scores.Modelled(**{**asdict(parent), "modelled_us": None, "failure": "timeout"})
    assert scores.against_parents([failed, *replies]) == []


def test_the_page_has_what_its_rows_say(scores) -> None:
    page = (BENCHMARKS.parents[1] / "docs" / "emulator_scores.md").read_text(encoding="utf-8")
    assert "\n".join(scores.section()) in page


def test_halves_are_told_apart_by_the_parent_and_versions_by_kernels_of_both(scores) -> None:
    rows = [_row(scores, "level1/023/aa", 120.0, real_us=100.0), _row(scores, "reply", 60.0, speedup=2.0)]
    rows += [_row(scores, name, 90.0, parent=name, real_us=100.0) for name in ("level1/023/a0", "level1/023/a1")]
    now = scores.times(rows)
    before = {name: one for name, one in now.items() if name != "reply"}
    table = scores.halves_table(now, before)[2:]
    told = {cells[1]: int(cells[3]) for line in table if "| all |" in line for cells in [line.split("| ")]}
    halves = [scores.in_development(one.parent) for one in before.values()]
    assert told == {
        name: number for name, number in (("development ", sum(halves)), ("test ", len(halves) - sum(halves))) if number
    }
