"""An imported problem is judged like any other, and what came of it is exported as a trace."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import exchange_files as made
import pytest

import kernelblaster as kb
from kernelblaster.problems.interchange.exported import bundle_of
from kernelblaster.records.traces import trace_of

AT = 1_800_000_000.0


def evaluation(verdict: kb.Verdict, **more: Any) -> kb.Evaluation:
    """An evaluation of some kernel at the size `small`."""
    facts: dict[str, Any] = {
        "problem": "level0/000",
        "source_sha256": "0" * 64,
        "verdict": verdict,
        "reason": "" if verdict is kb.Verdict.CORRECT else "because",
        "device": "cuda",
        "device_name": "NVIDIA H200",
        "arch": "sm_90a",
        "precision": "fp16",
        "size": "small",
    }
    return kb.Evaluation.model_validate({**facts, **more})


def timing(*, modelled: bool) -> dict[str, Any]:
    figures = {"median_us": 250.0, "low_us": 249.0, "high_us": 251.0, "iqr_us": 1.0, "samples": 9}
    return {**figures, "floor_us": None, "floor_fraction": None, "modelled": modelled}


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace set of a shipped problem with its start and four evaluations of it."""
    root = tmp_path_factory.mktemp("own")
    start = kb.load_problem("level1/40").init_path
    figures = {"tensor": "output", "size": "small", "distribution": "normal", "seed": 1, "budget_ratio": 0.5}
    error = {**figures, "max_error": 0.25, "norm_error": float("inf"), "passed": False}
    found = [
        evaluation(kb.Verdict.CORRECT, timing=timing(modelled=False)),
        evaluation(kb.Verdict.WRONG_VALUES, errors=[error]),
        evaluation(kb.Verdict.NOT_EMULATABLE),
        evaluation(kb.Verdict.CORRECT, device="emulated", timing=timing(modelled=True)),
    ]
    kernel = kb.KernelRecord(start, tuple((one, AT) for one in found))
    report = kb.export_problem("level1/40", root, form="flashinfer", precision="fp32", kernels=[kernel])
    assert (report.solutions, report.traces, len(report.notes)) == (1, 2, 2)
    return root


def test_our_evaluations_become_traces(exported: Path) -> None:
    files = made.records(exported)
    passed, wrong = files["traces/kernelblaster/normalization/040_LayerNorm.jsonl"]
    (name,) = [Path(path).stem for path in files if path.startswith("solutions/kernelblaster/")]
    assert passed["solution"] == wrong["solution"] == name
    assert passed["workload"]["uuid"] == "small"
    assert passed["evaluation"]["status"] == "PASSED"
    assert passed["evaluation"]["timestamp"].startswith("2027-01-15T")
    assert passed["evaluation"]["performance"]["latency_ms"] == 0.25
    assert wrong["evaluation"]["status"] == "INCORRECT_NUMERICAL"
    assert wrong["evaluation"]["correctness"]["max_relative_error"] == "Infinity"
    assert "performance" not in wrong["evaluation"]


def test_modelled_times_are_exported_only_when_asked_and_marked(exported: Path) -> None:
    problem = kb.load_problem("level1/40")
    bundle = bundle_of(problem, kb.Precision.FP32, kb.ExchangeFormat.SOL)
    modelled = evaluation(kb.Verdict.CORRECT, device="emulated", timing=timing(modelled=True))
    for asked in (False, True):
        trace = trace_of(modelled, bundle.workloads[0].workload, "d", "s", AT, modelled_times=asked)
        assert trace is not None
        assert trace.evaluation is not None
        assert trace.evaluation.status == "PASSED"
        assert "emulated" in trace.evaluation.environment.hardware
        assert (trace.evaluation.performance is not None) is asked


def test_an_exported_reference_computes_what_ours_does(exported: Path) -> None:
    import torch

    definition = made.records(exported)["definitions/normalization/040_LayerNorm.json"]
    assert list(definition["inputs"]) == ["x", "ln_weight", "ln_bias", "eps"]
    module: dict[str, Any] = {}
    exec(definition["reference"], module)
    x = torch.randn(9, 13, 61, 67)
    weight, bias = torch.randn(2, 13, 61, 67)
    expected = torch.nn.functional.layer_norm(x, (13, 61, 67), weight, bias, 0.5)
    torch.testing.assert_close(module["run"](x=x, ln_weight=weight, ln_bias=bias, eps=0.5), expected)
    with pytest.raises(ValueError, match="shapes"):
        module["run"](torch.randn(1, 2, 3, 4), weight, bias, 0.5)


def test_our_own_export_is_imported_again_with_its_start(exported: Path, tmp_path: Path) -> None:
    from kernelblaster.problems.reference import tensor_specs

    (again,) = kb.import_problems(exported, tmp_path).problems
    assert again.start is not None
    assert set(again.sizes) == {"small", "medium", "full"}
    problem = kb.load_problem(again.directory)
    original = kb.load_problem("level1/40")
    assert problem.init_path.read_text() == original.init_path.read_text()
    shapes = [spec.shape for spec in tensor_specs(problem, "small", kb.Precision.FP32)]
    assert shapes == [spec.shape for spec in tensor_specs(original, "small", kb.Precision.FP32)]


