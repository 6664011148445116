"""The page of scores reads the calibration that is committed, and says what it holds."""

from __future__ import annotations

import importlib
import json
from pathlib import Path

import numpy as np
import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks" / "ptxemu"


@pytest.fixture
def scores(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS.parents[1] / "tests" / "conformance"))
    monkeypatch.syspath_prepend(str(BENCHMARKS.parents[1] / "tests" / "ptxemu" / "core"))
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("emulator_scores")


def test_classes_have_the_errors_of_their_cases(scores) -> None:
    page = f"""
## All cases

| {" | ".join(("case", *scores.COUNTERS, "real us", "modelled us"))} |
|{"---|" * 8}
| one * | +10 | -4 |  | +0 | -0 | 10.0 | 20.0 |
| two | -30 | +0 |  | +50 | +0 | 30.0 | 30.0 |
| three + | +0 | +0 | +1 | +0 | +0 | 12.0 | 10.0 |
"""
    errors = scores.case_errors(page)
    assert [(one.case, round(one.factor, 3)) for one in errors] == [("one", 2.0), ("two", 1.0), ("three", 1.2)]
    table = scores.class_table(errors, {"one": "a", "two": "a", "three": "b"})
    assert table[2:] == [
        "| a | 2 | 1.50 | 2.00 |  | 20.0 % | 2.0 % |  | 25.0 % | 0.0 % |",
        "| b | 1 | 1.20 | 1.20 |  | 0.0 % | 0.0 % | 1.0 % | 0.0 % | 0.0 % |",
    ]
    assert [(one.judges, one.since) for one in errors] == [(True, False), (False, False), (False, True)]


def test_the_goal_is_told_of_the_judging_half_of_both_and_of_the_rest(scores) -> None:
    times = [(10, 11), (20, 40), (30, 30), (40, 20), (50, 51)]
    cases = [scores.CaseErrors(str(k), {}, *one, judges=k < 3) for k, one in enumerate(times)]
    assert scores.goal_lines(cases)[2:] == [
        "| judging half | 3 |  | 1.10 | 67% | 2.00 |",
        "| both halves | 5 | 0.600 | 1.10 | 60% | 2.00 |",
    ]
    last = scores.CaseErrors("last", {}, 10, 30, judges=False, since=True)
    assert scores.goal_lines([*cases, last])[3:] == [
        "| both halves | 5 | 0.600 | 1.10 | 60% | 2.00 |",
        "| captured last | 1 |  | 3.00 | 0% | 3.00 |",
    ]


def test_every_case_of_the_committed_calibration_is_read(scores) -> None:
    errors = scores.case_errors(scores.CALIBRATION.read_text(encoding="utf-8"))
    assert len(errors) > 400
    assert all(one.real_us > 0 for one in errors)
    assert all(one.counters for one in errors if not one.since)
    assert sum(one.since for one in errors) == 76


def test_what_the_h200_gets_otherwise_is_what_ptxas_makes_of_it(scores) -> None:
    """Machine code that was read by hand gives the H200's values, of as many operands; another count is no match."""
    differing = {form: why for rows in scores.measured().values() for form, why in rows.items() if why}
    assert len(differing) == 14
    assert [form for form, why in differing.items() if not scores.as_ptxas_makes_it(form, why)] == []
    form, why = next(iter(differing.items()))
    assert not scores.as_ptxas_makes_it(form, why.replace("1 of 256", "2 of 256"))
    assert not scores.as_ptxas_makes_it(form, why.replace("gives 0x7e", "gives 0x7d"))
    assert not scores.as_ptxas_makes_it("add.u32 {d}, {a}, {b};", "1 of 256 values: of 0x1, 0x1 the GPU gives 0x3")


def test_what_a_gpu_gets_otherwise_is_told(scores, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    suite = scores.Suite(
        name="some",
        forms=("one", "two", "three"),
        head="",
        kernels=("1", "2", "3"),
        launches=(),
        agrees=lambda number, arrays: True,
        against_gpu=lambda number, there, here: "" if there[0][0] == here[0][0] else "differs",
        result=0,
        values=6,
        tolerance="",
    )
    driver = importlib.import_module("gpu_driver")
    ran = [driver.Ran([np.array([1, 2])]), driver.Ran(failure="does not assemble"), driver.Ran([np.array([8, 6])])]
    monkeypatch.setattr(driver, "run_on_gpu", lambda head, kernels, launches: ran)
    monkeypatch.setattr(scores, "emulated_arrays", lambda _: [[np.array([k, k + 1])] for k in (1, 3, 5)])
    monkeypatch.setattr(scores, "suites", lambda: [suite])
    monkeypatch.setattr(scores, "ON_GPU", tmp_path / "held.json")
    scores.on_gpu(scores.ON_GPU)
    assert json.loads(scores.ON_GPU.read_text(encoding="utf-8")) == {
        "some": {
            "one": {"why": "", "same": 2, "of": 2},
            "two": {"why": "does not assemble", "same": 0, "of": 2},
            "three": {"why": "differs", "same": 1, "of": 2},
        }
    }
    found = scores.measured()
    assert [line for line in scores.otherwise(found) if line.startswith("- ")] == [
        "- `two`: does not assemble",
        "- `three`: differs",
    ]
    monkeypatch.setattr(scores, "emulated", lambda _: [])
    (row,) = scores.vector_table([suite], {"some": found["some"] | {"gone": ""}})[2:]
    assert [cell.strip() for cell in row.split("|")[4:6]] == ["3", "1"]
    (row,) = scores.vector_table([suite], {"some": {"one": ""}})[2:]
    assert row.split("|")[5].strip() == "1 of 1"
