"""Triton's driver and compiler back end, exchanged: kernels are compiled to PTX, and launches noted instead of made.

Triton asks its active driver for the target, for a launcher of each kernel and for the loading of its binary; no GPU,
no CUDA driver and no C compiler is needed to answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import triton
from triton.backends import Backend, backends
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.backends.nvidia.compiler import CUDABackend
from triton.runtime.driver import driver as drivers

from kernelblaster.python_candidates.plan import (
    Argument,
    CompiledKernel,
    ExtensionSource,
    PlannedLaunch,
    RecordedGpu,
    RefusalKind,
)
from kernelblaster.python_candidates.trace import CallTrace

_THREADS_PER_WARP = 32
_MOST_THREADS = 1024
FIRST_CONFIGURATION = "triton.autotune: the first configuration is taken, for nothing is timed while recording"
VERSION: str = triton.__version__


class PtxBackend(CUDABackend):  # type: ignore[misc]
    """Triton's back end for CUDA without its last stage."""

    def __init__(self, target: GPUTarget) -> None:
        super().__init__(target)
        self.binary_ext = "ptx"

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        """All stages up to PTX."""
        super().add_stages(stages, options, language)
        del stages["cubin"]


@dataclass
class Recorder:
    """Collects kernels over all calls, and passes launches on to the call that is being recorded."""

    gpu: RecordedGpu
    kernels: list[CompiledKernel] = field(default_factory=list)
    sources: list[ExtensionSource] = field(default_factory=list)
    warnings: dict[str, None] = field(default_factory=dict)
    trace: CallTrace | None = None

    def kernel(self, name: str, ptx: str) -> int:
        """The number of a kernel."""
        found = CompiledKernel(name=name, ptx=ptx)
        if found not in self.kernels:
            self.kernels.append(found)
        return self.kernels.index(found)

    def install(self) -> None:
        """Make Triton use the stand-ins. For the whole process."""
        backends["nvidia"] = Backend(compiler=PtxBackend, driver=backends["nvidia"].driver)
        drivers.set_active(RecordingDriver(self))


class RecordingDriver(DriverBase):  # type: ignore[misc]
    """What Triton takes for the CUDA driver."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__()
        self._recorder = recorder
        self.utils = self
        self.launcher_cls: Callable[..., RecordingLauncher] = lambda source, metadata: RecordingLauncher(
            recorder, source, metadata
        )

    @classmethod
    def is_active(cls) -> bool:
        """It is chosen by `install` alone."""
        return False

    def map_python_to_cpp_type(self, ty: str) -> str:
        """Asked by launchers in C, of which there are none."""
        raise NotImplementedError(ty)

    def get_current_target(self) -> GPUTarget:
        """The GPU that is compiled for."""
        return GPUTarget("cuda", self._recorder.gpu.capability, _THREADS_PER_WARP)

    def get_active_torch_device(self) -> torch.device:
        """Where tensors are."""
        return torch.device("cuda", 0)

    def get_current_device(self) -> int:
        """There is one."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is one."""

    def get_current_stream(self, device: int | None = None) -> int:
        """The stream that is timed."""
        return 0

    def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
        """Of the GPU that is compiled for."""
        return divmod(self._recorder.gpu.capability, 10)

    def get_device_interface(self) -> Any:
        """What knows of streams and events."""
        return torch.cuda

    def get_benchmarker(self) -> Callable[..., Sequence[float]]:
        """All configurations are equally fast, and none is launched: the first one wins."""

        def benchmark(kernel_call: object, quantiles: Sequence[float] = (0.5,), **options: object) -> list[float]:
            self._recorder.warnings[FIRST_CONFIGURATION] = None
            return [1.0] * len(quantiles)

        return benchmark

    def get_device_properties(self, device: int) -> dict[str, int]:
        """As Triton's own utilities name them."""
        gpu = self._recorder.gpu
        return {
            "max_shared_mem": gpu.shared_per_block,
            "max_num_regs": 65536,
            "multiprocessor_count": gpu.sm_count,
            "warpSize": _THREADS_PER_WARP,
        }

    def load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[None, int, int, int, int]:
        """Module, function (its number here), registers, spills, most threads of a block."""
        return None, self._recorder.kernel(name, binary.decode("ascii")), 0, 0, _MOST_THREADS


class RecordingLauncher:
    """What Triton calls to launch one compiled kernel."""

    def __init__(self, recorder: Recorder, source: Any, metadata: Any) -> None:
        self._recorder = recorder
        self._types = list(source.signature.values())
        self._metadata = metadata

    def __call__(self, x: int, y: int, z: int, stream: int, kernel: int, *rest: Any) -> None:
        """Note a launch. `rest`: packed and launch metadata, two hooks, and the kernel's arguments. Raises Refused."""
        trace = self._recorder.trace
        if trace is None:
            raise RuntimeError("a kernel is launched outside forward")
        self._check(trace)
        arguments = [value for value, kind in zip(rest[4:], self._types, strict=True) if kind != "constexpr"]
        if x * y * z == 0:
            return
        trace.launch(
            PlannedLaunch(
                kernel=kernel,
                grid=(x, y, z),
                warps=self._metadata.num_warps,
                shared_bytes=self._metadata.shared,
                arguments=tuple(_argument(trace, value) for value in arguments),
            )
        )

    def _check(self, trace: CallTrace) -> None:
        """Raise Refused for what a plain launch cannot do."""
        metadata, lacking = self._metadata, ""
        if metadata.num_ctas != 1:
            lacking = "num_ctas other than 1"
        elif metadata.global_scratch_size or metadata.profile_scratch_size:
            lacking = "scratch memory of the compiler's own, as tensor descriptors need it"
        elif metadata.launch_cooperative_grid or metadata.launch_pdl:
            lacking = "cooperative or dependent launches"
        if lacking:
            raise trace.refuse(
                RefusalKind.LAUNCH, f"kernel {metadata.name} needs {lacking}", "use pointers and a plain launch"
            )


def _argument(trace: CallTrace, value: object) -> Argument:
    if isinstance(value, torch.Tensor):
        if value.device.type != "cuda":
            raise trace.refuse(
                RefusalKind.LAUNCH, "a tensor on the CPU is passed to a kernel", "allocate it with device=x.device"
            )
        return trace.pointer(value)
    if isinstance(value, bool | int | float):
        return Argument(value=value if isinstance(value, float) else int(value))
    raise trace.refuse(
        RefusalKind.LAUNCH,
        f"a {type(value).__name__} is passed to a kernel",
        "pass tensors and numbers; nothing else is replayed",
    )
