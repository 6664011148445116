"""Definitions, workloads and solutions: what they accept, what they derive, and that JSON loses nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from problem_files import REFERENCE, write_problem
from rotation import rotating

from kernelblaster.errors import ProblemError
from kernelblaster.paths import data_dir
from kernelblaster.problems.axis_expressions import evaluate
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.definition import Definition
from kernelblaster.problems.describe import describe
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import tensor_specs
from kernelblaster.problems.solution import Solution
from kernelblaster.problems.workload import Workload

ATTENTION: dict[str, Any] = {
    "name": "attention_h8",
    "op_type": "attention",
    "axes": {
        "tokens": {"type": "var", "description": "rows"},
        "heads": {"type": "const", "value": 8},
        "head_dim": {"type": "const", "value": 64, "aligned": True},
        "width": {"type": "expr", "expression": "heads * head_dim"},
        "half": {"type": "expr", "expression": "width // 2"},
    },
    "inputs": {
        "q": {"shape": ["tokens", "width"], "dtype": "bfloat16"},
        "mask": {"shape": ["tokens"], "dtype": "bool", "description": None},
        "length": {"shape": [], "dtype": "int32"},
        "scale": {"shape": None, "dtype": "float32"},
    },
    "outputs": {
        "out": {"shape": ["tokens", "half"], "dtype": "float8_e4m3fn"},
        "lse": {"shape": ["tokens"], "dtype": "float32"},
    },
    "reference": "def run(q, mask, length, scale):\n    return q, q\n",
    "constraints": ["tokens > 0", "tokens <= length.item()"],
    "vendor_note": {"kept": [1, 2.5, None]},
}
WORKLOAD: dict[str, Any] = {
    "uuid": "b1d0",
    "axes": {"tokens": 7},
    "inputs": {
        "q": {"type": "random", "seed": 3},
        "mask": {"type": "safetensors", "path": "blobs/m.safetensors", "tensor_key": "mask"},
        "length": {"type": "custom"},
        "scale": {"type": "scalar", "value": True},
    },
    "tolerance": {"max_atol": 1e-3},
}
SOLUTION: dict[str, Any] = {
    "name": "mine",
    "definition": "attention_h8",
    "author": "someone",
    "spec": {
        "languages": ["cuda_cpp"],
        "target_hardware": ["H200"],
        "entry_point": "src/main.cu::run",
        "compile_options": {"cuda_cflags": ["-O3"]},
        "later": None,
    },
    "sources": [{"path": "src/main.cu", "content": "void run() {}"}, {"path": "note.h", "content": ""}],
}


def changed(record: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """A copy of a record with another value at a dotted path."""
    copy = json.loads(json.dumps(record))
    *parents, last = path.split(".")
    place = copy
    for parent in parents:
        place = place[parent]
    place[last] = value
    return copy


@pytest.mark.parametrize(
    ("kind", "record"), [(Definition, ATTENTION), (Workload, WORKLOAD), (Solution, SOLUTION)], ids=str
)
def test_json_comes_back_as_it_was(kind: type[Definition | Workload | Solution], record: dict[str, Any]) -> None:
    read = kind.from_json(json.dumps(record))
    assert read.to_json() == record
    assert json.loads(json.dumps(read.to_json())) == record
    assert kind.from_json(read.to_json()) == read


def test_derived_axes_follow_from_the_others() -> None:
    definition = Definition.from_json(ATTENTION)
    extents = definition.extents({"tokens": 7})
    assert extents == {"tokens": 7, "heads": 8, "head_dim": 64, "width": 512, "half": 256}
    assert list(extents) == list(ATTENTION["axes"])
    assert definition.shape("out", extents) == (7, 256)
    assert definition.shape("length", extents) == ()
    assert definition.scalars == ("scale",)
    with pytest.raises(ValueError, match="scale"):
        definition.shape("scale", extents)


def test_a_missing_axis_and_a_broken_constraint_are_named() -> None:
    definition = Definition.from_json(ATTENTION)
    with pytest.raises(ProblemError, match="tokens"):
        definition.extents({})
    assert definition.unmet(definition.extents({"tokens": 0})) == ["tokens > 0"]
    assert definition.unmet(definition.extents({"tokens": 1})) == []


@pytest.mark.parametrize(
    ("kind", "record", "message"),
    [
        (Definition, changed(ATTENTION, "inputs.q.shape", ["tokens", "lost"]), "lost"),
        (Definition, changed(ATTENTION, "inputs.q.dtype", "float7"), "inputs.q.dtype"),
        (Definition, changed(ATTENTION, "outputs.q", ATTENTION["inputs"]["q"]), "q is an input and an output"),
        (Definition, changed(ATTENTION, "axes.width.expression", "heads *"), "not an expression"),
        (Definition, changed(ATTENTION, "axes.width.expression", "heads * lost"), "lost"),
        (Definition, changed(ATTENTION, "axes.width.expression", "half * 2"), "from each other"),
        (Definition, changed(ATTENTION, "axes.tokens.type", "free"), "axes.tokens"),
        (Workload, changed(WORKLOAD, "axes.tokens", -1), "axes.tokens"),
        (Workload, changed(WORKLOAD, "inputs.q.type", "guess"), "inputs.q"),
        (Solution, changed(SOLUTION, "sources", []), "sources"),
        (Solution, changed(SOLUTION, "spec.entry_point", "main.cu::run"), "main.cu"),
        (Solution, changed(SOLUTION, "spec.entry_point", "run"), "FILE::FUNCTION"),
        (Solution, changed(SOLUTION, "spec.languages", None), "language"),
        (Solution, changed(SOLUTION, "sources", [{"path": "../main.cu", "content": "x"}]), "leaves"),
    ],
)
def test_a_contradiction_is_refused_by_name(
    kind: type[Definition | Workload | Solution], record: dict[str, Any], message: str
) -> None:
    with pytest.raises(ProblemError, match=message):
        kind.from_json(record)


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(ProblemError, match="not JSON"):
        Workload.from_json("{")


@given(st.integers(0, 10**6), st.integers(1, 1000), st.integers(0, 8))
def test_expressions_are_python_arithmetic(a: int, b: int, c: int) -> None:
    axes = {"a": a, "b": b, "c": c}
    for text in ("a + b * c", "-(a - b) // b", "a % b", "a / b", "b ** c if False else 1", "not a < b <= c or c == 1"):
        if "if" in text:
            with pytest.raises(ProblemError):
                evaluate(text, axes)
        else:
            assert evaluate(text, axes) == eval(text, {}, axes)


@pytest.mark.parametrize(
    "text", ["a // 0", "9 ** 9 ** 9", "a.b", "f(a)", "'x'", "[a][0]", "lambda: a", "2 ** 64 * 2", "a if a else a", "("]
)
def test_nothing_but_bounded_arithmetic_is_computed(text: str) -> None:
    with pytest.raises(ProblemError):
        evaluate(text, {"a": 1})


@given(st.sampled_from(DType))
def test_labels_and_names_lead_back_to_the_type(dtype: DType) -> None:
    assert DType.of(dtype.label) is dtype
    assert DType.of(dtype.value) is dtype
    assert dtype.bits <= 64


@pytest.mark.parametrize("problem", rotating(Dataset(data_dir() / "kernelbench-cuda").problems(), 8))
def test_the_definition_of_a_problem_gives_its_tensors_at_every_size(problem: Problem) -> None:
    specs = {size: tensor_specs(problem, size, Precision.BF16) for size in problem.workloads}
    if len({tuple(spec.name for spec in own) for own in specs.values()}) > 1:
        with pytest.raises(ProblemError, match="other weights at other sizes"):
            describe(problem, Precision.BF16)
        return
    described = describe(problem, Precision.BF16)
    definition = Definition.from_json(json.dumps(described.definition.to_json()))
    assert [workload.name for workload in described.workloads] == list(problem.workloads)
    for workload in described.workloads:
        extents = definition.extents(workload.axes)
        for spec in specs[workload.name]:
            assert definition.shape(spec.name, extents) == spec.shape
            assert {**definition.inputs, **definition.outputs}[spec.name].dtype is spec.dtype
        assert problem.workloads[workload.name].items() <= extents.items()
        assert workload.scalars == problem.scalars


def test_a_problem_may_name_its_sizes_as_it_likes(tmp_path: Path) -> None:
    reference = REFERENCE.replace('"medium"', '"batch_1"').replace('"small"', '"v0"')
    problem = load_problem(write_problem(tmp_path / "p", reference=reference))
    assert list(problem.workloads) == ["v0", "batch_1", "full"]
    assert problem.cheap_workload == "v0"
    assert problem.workloads["v0"] == {"n": 37}
    described = describe(problem, Precision.FP32)
    assert [workload.axes for workload in described.workloads] == [{"n": 37}, {"n": 400}, {"n": 4000}]
    assert described.definition.inputs["x"].shape == ("n",)
