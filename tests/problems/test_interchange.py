"""Problems of FlashInfer-Bench and SOL-ExecBench: read, made into problem directories, and given back as they came."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import exchange_files as made
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernelblaster as kb
from kernelblaster.problems.interchange.bundle import ProblemBundle
from kernelblaster.problems.interchange.flashinfer import read_trace_set
from kernelblaster.problems.interchange.kept import keep, read_kept
from kernelblaster.problems.interchange.reference_text import reference_source
from kernelblaster.problems.interchange.signature import launcher_signature
from kernelblaster.problems.interchange.sizes import map_workloads
from kernelblaster.problems.interchange.start import find_start
from kernelblaster.problems.interchange.trace import Trace
from kernelblaster.problems.problem import Problem, ProblemId
from kernelblaster.problems.reference import load_reference
from kernelblaster.problems.solution import Solution
from kernelblaster.problems.start import read_start

WRITERS = {"flashinfer": made.write_trace_set, "sol": made.write_sol}


def flat(root: Path, form: str) -> dict[str, Any]:
    """All records of a data set; for problem directories, wherever they lie."""
    found = made.records(root)
    return found if form == "flashinfer" else {"/".join(Path(path).parts[-2:]): one for path, one in found.items()}


@pytest.mark.parametrize("form", WRITERS)
def test_what_is_imported_is_exported_as_it_came(tmp_path: Path, form: str) -> None:
    source = WRITERS[form](tmp_path / "source")
    report = kb.import_problems(source, tmp_path / "problems")
    assert not report.refused
    for problem in report.problems:
        kb.export_problem(problem.directory, tmp_path / "exported", form=form)
    assert flat(tmp_path / "exported", form) == flat(source, form)


def test_a_problem_goes_from_one_format_to_the_other(tmp_path: Path) -> None:
    kb.import_problems(made.write_trace_set(tmp_path / "source"), tmp_path / "problems", names=["rmsnorm_w96"])
    kb.export_problem(tmp_path / "problems" / "rmsnorm_w96", tmp_path / "sol", form="sol")
    kb.import_problems(tmp_path / "sol", tmp_path / "again")
    kb.export_problem(tmp_path / "again" / "rmsnorm_w96", tmp_path / "back", form="flashinfer")
    there, back = made.records(tmp_path / "source"), made.records(tmp_path / "back")
    for path, one in back.items():
        if path.startswith("workloads"):  # SOL-ExecBench has bare workloads
            assert [line["workload"] for line in one] == [line["workload"] for line in there[path]]
        else:
            assert one == there[path]


def test_a_cuda_solution_of_plain_pointers_becomes_the_start(tmp_path: Path) -> None:
    report = kb.import_problems(made.write_trace_set(tmp_path / "source"), tmp_path / "problems")
    norm = next(one for one in report.problems if one.definition == "rmsnorm_w96")
    assert (norm.start, norm.sizes, norm.notes) == ("raw_cuda", ("3f-b", "3f-a"), ())
    problem = kb.load_problem(norm.directory)
    assert problem.workloads["3f-a"] == {"tokens": 257}
    assert problem.scalars == {"eps": 1e-5}
    assert made.RMSNORM_CUDA.strip() in problem.init_path.read_text()


def test_an_edited_start_is_not_replaced_unasked(tmp_path: Path) -> None:
    source, out = made.write_trace_set(tmp_path / "source"), tmp_path / "problems"
    kb.import_problems(source, out)
    assert not kb.import_problems(source, out).refused
    start = out / "rmsnorm_w96" / "init.cu"
    written = start.read_text()
    start.write_text(written + "// faster\n")
    report = kb.import_problems(source, out)
    assert [one.definition for one in report.problems] == ["gemm_n8"]
    assert "init.cu" in report.refused["rmsnorm_w96"]
    assert "--overwrite" in report.refused["rmsnorm_w96"]
    assert start.read_text() == written + "// faster\n"
    assert not kb.import_problems(source, out, overwrite=True).refused
    assert start.read_text() == written


def test_what_an_import_made_is_replaced_by_a_newer_source(tmp_path: Path) -> None:
    source, out = made.write_trace_set(tmp_path / "source"), tmp_path / "problems"
    kb.import_problems(source, out)
    (place,) = source.rglob("raw_cuda.json")
    newer = made.solution("rmsnorm_w96", "raw_cuda", made.RMSNORM_CUDA + "// newer\n", language="cuda")
    made.write_json(place, newer)
    assert not kb.import_problems(source, out).refused
    assert "// newer" in (out / "rmsnorm_w96" / "init.cu").read_text()


def test_a_start_written_by_hand_is_not_replaced_by_a_solution_that_came_later(tmp_path: Path) -> None:
    source, out = made.write_trace_set(tmp_path / "source"), tmp_path / "problems"
    (late,) = source.rglob("raw_cuda.json")
    kept = late.rename(tmp_path / "raw_cuda.json")
    kb.import_problems(source, out)
    (out / "rmsnorm_w96" / "init.cu").write_text("// mine\n")
    kept.rename(late)
    assert "init.cu" in kb.import_problems(source, out).refused["rmsnorm_w96"]


def test_solutions_of_sol_keep_the_names_of_their_files(tmp_path: Path) -> None:
    source = tmp_path / "source" / "rmsnorm_w96"
    made.write_json(source / "definition.json", made.rmsnorm_definition())
    made.write_lines(source / "workload.jsonl", [made.rmsnorm_workload("one", 4)])
    made.write_json(source / "solution.json", made.solution("rmsnorm_w96", "plain", languages=["cuda_cpp"]))
    triton = made.solution("rmsnorm_w96", "other", "def run(): pass\n", "main.py::run", languages=["triton"])
    made.write_json(source / "solution_2.json", triton)
    kb.import_problems(tmp_path / "source", tmp_path / "problems")
    kernel = kb.KernelRecord(made.RMSNORM_CUDA + "// of ours\n")
    kb.export_problem(tmp_path / "problems" / "rmsnorm_w96", tmp_path / "back", form="sol", kernels=[kernel])
    back = made.records(tmp_path / "back" / "rmsnorm_w96")
    assert back["solution.json"]["name"] == "plain"
    assert back["solution_2.json"]["name"] == "other"
    (added,) = [name for name in back if name.startswith("solution_rmsnorm_w96_")]
    assert back[added]["sources"][0]["content"].endswith("// of ours\n")


def test_a_missing_start_is_told_with_what_to_write(tmp_path: Path) -> None:
    report = kb.import_problems(made.write_trace_set(tmp_path / "source"), tmp_path / "problems", names=["gemm_n8"])
    (gemm,) = report.problems
    assert gemm.start is None
    assert gemm.sizes == ("g1",)
    notes = (gemm.directory / "NOTES.md").read_text()
    assert "void launch_gpu_implementation(void* C, void* A, void* B, int64_t M, int64_t K)" in notes
    assert "g2" in notes
    problem = kb.load_problem(gemm.directory)
    with pytest.raises(kb.ProblemError, match=r"init\.cu"):
        read_start(problem)


def problem_of(bundle: ProblemBundle, directory: Path) -> Problem:
    """The problem that a bundle makes, with its reference alone."""
    workloads = map_workloads(bundle)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "reference.py").write_text(reference_source(bundle.definition, workloads))
    sizes = {name: dict(parameters) for name, parameters in workloads.sizes.items()}
    return Problem(ProblemId(0, 0), "made", directory, sizes, dict(workloads.scalars))


def test_references_run_with_numbers_several_outputs_and_inputs_of_their_own(tmp_path: Path) -> None:
    import torch

    made.write_sol(tmp_path / "source")
    definition = kb_definition(made.mixed_definition())
    works = [made.mixed_workload("wide", "random", 40), made.mixed_workload("drawn", "custom", 6, group=3)]
    lines = tuple(Trace.from_json({"definition": definition.name, "workload": one}) for one in works)
    reference = load_reference(problem_of(ProblemBundle(definition, lines), tmp_path / "p"))
    for size, rows, group in (("wide", 40, 2), ("drawn", 6, 3)):
        inputs = reference.inputs(size)
        assert [tuple(one.shape) for one in inputs] == [(rows, 32), (rows,), ()]
        y, top = reference.model(size)(*inputs)
        assert y.shape == (rows, 16)
        assert torch.equal(top, inputs[0].argmax(dim=1) // group)
    assert bool(reference.inputs("drawn")[1].all())


def kb_definition(record: dict[str, Any]) -> Any:
    from kernelblaster.problems.definition import Definition

    return Definition.from_json(record)


ENTRIES = {
    "void run(const half* A, const half* B, half* C, int M, int N, int K)": ["A", "B", "C", "M", "8", "K"],
    "void run(half* C, const void* A, void* B, int64_t M, long long K, cudaStream_t s)": [*"CABMK", "nullptr"],
    "void run(torch::Tensor A, torch::Tensor B, torch::Tensor C)": None,
    "void run(const half* A, const half* other, half* C)": None,
    "void run(const half* A, const half* B, half* C, float M)": None,
    "torch::Tensor run(const torch::Tensor& A)": None,
}


@pytest.mark.parametrize("entry", ENTRIES)
def test_entry_points_are_called_by_the_names_of_their_parameters(tmp_path: Path, entry: str) -> None:
    made.write_trace_set(tmp_path)
    gemm = next(one for one in read_trace_set(tmp_path) if one.definition.name == "gemm_n8")
    source = f"#include <cuda_fp16.h>\n{entry} {{\n    // run(\n}}\n"
    solution = Solution.from_json(made.solution("gemm_n8", "one", source, "k.cu::run", language="cuda"))
    start = find_start((solution,), launcher_signature(gemm.definition))
    expected = ENTRIES[entry]
    if expected is None:
        assert start is None
        return
    assert start is not None
    call = start.source.rpartition("run(")[2].partition(";")[0].removesuffix(")").split(", ")
    assert [one.rpartition("(")[2].rstrip(")") for one in call] == expected


def test_a_solution_that_defines_the_launcher_is_the_start_as_it_is(tmp_path: Path) -> None:
    made.write_trace_set(tmp_path)
    gemm = next(one for one in read_trace_set(tmp_path) if one.definition.name == "gemm_n8")
    signature = launcher_signature(gemm.definition)
    own = signature.declaration.replace(";", " {}")
    for source, fits in ((own, True), (own.replace("int64_t M, ", ""), False)):
        solution = Solution.from_json(
            made.solution("gemm_n8", "one", source, "k.cu::launch_gpu_implementation", language="cuda")
        )
        found = find_start((solution,), signature)
        assert (found is not None and found.source == source) is fits


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda d, w: d.update(reference="def other(): pass"), "run"),
        (lambda d, w: d.update(reference="def run(:"), "Python"),
        (lambda d, w: d.update(reference="def run(only): pass"), "inputs"),
        (lambda d, w: w["inputs"].update(hidden={"type": "custom"}, weight={"type": "custom"}), "custom"),
        (lambda d, w: w["inputs"].update(hidden={"type": "safetensors", "path": "a/b", "tensor_key": "k"}), "file"),
        (lambda d, w: w["inputs"].pop("eps"), "eps"),
        (lambda d, w: w.update(axes={"tokens": 0}), "tokens > 0"),
        (lambda d, w: w.update(axes={}), "tokens"),
        (lambda d, w: d["inputs"]["weight"].update(dtype="float4_e2m1"), "byte"),
        (lambda d, w: d.update(custom_inputs_entrypoint="draw"), "draw"),
    ],
)
def test_what_cannot_be_a_problem_is_refused_with_a_hint(tmp_path: Path, change: Any, word: str) -> None:
    definition, work = made.rmsnorm_definition(), made.rmsnorm_workload("one", 4)
    change(definition, work)
    made.write_json(tmp_path / "p" / "definition.json", definition)
    made.write_lines(tmp_path / "p" / "workload.jsonl", [work])
    report = kb.import_problems(tmp_path, tmp_path / "out")
    assert not report.problems
    ((name, why),) = report.refused.items()
    assert name == definition["name"]
    assert re.search(word, why)


@pytest.mark.parametrize("text", ["{", "[]", '{"name": "x"}', "\xff"])
def test_damaged_files_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "definition.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(kb.ProblemError, match=r"definition\.json"):
        kb.import_problems(tmp_path, tmp_path / "out")


def test_sources_and_names_that_are_not_there_are_usage_errors(tmp_path: Path) -> None:
    with pytest.raises(kb.UsageError, match="no definition"):
        kb.import_problems(tmp_path, tmp_path / "out")
    made.write_trace_set(tmp_path / "source")
    with pytest.raises(kb.UsageError, match="nobody"):
        kb.import_problems(tmp_path / "source", tmp_path / "out", names=["nobody"])


def test_files_of_a_data_set_stay_inside_it(tmp_path: Path) -> None:
    work = made.rmsnorm_workload("one", 4)
    work["inputs"]["hidden"] = {"type": "safetensors", "path": "../outside", "tensor_key": "k"}
    made.write_json(tmp_path / "p" / "definition.json", {**made.rmsnorm_definition(), "name": "a/../../b"})
    made.write_lines(tmp_path / "p" / "workload.jsonl", [made.rmsnorm_workload("one", 4)])
    assert list(kb.import_problems(tmp_path, tmp_path / "out").refused) == ["a/../../b"]
    assert not (tmp_path / "out").exists()
    made.write_json(tmp_path / "p" / "definition.json", made.rmsnorm_definition())
    made.write_lines(tmp_path / "p" / "workload.jsonl", [work])
    with pytest.raises(kb.ProblemError, match="outside"):
        kb.import_problems(tmp_path, tmp_path / "out")


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
EXTRAS = st.dictionaries(NAMES.map(lambda name: f"x_{name}"), VALUES, max_size=3)


@settings(max_examples=25, deadline=None)
@given(
    tokens=st.lists(st.integers(1, 10**6), min_size=1, max_size=4),
    extras=st.tuples(EXTRAS, EXTRAS, EXTRAS, EXTRAS),
    status=st.sampled_from(["PASSED", "TIMEOUT", "SOMETHING_NEW"]),
    log=st.text(),
)
def test_nothing_is_lost_on_the_way(
    tmp_path_factory: Any, tokens: list[int], extras: Any, status: str, log: str
) -> None:
    definition = {**made.rmsnorm_definition(), **extras[0]}
    works = [made.rmsnorm_workload(f"w{number}", count, **extras[1]) for number, count in enumerate(tokens)]
    solution = {**made.solution(definition["name"], "s", language="cuda"), **extras[2]}
    trace = {**made.passed(definition["name"], works[0], "s"), **extras[3]}
    trace["evaluation"] |= {"status": status, "log": log, **extras[0]}
    lines = [{"definition": definition["name"], "workload": one, "solution": None} for one in works]
    bundle = ProblemBundle(
        kb_definition(definition),
        workloads=tuple(Trace.from_json(line) for line in lines),
        solutions=(Solution.from_json(solution),),
        traces=(Trace.from_json(trace),),
    )
    directory = tmp_path_factory.mktemp("kept")
    keep(bundle, directory)
    again = read_kept(directory)
    assert again.definition.to_json() == definition
    assert [one.to_json() for one in again.workloads] == lines
    assert [one.to_json() for one in again.solutions] == [solution]
    assert [one.to_json() for one in again.traces] == [trace]
    json.dumps(again.traces[0].to_json(), allow_nan=False)