def test_types_and_names_of_outputs_are_those_of_the_definition(tmp_path: Path) -> None:
    from kernelblaster.problems.reference import tensor_specs

    source = made.write_sol(tmp_path / "source")
    (mixed,) = kb.import_problems(source, tmp_path / "problems", names=["scaled_rows"]).problems
    (mixed.directory / "init.cu").write_text("void launch_gpu_implementation() {}\n")
    specs = tensor_specs(kb.load_problem(mixed.directory), "wide", kb.Precision.FP16)
    assert [(spec.name, str(spec.dtype), spec.shape) for spec in specs] == [
        ("y", "bfloat16", (40, 16)),
        ("top", "int64", (40,)),
        ("x", "float8_e4m3fn", (40, 32)),
        ("keep", "bool", (40,)),
        ("gain", "float32", ()),
    ]


@pytest.mark.nvcc
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
def test_an_imported_problem_is_evaluated_with_its_start(tmp_path: Path) -> None:
    source = made.write_trace_set(tmp_path / "source")
    (norm,) = kb.import_problems(source, tmp_path / "problems", names=["rmsnorm_w96"]).problems
    problem = kb.load_problem(norm.directory)
    checks = kb.EvaluationConfig(input_sets=2)
    config = kb.RunConfig(device="emulated", precision="fp16", size="3f-b", evaluation=checks)
    right = kb.evaluate(problem, problem.init_path, config=config, profile=False)
    assert right.verdict is kb.Verdict.CORRECT, right.reason
    assert right.timing is not None
    assert right.timing.modelled
    wrong = problem.init_path.read_text().replace("scale * __half2float(weight[i])", "scale")
    judged = kb.evaluate(problem, wrong, config=config, profile=False)
    assert judged.verdict is kb.Verdict.WRONG_VALUES
    kernel = kb.KernelRecord(wrong, ((judged, AT),))
    kb.export_problem(problem, tmp_path / "out", form="sol", kernels=[kernel])
    traces = made.records(tmp_path / "out")["rmsnorm_w96/trace.jsonl"]
    assert [one["evaluation"]["status"] for one in traces] == ["PASSED", "INCORRECT_NUMERICAL"]
    assert traces[1]["workload"]["uuid"] == "3f-b"


RUNS = Path(__file__).parents[1] / "fixtures" / "first_formats" / "runs.tar.xz"


@pytest.mark.parametrize("modelled_times", [False, True])
def test_a_run_is_exported_with_every_kernel_it_judged(tmp_path: Path, modelled_times: bool) -> None:
    with tarfile.open(RUNS) as archive:
        archive.extractall(tmp_path, filter="data")
    place = tmp_path / "finished"
    (run,) = (path.parent for path in place.rglob("run.json"))
    judged = {path.stem for path in run.rglob("candidates/*.cu")}
    report = kb.export_run(
        run, tmp_path / "out", form="sol", dataset_dir=place / "dataset", modelled_times=modelled_times
    )
    assert report.definitions == ["001_ReLU"]
    files = made.records(tmp_path / "out")
    solutions = [one for path, one in files.items() if "solution_" in path]
    assert len(solutions) == report.solutions == len(judged)
    traces = [one["evaluation"] for one in files["001_ReLU/trace.jsonl"]]
    passed = [one for one in traces if one["status"] == "PASSED"]
    assert 0 < len(passed) < len(traces) == report.traces
    assert all("emulated" in one["environment"]["hardware"] for one in traces)
    assert all(("performance" in one) is modelled_times for one in passed)
    assert sorted(traces, key=lambda one: one["timestamp"]) == traces


def test_the_commands_do_the_same(tmp_path: Path) -> None:
    def command(*arguments: object) -> subprocess.CompletedProcess[str]:
        argv = [sys.executable, "-m", "kernelblaster", *map(str, arguments)]
        return subprocess.run(argv, capture_output=True, text=True, check=False, cwd=tmp_path, timeout=120)

    source = made.write_sol(tmp_path / "source")
    done = command("import", source, tmp_path / "problems", "--name", "rmsnorm_w96")
    assert done.returncode == 0, done.stderr
    assert "rmsnorm_w96" in done.stdout
    done = command("export", tmp_path / "problems" / "rmsnorm_w96", tmp_path / "out", "--format", "sol")
    assert done.returncode == 0, done.stderr
    assert made.records(tmp_path / "out" / "rmsnorm_w96") == made.records(source / "L1" / "rmsnorm_w96")
    assert command("import", tmp_path / "out" / "nothing", tmp_path / "problems").returncode == 2
    assert command("export", "level1/40", tmp_path / "out", "--format", "unknown").returncode == 2
