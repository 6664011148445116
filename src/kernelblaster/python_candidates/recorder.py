"""The program that records a candidate: runs in a process of its own, isolated, that holds no value of any tensor.

It reads `request.json` and `candidate.py` in its working directory and leaves `answer.json` there. The candidate could
forge that file; it would gain nothing, for an answer is a program to be judged and no verdict.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import cpp_extension
from triton.runtime import cache as triton_cache

from kernelblaster.problems.problem import TensorRole
from kernelblaster.problems.reference import first_names, weights_of
from kernelblaster.python_candidates.extensions import Extensions
from kernelblaster.python_candidates.plan import (
    ANSWER,
    CANDIDATE,
    REQUEST,
    CandidateRecording,
    Extents,
    LaunchPlan,
    RecorderAnswer,
    RecordingRequest,
    Refusal,
    RefusalKind,
)
from kernelblaster.python_candidates.torch_policy import WithoutGpu, recorded_memory, stand_in_for_cuda
from kernelblaster.python_candidates.trace import CallTrace, NotRecorded
from kernelblaster.python_candidates.triton_driver import Recorder

_MODEL = "ModelNew"
"""Of batch normalisation in training; no tensor of any problem."""
_MOST_LOG = 8000


def main() -> None:
    """Record the candidate in the working directory, once it is there."""
    _warm_up()
    sys.stdin.buffer.read(1)  # at once at an end: only a recorder that was started early has an input
    if not Path(REQUEST).is_file():
        return  # it is not needed any more
    request = RecordingRequest.model_validate_json(Path(REQUEST).read_text(encoding="utf-8"))
    torch.set_num_threads(1)
    try:
        answer = RecorderAnswer(recording=record(Path(CANDIDATE), request))
    except NotRecorded as refused:
        answer = RecorderAnswer(refusal=refused.refusal)
    except Exception as error:
        answer = RecorderAnswer(refusal=_raised(error))
    Path(ANSWER).write_text(answer.model_dump_json(), encoding="utf-8")


def _warm_up() -> None:
    """What takes seconds and has nothing to do with a candidate."""
    with FakeTensorMode():  # imports most of PyTorch's compiler
        pass
    triton_key = getattr(triton_cache, "triton_key", None)  # reads all of Triton, for a name in a cache
    if triton_key is not None:
        triton_key()


def record(path: Path, request: RecordingRequest) -> CandidateRecording:
    """The plans of a candidate at all sizes of a request. Raises Refused, and what the candidate raises."""
    recorder = Recorder(request.gpu)
    recorder.install()
    stand_in_for_cuda(request.gpu)
    cpp_extension.load_inline = Extensions(recorder).load_inline  # type: ignore[assignment]
    with FakeTensorMode(), WithoutGpu(), torch.no_grad():
        module = _execute(path)
        plans = tuple(_recorded_twice(recorder, module, extents) for extents in request.extents)
    return CandidateRecording(
        kernels=tuple(recorder.kernels),
        plans=plans,
        sources=tuple(recorder.sources),
        warnings=tuple(recorder.warnings),
    )


def _execute(path: Path) -> ModuleType:
    """The candidate's module. Triton reads the source of its kernels, so that it is a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _recorded_twice(recorder: Recorder, module: ModuleType, extents: Extents) -> LaunchPlan:
    """The plan of a call, which must be that of the next one. Raises Refused."""
    given = {
        spec.name: torch.empty(spec.shape, dtype=getattr(torch, spec.dtype.value), device="cuda")
        for spec in extents.tensors
        if spec.role is not TensorRole.OUTPUT
    }
    model = _model(module, extents, given)
    first, second = (_recorded(recorder, model, extents, given) for _ in range(2))
    if first.model_dump_json() != second.model_dump_json():  # as text, for NaN is not equal to itself
        raise NotRecorded(
            RefusalKind.UNSTABLE,
            "a second call with the same shapes launches other kernels than the first",
            "let forward depend on shapes and types alone; keep nothing between calls",
        )
    return first


def _model(module: ModuleType, extents: Extents, given: dict[str, torch.Tensor]) -> torch.nn.Module:
    """`ModelNew` with the problem's weights. Raises Refused."""
    made = getattr(module, _MODEL, None)
    if not isinstance(made, type) or not issubclass(made, torch.nn.Module):
        raise NotRecorded(RefusalKind.MODULE, f"the file defines no class {_MODEL}", "derive it from torch.nn.Module")
    model: torch.nn.Module = _constructed(made, ast.literal_eval(extents.init), extents.scalars).eval()
    weights = {spec.name: given[spec.name] for spec in extents.tensors if spec.role is TensorRole.WEIGHT}
    own = weights_of(model)
    if set(own) != set(weights):
        raise NotRecorded(
            RefusalKind.MODULE,
            f"{_MODEL} has the weights {', '.join(sorted(own)) or 'none'}",
            f"declare those of the reference, by name: {', '.join(sorted(weights)) or 'none'}",
        )
    for name, tensor in weights.items():
        if own[name].shape != tensor.shape:
            raise NotRecorded(
                RefusalKind.MODULE, f"weight {name} is {tuple(own[name].shape)}", f"make it {tuple(tensor.shape)}"
            )
    tied = {name: weights[first] for name, first in first_names(model).items() if first in weights}
    model.load_state_dict(tied, strict=False, assign=True)
    return model


def _constructed(made: type[torch.nn.Module], init: list[Any], scalars: dict[str, float]) -> torch.nn.Module:
    """A module from the reference's arguments; parameters named like scalars of the problem get those."""
    parameters = inspect.signature(made.__init__).parameters
    taken = inspect.signature(made.__init__).bind_partial(None, *init).arguments
    return made(*init, **{name: value for name, value in scalars.items() if name in parameters and name not in taken})


def _recorded(
    recorder: Recorder, model: torch.nn.Module, extents: Extents, given: dict[str, torch.Tensor]
) -> LaunchPlan:
    """The plan of one call. Raises Refused, and what the candidate raises."""
    wanted = [spec for spec in extents.tensors if spec.role is TensorRole.OUTPUT]
    arguments = [given[one.tensor] if one.tensor is not None else one.value for one in extents.arguments]
    with _tracing(recorder, CallTrace(given, wanted)) as trace:
        returned: Any = model(*arguments)
        return trace.finish(returned, extents.tensors)


@contextmanager
def _tracing(recorder: Recorder, trace: CallTrace) -> Iterator[CallTrace]:
    recorder.trace = trace
    try:
        with recorded_memory(trace):
            yield trace
    except Exception:
        if trace.refusal is None:
            raise
    finally:
        recorder.trace = None
    if trace.refusal is not None:
        raise NotRecorded(trace.refusal.kind, trace.refusal.reason, trace.refusal.hint)


def _raised(error: Exception) -> Refusal:
    """What a candidate raised, with the lines of its own that it passed."""
    refused = next((one for one in _causes(error) if isinstance(one, NotRecorded)), None)
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == CANDIDATE]
    where = f"{CANDIDATE}:{frames[-1].lineno}: " if frames else ""
    said = " ".join(str(error).split())
    log = "".join([*traceback.format_list(frames), *traceback.format_exception_only(error)])
    if refused is not None:
        return refused.refusal.model_copy(update={"log": log[:_MOST_LOG]})
    return Refusal(
        kind=RefusalKind.EXCEPTION,
        reason=f"{where}{type(error).__name__}: {said}"[:500],
        log=log[:_MOST_LOG],
    )


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


if __name__ == "__main__":
    main()
