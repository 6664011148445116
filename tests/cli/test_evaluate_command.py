"""`evaluate` on the emulated device: what it prints, and an exit code of 0 for correct kernels only."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import BROKEN, ENDLESS, FASTER, OUT_OF_BOUNDS, TALKER, TENSOR_MEMORY, WRONG, Done, add_without_small

from kernelblaster.config import RunConfig
from kernelblaster.errors import ExitCode
from kernelblaster.evaluation.results import Evaluation, Verdict
from kernelblaster.runs.choices import choose_device

pytestmark = [pytest.mark.nvcc, pytest.mark.usefixtures("nvcc")]

Invoke = Callable[..., Done]


@pytest.mark.parametrize(
    ("source", "verdict", "words"),
    [
        (BROKEN, Verdict.COMPILE_ERROR, ('identifier "flot" is undefined', "mine.cu(")),
        (WRONG, Verdict.WRONG_VALUES, ("1.02 times expected",)),
        (OUT_OF_BOUNDS, Verdict.RUNTIME_ERROR, ("kernel ", "out-of-bounds", "mine.cu:2")),
        (ENDLESS, Verdict.TIMEOUT, ("within 2 s",)),
        pytest.param(TALKER, Verdict.WRONG_VALUES, ("never written",), marks=pytest.mark.slow),
        (TENSOR_MEMORY, Verdict.NOT_EMULATABLE, ("tcgen05.wait::ld", "PTX line", "mine.cu:2")),
    ],
    ids=["broken", "wrong", "out of bounds", "endless", "talker", "tensor memory"],
)
def test_bad_kernels_fail_with_their_reason(
    invoke: Invoke, clean: Path, dataset: Path, source: str, verdict: Verdict, words: tuple[str, ...]
) -> None:
    (clean / "mine.cu").write_text(source)
    gpu = "b200" if verdict is Verdict.NOT_EMULATABLE else "h200"
    # A busy machine may take seconds for a kernel that ends.
    seconds = "2" if verdict is Verdict.TIMEOUT else "60"
    done = invoke("evaluate", "23", "mine.cu", "--dataset-dir", dataset, "--timeout", seconds, "--gpu-type", gpu)
    assert done.code == ExitCode.FAILED
    assert f"{verdict} on " in done.out
    for word in words:
        assert word in done.out
    assert "time:" not in done.out
    assert "candidate.cu" not in done.out
    assert "_Z" not in done.out


def test_a_correct_kernel_against_the_start(invoke: Invoke, clean: Path, dataset: Path) -> None:
    (clean / "mine.cu").write_text(FASTER)
    done = invoke("evaluate", "level1/23", "mine.cu", "--baseline", "init", "--dataset-dir", dataset)
    assert done.code == ExitCode.OK, done.err
    assert "correct on NVIDIA H200 (emulated)" in done.out
    assert "baseline: " in done.out
    assert "faster" in done.out
    assert "softmax_cached" in done.out
    assert "bottleneck: " in done.out
    assert " mine.cu:" in done.out
    assert "x expected" in done.out
    # Every line with a time says that it is modelled.
    timed = [line for line in done.out.splitlines() if line.startswith(("time:", "baseline:"))]
    assert len(timed) == 2
    assert all("modelled" in line and "measured" not in line for line in timed)


def test_a_core_that_is_there_is_not_said_to_be_built() -> None:
    said: list[str] = []
    for _ in range(2):
        said.clear()
        choose_device(RunConfig(device="emulated"), said.append)
    assert said == []


def test_json_is_one_evaluation_and_nothing_else(invoke_with_streams: Invoke, dataset: Path) -> None:
    done = invoke_with_streams("evaluate", "23", "init", "--device=emulated", f"--dataset-dir={dataset}", "--json")
    assert done.code == ExitCode.OK, done.err
    assert done.out.count("\n") == 1
    evaluation = Evaluation.model_validate_json(done.out)
    assert evaluation.verdict is Verdict.CORRECT
    assert evaluation.timing is not None
    assert evaluation.timing.modelled
    assert evaluation.profile is not None
    assert evaluation.profile.source == "emulated"
    assert "\x1b" not in done.err


def test_a_large_size_is_timed_from_a_sample_of_blocks_and_says_so(invoke: Invoke, dataset: Path) -> None:
    arguments = ["evaluate", "23", "init", "--dataset-dir", dataset, "--size", "medium", "--input-sets=2"]
    done = invoke(*arguments, "--sample", "0.001")
    assert done.code == ExitCode.OK, done.err
    assert "medium" in done.out
    times = [line for line in done.out.splitlines() if line.startswith(("time:", "profile ("))]
    assert len(times) == 2
    assert all("of the blocks" in line for line in times)
    sampled = Evaluation.model_validate_json(invoke(*arguments, "--sample", "0.001", "--json").out)
    whole = Evaluation.model_validate_json(invoke(*arguments, "--sample", "0", "--json").out)
    assert (sampled.outputs_judged, whole.outputs_judged) == (False, True)
    for evaluation, share in ((sampled, pytest.approx(2 / 132, rel=0.1)), (whole, 1.0)):
        assert evaluation.timing is not None
        assert evaluation.profile is not None
        assert evaluation.timing.executed_share == evaluation.profile.executed_share == share
    assert sampled.timing.median_us == pytest.approx(whole.timing.median_us, rel=0.05)


def test_gpu_type_without_a_gpu_chooses_what_is_emulated(
    invoke: Invoke, dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GPU_TYPE", "h100")
    done = invoke("evaluate", "23", "init", "--dataset-dir", dataset, "--no-profile", "--input-sets=1", "--json")
    assert done.code == ExitCode.OK, done.err
    assert json.loads(done.out)["device_name"].startswith("NVIDIA H100")


def test_a_problem_directory_is_a_problem(invoke: Invoke, dataset: Path) -> None:
    directory = dataset / "level1" / "023_Softmax"
    done = invoke("evaluate", directory, "init", "--no-profile", "--input-sets", "1")
    assert done.code == ExitCode.OK, done.err


def test_without_a_size_each_problem_is_judged_at_one_that_it_has(invoke: Invoke, clean: Path, dataset: Path) -> None:
    add_without_small(dataset, clean)
    arguments = ("evaluate", "24", "init", "--dataset-dir", clean, "--no-profile", "--input-sets=1", "--json")
    done = invoke(*arguments, "--device=emulated")
    assert done.code == ExitCode.OK, done.err
    assert done.json["workload"] == "full"
    assert invoke(*arguments, "--device=emulated", "--size=small").code == ExitCode.USAGE
