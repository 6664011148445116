"""Captures of the conformance programs keep what they can: a line, a case or a tool that fails costs nothing else."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "benchmarks" / "ptxemu"
GOOD = '{"case": "good", "number": 1, "outputs": []}'
BROKEN = '{"case": "broken", "number": 0, "times_us": {printed 7'


@pytest.fixture
def capturing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS.parents[1] / "tests" / "conformance"))
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("emulator_capture")


@pytest.fixture
def session(capturing, tmp_path: Path):
    return capturing.Session(SimpleNamespace(ncu=None), tmp_path, budget_s=1e9)


def program(directory: Path, *lines: str) -> Path:
    """A program that prints these."""
    found = directory / "program"
    found.write_text("#!/bin/sh\ncat <<'END'\n" + "\n".join(lines) + "\nEND\n")
    found.chmod(0o755)
    return found


def test_a_case_that_does_not_read_is_noted_and_costs_no_other(capturing, session, tmp_path: Path) -> None:
    found = capturing.runs(session, program(tmp_path, "printed 3", BROKEN, "printed 8", GOOD), samples=1)
    assert [one.case for one in found] == ["good"]
    (failure,) = session.failures
    assert "broken" in failure


def test_without_a_profiler_outputs_and_times_are_kept(capturing, session, tmp_path: Path) -> None:
    built = program(tmp_path, GOOD)
    cases = capturing.runs(session, built, samples=1)
    assert capturing.profiles(session, built, cases) == {}
    assert session.failures == ["profiling program: ncu is not installed"]


def test_what_the_latest_session_repeated_is_repeated_again(capturing) -> None:
    known = capturing.read_capture()
    again = capturing._repeated_before(known)
    assert len(again) == len(known.later[-1].again) > 0
    assert set(again) <= {f"{one.program}:{one.run.case}" for one in known.cases}
    assert capturing._repeated_before(None) == []


def test_programs_without_profiles_are_captured_anew_and_replaced(capturing) -> None:
    known = capturing.read_capture()
    unprofiled = capturing._unprofiled(known)
    assert unprofiled == {"printing", "tensor_copies", "tensor_products"}
    kernel = next(one.kernels[0] for one in known.cases if one.kernels)
    anew = [
        one.model_copy(update={"kernels": [kernel]})
        for one in known.cases
        if one.program in ("printing", "tensor_copies")
    ]
    found = known.model_copy(update={"cases": anew, "failures": [], "sass": {}})
    joined = capturing._added(known, found, [])
    assert capturing._unprofiled(joined) == {"tensor_products"}
    assert sorted(one.run.case for one in joined.cases) == sorted(one.run.case for one in known.cases)
    left = set(known.failures) - {"profiling printing: no time left", "profiling tensor_copies: no time left"}
    assert set(joined.failures) == left
    assert joined.later[-1].programs == ["printing", "tensor_copies"]
