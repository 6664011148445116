"""What a candidate may ask of PyTorch while it is recorded: memory and views of it, and facts about the GPU.

Tensors are fake: they have a shape, a type, a place in memory and no values. Whatever depends on values, or computes,
is refused, so that kernels alone can produce the outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import torch
import torch.utils.cpp_extension
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from kernelblaster.python_candidates.plan import RecordedGpu, RefusalKind
from kernelblaster.python_candidates.trace import CallTrace, NotRecorded

_ATEN = torch.ops.aten
_ALLOCATIONS = {
    _ATEN.empty.memory_format,
    _ATEN.empty_strided.default,
    _ATEN.empty_like.default,
    _ATEN.new_empty.default,
    _ATEN.new_empty_strided.default,
}
_ZEROS = {_ATEN.zeros.default, _ATEN.zeros_like.default, _ATEN.new_zeros.default}
_FULL = {_ATEN.full.default: 1, _ATEN.full_like.default: 1, _ATEN.new_full.default: 2}
"""Place of the value among the arguments."""
_QUESTIONS = {
    torch.ops.prim.device.default,
    torch.ops.prim.layout.default,
    _ATEN.is_contiguous.default,
    _ATEN.is_contiguous.memory_format,
}
"""About a tensor, not its values."""
_VIEWS = {_ATEN.detach.default, _ATEN._unsafe_view.default, _ATEN._reshape_alias.default, _ATEN.alias.default}
_CUDA_FORM = "give the sources to load_inline, or submit them as a .cu file"


class WithoutGpu(TorchFunctionMode):
    """Indexing by numbers, slices, None and `...` as views, and moves to the GPU of what is there.

    For both PyTorch itself selects the GPU first, which fails where there is none, also for tensors that are fake.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.Tensor.__getitem__:
            return _indexed(args[0], args[1] if isinstance(args[1], tuple) else (args[1],))
        if func is torch.Tensor.cuda and args[0].is_cuda:
            return args[0]
        if func is torch.Tensor.to and args[0].is_cuda:
            named: Sequence[Any] = torch._C._nn._parse_to(*args[1:], **kwargs)
            device, dtype = named[:2]
            if device is not None and device.type == "cuda":
                return args[0] if dtype is None else func(args[0], dtype)
        return func(*args, **kwargs)


def _indexed(tensor: torch.Tensor, index: tuple[Any, ...]) -> torch.Tensor:
    """`tensor[index]`, which is a view but for indices that are tensors or lists."""
    if not all(one is None or one is Ellipsis or type(one) in (int, slice) for one in index):
        gathered: torch.Tensor = _ATEN.index.Tensor(tensor, [tensor])  # refused under the policy
        return gathered
    rest = index.index(Ellipsis) if Ellipsis in index else len(index)
    axis = 0
    for one in index[:rest]:
        tensor, axis = _along(tensor, axis, one)
    axis = tensor.dim() - sum(one is not None for one in index[rest + 1 :])
    for one in index[rest + 1 :]:
        tensor, axis = _along(tensor, axis, one)
    return tensor


def _along(tensor: torch.Tensor, axis: int, one: int | slice | None) -> tuple[torch.Tensor, int]:
    """A tensor indexed along one axis, and the next axis."""
    if one is None:
        return tensor.unsqueeze(axis), axis + 1
    if isinstance(one, int):
        return tensor.select(axis, one), axis
    return _ATEN.slice.Tensor(tensor, axis, one.start, one.stop, one.step or 1), axis + 1


class OperatorPolicy(TorchDispatchMode):
    """Notes what a call allocates and fills, lets views pass, refuses every other operator."""

    def __init__(self, trace: CallTrace) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._trace = trace

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in _ALLOCATIONS:
            made = func(*args, **kwargs)
            self._trace.allocate(made)
            return made
        if func in _ZEROS or func in _FULL:
            made = func(*args, **kwargs)
            self._trace.allocate(made)
            self._trace.fill(made, 0 if func in _ZEROS else args[_FULL[func]])
            return made
        if func is _ATEN.zero_.default or func is _ATEN.fill_.Scalar:
            self._trace.fill(args[0], 0 if func is _ATEN.zero_.default else args[1])
            return args[0]
        if func in _VIEWS or func in _QUESTIONS or func.is_view:
            return func(*args, **kwargs)
        raise self._trace.refuse(
            RefusalKind.OPERATOR,
            f"forward calls the torch operator {func}",
            "compute in a kernel; forward may allocate (torch.empty, torch.zeros), take views of what is contiguous, "
            "and launch",
        )


@contextmanager
def recorded_memory(trace: CallTrace) -> Iterator[None]:
    """While a call is recorded, `data_ptr()` of a tensor is an address that only its trace understands."""
    own = FakeTensor.data_ptr
    FakeTensor.data_ptr = lambda tensor: trace.address(tensor)  # type: ignore[assignment, arg-type]
    try:
        with OperatorPolicy(trace):
            yield
    finally:
        FakeTensor.data_ptr = own  # type: ignore[method-assign]


def stand_in_for_cuda(gpu: RecordedGpu) -> None:
    """Have `torch.cuda` answer as on the GPU, and refuse what has no meaning in a recording. For the whole process."""
    properties = SimpleNamespace(
        name=gpu.name,
        major=gpu.capability // 10,
        minor=gpu.capability % 10,
        multi_processor_count=gpu.sm_count,
        total_memory=gpu.memory_bytes,
        L2_cache_size=gpu.l2_bytes,
        shared_memory_per_block_optin=gpu.shared_per_block,
        warp_size=32,
    )
    answers: dict[str, Callable[..., Any]] = {
        "_lazy_init": lambda: None,
        "is_available": lambda: True,
        "is_initialized": lambda: True,
        "current_device": lambda: 0,
        "device_count": lambda: 1,
        "set_device": lambda device: None,
        "device": lambda device: nullcontext(),
        "synchronize": lambda device=None: None,
        "empty_cache": lambda: None,
        "get_device_name": lambda device=None: gpu.name,
        "get_device_capability": lambda device=None: divmod(gpu.capability, 10),
        "get_device_properties": lambda device=None: properties,
        "current_stream": lambda device=None: SimpleNamespace(cuda_stream=0, stream_id=0),
    }
    for name, answer in answers.items():
        setattr(torch.cuda, name, answer)
    # For a backward pass a first fake tensor allocates a real one where a GPU is said to be available.
    fake_tensor.init_gpu_context = lambda *device: None  # type: ignore[assignment]
    one_stream = "launch on the current stream, which is the one that is timed"
    for name in ("Stream", "ExternalStream", "Event", "stream", "set_stream", "CUDAGraph", "graph"):
        setattr(torch.cuda, name, _refusing(f"torch.cuda.{name}", one_stream))
    torch.compile = _refusing("torch.compile", "write the kernel in Triton")
    torch.utils.cpp_extension.load = _refusing("torch.utils.cpp_extension.load", _CUDA_FORM)


def _refusing(name: str, hint: str) -> Any:
    def refuse(*args: object, **kwargs: object) -> None:
        raise NotRecorded(RefusalKind.LAUNCH, f"{name} is not recorded", hint)

    return refuse
