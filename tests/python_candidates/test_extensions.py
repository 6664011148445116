"""CUDA inside Python: what is recorded of `load_inline`, what is refused, and what the emulated device makes of it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import python_sources as sources
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from recorder_support import Answers, request_for, vector_add

from kernelblaster.api.evaluating import open_evaluator
from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Verdict
from kernelblaster.problems.driver_names import launcher_arguments
from kernelblaster.problems.problem import Precision
from kernelblaster.python_candidates.cuda_text import cuda_text
from kernelblaster.python_candidates.extension_text import extension_text
from kernelblaster.python_candidates.extensions import FLAGS_LEFT_OUT
from kernelblaster.python_candidates.language import CandidateLanguage, language_of
from kernelblaster.python_candidates.plan import (
    Buffer,
    CallArgument,
    CandidateRecording,
    ExtensionCall,
    ExtensionSource,
    Extents,
    LaunchPlan,
    RefusalKind,
)
from kernelblaster.python_candidates.recording import has_triton
from kernelblaster.runs.evaluations import find_problem

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "inline").glob("*.py"))
ADD = r"""
#include <torch/extension.h>
template <typename T> __global__ void add(const T* x, const T* y, T* out, int64_t count, float factor) {
    int64_t at = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
    if (at < count) out[at] = T(factor * (float(x[at]) + float(y[at])));
}
void add_to(torch::Tensor x, torch::Tensor y, torch::Tensor out, double factor) {
    AT_DISPATCH_FLOATING_TYPES_AND_HALF(x.scalar_type(), "add", [&] {
        add<scalar_t><<<(x.numel() + 127) / 128, 128>>>(x.data_ptr<scalar_t>(), y.data_ptr<scalar_t>(),
                                                        out.data_ptr<scalar_t>(), x.numel(), factor);
    });
}
torch::Tensor added(torch::Tensor x, const torch::Tensor& y, double factor) {
    auto out = torch::empty_like(x);
    add_to(x, y, out, factor);
    return out;
}
torch::Tensor kept(torch::Tensor x, torch::Tensor y, double factor) {
    static torch::Tensor first;
    if (!first.defined()) first = added(x, y, factor);
    return first;
}
torch::Tensor first_half(torch::Tensor x) { return torch::zeros({x.numel() / 2}, x.options()); }
"""


def candidate(forward: str, *, source: str = ADD, functions: str = "['added', 'add_to', 'kept', 'first_half']") -> str:
    """A module for `vector_add` whose `forward` has this body."""
    body = "\n".join(f"        {line}" for line in forward.splitlines())
    return f'''import torch
from torch.utils.cpp_extension import load_inline

SOURCE = r"""{source}"""
own = load_inline(name="own", cpp_sources="", cuda_sources=SOURCE, functions={functions}, extra_cuda_cflags=["-O3"])


class ModelNew(torch.nn.Module):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y):
{body}
'''


HONEST = {
    "returned": candidate("return own.added(x, y, self.factor)"),
    "written to": candidate("out = torch.empty_like(x)\nown.add_to(x, y, out, self.factor)\nreturn out"),
    "handed on": candidate("return own.added(own.added(x, y, self.factor), torch.zeros_like(x), 1.0)"),
    "bound": candidate(
        "return own.added(x.view(-1), y.contiguous(), self.factor)",
        source=ADD + 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("added", &added, "sum"); }',
        functions="None",
    ),
}
REFUSED = {
    "torch beside it": (RefusalKind.OPERATOR, "return own.added(x, y, 1.0) * self.factor"),
    "a view of a result": (RefusalKind.LAUNCH, "return own.added(own.added(x, y, 1.0)[5:], y, self.factor)"),
    "text": (RefusalKind.LAUNCH, "return own.added(x, 'y', self.factor)"),
    "names": (RefusalKind.LAUNCH, "return own.added(x, y=y, factor=self.factor)"),
    "every other element": (RefusalKind.LAUNCH, "return own.added(x[::2], y, self.factor)"),
    "an input": (RefusalKind.OUTPUT, "own.add_to(x, y, x, self.factor)\nreturn x"),
    "no function of it": (RefusalKind.EXCEPTION, "return own.other(x, y)"),
}


def test_a_module_that_calls_load_inline_is_told_from_one_in_triton() -> None:
    assert {language_of(source) for source in HONEST.values()} == {CandidateLanguage.INLINE}
    assert language_of(sources.HONEST) is CandidateLanguage.TRITON
    assert language_of(ADD) is CandidateLanguage.CUDA


def test_sources_are_kept_and_calls_noted_in_the_place_of_made(answers: Answers) -> None:
    found = answers.of(HONEST, request_for(Precision.FP16))
    for name, answer in found.items():
        assert answer.recording is not None, (name, answer.refusal)
        (source,) = answer.recording.sources
        text = HONEST[name].splitlines()
        assert source.text.splitlines()[1] == text[source.line] == "#include <torch/extension.h>"
        assert FLAGS_LEFT_OUT in answer.recording.warnings
    calls = {
        name: [step for step in answer.recording.plans[0].steps if isinstance(step, ExtensionCall)]
        for name, answer in found.items()
        if answer.recording
    }
    assert [call.result is None for call in calls["written to"]] == [True]
    first, second = calls["handed on"]
    assert second.arguments[0] == CallArgument(result=0)
    assert second.arguments[2].value == 1.0
    assert first.result != second.result


def test_what_cannot_be_replayed_is_refused(answers: Answers) -> None:
    found = answers.of({name: candidate(body) for name, (_, body) in REFUSED.items()}, request_for(Precision.FP16))
    kinds = {name: answer.refusal.kind if answer.refusal else None for name, answer in found.items()}
    assert kinds == {name: kind for name, (kind, _) in REFUSED.items()}


def _call(**fields: object) -> ExtensionCall:
    return ExtensionCall.model_validate({"function": "f", "arguments": (), **fields})


@pytest.mark.parametrize(
    "fields",
    [
        {"function": "f(x); system"},
        {"function": ""},
        {"arguments": [{"tensor": {"buffer": 0, "offset": 0, "shape": [-1], "dtype": "float16"}}]},
        {"arguments": [{"tensor": {"buffer": 0, "offset": 0, "shape": [1], "dtype": "float8_e4m3fn"}}]},
        {"arguments": [{"value": "1); evil("}]},
    ],
)
def test_a_forged_call_is_no_call(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        _call(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"result": 7},
        {"arguments": [{"result": 0}]},
        {"arguments": [{"tensor": {"buffer": 0, "offset": 0, "shape": [4, 1 << 39], "dtype": "float16"}}]},
        {"arguments": [{"tensor": {"buffer": 0, "offset": 8, "shape": [1], "dtype": "float16"}}]},
        {"arguments": [{"tensor": {"buffer": 1, "offset": 0, "shape": [1], "dtype": "float16"}}]},
    ],
)
def test_a_forged_plan_reaches_nothing_beyond_its_buffers(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        LaunchPlan(buffers=(Buffer(bytes=8),), steps=(_call(**fields),))


NUMBERS = st.booleans() | st.integers(-(1 << 63), (1 << 64) - 1) | st.floats()


@given(value=NUMBERS)
def test_numbers_are_written_exactly(value: float) -> None:
    extents = request_for(Precision.FP16).extents[0]
    plan = LaunchPlan(buffers=(), steps=(_call(arguments=[CallArgument(value=value)]),))
    text = _text(plan, extents)
    (line,) = [line for line in text.splitlines() if "::f(" in line]
    inside = line.split("::f(")[1].split(");")[0]
    if isinstance(value, bool):
        assert inside == str(value).lower()
    elif isinstance(value, int):
        assert int(inside.removeprefix("(int64_t)").removesuffix("ull")) == value % (1 << 64)
    elif math.isfinite(value):
        assert float.fromhex(inside) == value
    else:
        assert "__builtin" in inside


def _text(plan: LaunchPlan, extents: Extents) -> str:
    recording = CandidateRecording(kernels=(), plans=(plan,), sources=(ExtensionSource(text="void f();", line=3),))
    return cuda_text(recording, [extents], launcher_arguments(vector_add().driver_path))


def test_headers_of_pytorch_are_left_out_and_lines_stay_where_they_are() -> None:
    text = "#include <torch/extension.h>\n  # include <ATen/cuda/CUDAContext.h>\n#include <cuda_runtime.h>\nint x;\n"
    found = extension_text([ExtensionSource(text=text, line=7)])
    after = found.partition('#line 7 "candidate.py"\n')[2]
    assert after.splitlines() == ["", "", "#include <cuda_runtime.h>", "int x;"]


@pytest.fixture(scope="module")
def judge() -> Iterator[Evaluator]:
    if not has_triton():
        pytest.skip("needs Triton")
    config = RunConfig(device="emulated", precision="fp16", evaluation=EvaluationConfig(input_sets=1))
    with open_evaluator(config) as evaluator:
        yield evaluator


JUDGED = {
    **{name: (source, Verdict.CORRECT) for name, source in HONEST.items()},
    "a result that is kept": (candidate("return own.kept(x, y, self.factor)"), Verdict.REWARD_HACK),
    "another shape": (candidate("return own.first_half(x)"), Verdict.RUNTIME_ERROR),
    "torch in C++": (
        candidate("return own.added(x, y, self.factor)", source=ADD.replace("torch::empty_like(x)", "torch::relu(x)")),
        Verdict.COMPILE_ERROR,
    ),
    "a mistake": (
        candidate("return own.added(x, y, self.factor)", source=ADD.replace("auto out =", "auto out")),
        Verdict.COMPILE_ERROR,
    ),
}
FEW = ("handed on", "a result that is kept", "a mistake")


CASES = [name if name in FEW else pytest.param(name, marks=pytest.mark.slow) for name in JUDGED]


@pytest.mark.nvcc
@pytest.mark.parametrize("name", CASES)
def test_they_are_judged_as_any_candidate(judge: Evaluator, name: str) -> None:
    source, verdict = JUDGED[name]
    found = judge.evaluate(vector_add(), source, profile=False)
    assert found.verdict is verdict, f"{found.reason}\n{found.log}"
    assert found.language is CandidateLanguage.INLINE
    if verdict is Verdict.COMPILE_ERROR:
        lines = source.splitlines()
        number = int(re.search(r"candidate\.py\((\d+)\): error", found.log)[1])
        assert "auto out" in lines[number - 1] or "auto out" in lines[number - 2]


@pytest.mark.nvcc
@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda file: file.stem)
def test_examples_are_correct(judge: Evaluator, example: Path) -> None:
    level, number, *_ = example.stem.split("_")
    problem = find_problem(f"{level}/{int(number)}", RunConfig())
    assert judge.evaluate(problem, example.read_text(encoding="utf-8"), profile=False).correct
