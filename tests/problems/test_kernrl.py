"""The 89 problems of the reinforcement-learning set: their references, tensors and drivers agree, and each is sound."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from rotation import rotating

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.evaluation.results import Verdict
from kernelblaster.paths import data_dir
from kernelblaster.problems.audit import audit_problem
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.families import family_of
from kernelblaster.problems.problem import Problem, StandardWorkload, TensorRole
from kernelblaster.problems.reference import load_reference, run_model, tensor_specs, weights_of
from kernelblaster.problems.tags import HELD_OUT, Split, Tag
from kernelblaster.problems.undeclared_extents import undeclared_extents
from kernelblaster.runs.check_records import read_checks
from kernelblaster.runs.problem_audits import read_audits

PROBLEMS = Dataset(data_dir() / "kernrl").problems()
OWN = [problem for problem in PROBLEMS if problem.id.level > 3]
every_problem = pytest.mark.parametrize("problem", rotating(OWN, 3))


def test_there_are_89_in_ten_levels_with_a_split_by_operation() -> None:
    levels = [problem.id.level for problem in PROBLEMS]
    assert [levels.count(level) for level in range(1, 11)] == [15, 15, 3, *[8] * 7]
    assert all(problem.tags for problem in PROBLEMS)
    splits = {part: [one for one in PROBLEMS if one.split is part] for part in Split}
    assert all(len(found) >= 15 for found in splits.values())
    assert all(HELD_OUT.isdisjoint(problem.tags) for problem in splits[Split.TRAIN])
    catalogue = Catalogue(PROBLEMS)
    assert sum(len(catalogue.tasks(f"level{level}")) for level in range(1, 11)) == len(PROBLEMS)


def test_what_the_data_sets_share_is_there_once() -> None:
    shared = [problem for problem in PROBLEMS if problem.id.level <= 3]
    assert {problem.directory.parents[1].name for problem in shared} == {"kernelbench-cuda"}
    assert all(problem.mends for problem in OWN)


@every_problem
def test_small_runs_and_agrees_with_its_tensors(problem: Problem) -> None:
    torch.set_num_threads(1)
    reference = load_reference(problem)
    torch.manual_seed(3)
    with torch.inference_mode():
        inputs, model = reference.tensors(StandardWorkload.SMALL), reference.model(StandardWorkload.SMALL)
        outputs = run_model(problem, model, inputs)
    specs = tensor_specs(problem, StandardWorkload.SMALL, problem.precisions[0])
    assert [tuple(one.shape) for one in (*outputs, *inputs.values(), *weights_of(model).values())] == [
        spec.shape for spec in specs
    ]
    for name, bounds in problem.ranges.items():
        assert bounds.low <= int(inputs[name].min())
        assert int(inputs[name].max()) <= bounds.high
    assert family_of(problem.reference_path)


@every_problem
def test_the_audit_finds_no_fault(problem: Problem) -> None:
    assert audit_problem(problem) == []


@every_problem
@pytest.mark.timeout(1200)  # references of level 10 hash thousands of times, once for each extent that is tried
def test_sizes_suit_their_use_and_some_extent_is_not_shown(problem: Problem) -> None:
    assert set(problem.workloads) == set(StandardWorkload) - {StandardWorkload.V0}
    for workload, most in ((StandardWorkload.SMALL, 4 << 20), (StandardWorkload.FULL, 40 << 30)):
        specs = tensor_specs(problem, workload, problem.precisions[0])
        assert sum(spec.bytes for spec in specs) <= most
    assert undeclared_extents(problem) is not None


@every_problem
def test_the_driver_passes_every_tensor_size_and_scalar_in_order(problem: Problem) -> None:
    passed = re.findall(r'd\.(output|input|weight|size|scalar)\("([^"]+)"\)', problem.driver_path.read_text())
    specs = tensor_specs(problem, StandardWorkload.SMALL, problem.precisions[0])
    sizes = [("size", name) for name in problem.workloads[StandardWorkload.SMALL]]
    scalars = [("scalar", name) for name in problem.scalars]
    assert passed == [*((str(spec.role), spec.name) for spec in specs), *sizes, *scalars]
    assert any(spec.role is TensorRole.INPUT for spec in specs)
    assert set(problem.tags) <= set(Tag)


def test_each_start_was_judged_and_each_reference_audited_in_every_precision_that_it_is_meant_in() -> None:
    kept = Path(__file__).parents[2] / "docs/results/problem_checks"
    names = sorted(kept.glob("*.jsonl"))
    checks = [one for path in names if not path.name.endswith("audits.jsonl") for one in read_checks(path)]
    audits = [one for path in names if path.name.endswith("audits.jsonl") for one in read_audits(path)]
    judged = {(one.problem, one.precision): one.verdict for one in checks if one.workload == StandardWorkload.SMALL}
    audited = {one.problem: one for one in audits}
    for problem in PROBLEMS:
        assert {judged.get((str(problem.id), precision)) for precision in problem.precisions} == {Verdict.CORRECT}
        assert not audited[str(problem.id)].faults
        assert set(problem.precisions) <= set(audited[str(problem.id)].precisions)
