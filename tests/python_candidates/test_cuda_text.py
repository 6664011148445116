"""Replaying a recording: the CUDA source that is written from it, and what is refused."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from recorder_support import GPU, Recorded, vector_add

from kernelblaster import EvaluationConfig, RunConfig, open_evaluator
from kernelblaster.devices.failures import BuildFailure
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.problems.driver_names import launcher_arguments
from kernelblaster.python_candidates.cuda_text import cuda_text
from kernelblaster.python_candidates.plan import CandidateRecording, CompiledKernel, Fill

needs_nvcc = pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")


def text_of(recorded: Recorded, recording: CandidateRecording) -> str:
    return cuda_text(recording, recorded.request.extents, launcher_arguments(vector_add().driver_path))


def changed(recorded: Recorded, **values: object) -> CandidateRecording:
    """The recording with other values in its only launch."""
    plan = recorded.recording.plans[0]
    launch = plan.steps[0].model_copy(update=values)
    return recorded.recording.model_copy(update={"plans": (plan.model_copy(update={"steps": (launch,)}),)})


def judged(recorded: Recorded, recording: CandidateRecording) -> Evaluation:
    config = RunConfig(device="emulated", precision="fp16", evaluation=EvaluationConfig(input_sets=1))
    with open_evaluator(config) as evaluator:
        return evaluator.evaluate(vector_add(), text_of(recorded, recording), profile=False)


@pytest.mark.nvcc
@needs_nvcc
def test_a_recording_is_judged_correct(recorded: Recorded) -> None:
    evaluation = judged(recorded, recorded.recording)
    assert evaluation.verdict == "correct", evaluation.reason
    assert [kernel.name for kernel in evaluation.resources] == ["add_kernel_0"]


@pytest.mark.nvcc
@pytest.mark.slow
@needs_nvcc
def test_recordings_that_do_less_are_wrong(recorded: Recorded) -> None:
    plan = recorded.recording.plans[0]
    output = next(index for index, buffer in enumerate(plan.buffers) if buffer.tensor == "output")
    zeros = Fill(buffer=output, offset=0, bytes=2 * 3001, value=0)
    idle = [plan.model_copy(update={"steps": steps}) for steps in ((), (zeros,))]
    less = [recorded.recording.model_copy(update={"plans": (one,)}) for one in idle]
    less.append(changed(recorded, grid=(11, 1, 1)))
    assert [judged(recorded, one).verdict for one in less] == ["wrong_values"] * 3


@pytest.mark.parametrize(
    "spoil",
    [
        lambda ptx: ptx.replace(".visible .entry", ".global .b32 own;\n.visible .entry"),
        lambda ptx: ptx + ptx,
        lambda ptx: ptx.replace(".param .u32", ".param .align 64 .b8", 1),
        lambda ptx: "",
    ],
)
def test_ptx_that_is_no_single_kernel_is_refused(recorded: Recorded, spoil: object) -> None:
    kernel = recorded.recording.kernels[0]
    other = CompiledKernel(name=kernel.name, ptx=spoil(kernel.ptx))  # type: ignore[operator]
    with pytest.raises(BuildFailure):
        text_of(recorded, recorded.recording.model_copy(update={"kernels": (other,)}))


def test_text_of_a_candidate_stays_inside_string_literals(recorded: Recorded) -> None:
    kernel = recorded.recording.kernels[0]
    hostile = 'ret; \\"); {} void evil() { asm("}'
    other = CompiledKernel(name=kernel.name, ptx=kernel.ptx.replace("\tret;", f"\t{hostile}"))
    text = text_of(recorded, recorded.recording.model_copy(update={"kernels": (other,)}))
    line = next(line for line in text.splitlines() if "evil" in line)
    inside = line.strip()[1:-1]
    assert line.strip()[0] == line.strip()[-1] == '"'
    assert '"' not in inside.replace("\\\\", "").replace('\\"', "")


def test_sizes_that_the_launcher_cannot_tell_apart_are_refused(recorded: Recorded) -> None:
    extents = recorded.request.extents[0]
    twice = recorded.recording.model_copy(update={"plans": recorded.recording.plans * 2})
    arguments = [one for one in launcher_arguments(vector_add().driver_path) if one.kind != "size"]
    with pytest.raises(BuildFailure):
        cuda_text(twice, [extents, extents.model_copy(update={"sizes": {"n": 5}})], arguments)


def test_what_was_recorded_was_recorded_for_this_gpu(recorded: Recorded) -> None:
    assert recorded.request.gpu == GPU
    assert replace(launcher_arguments(vector_add().driver_path)[0]).kind == "output"
