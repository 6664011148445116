"""An emulator of NVIDIA GPUs: assembles PTX, executes it on the CPU, checks it, counts it, and models its time.

    result = ptxemu.run("saxpy.cu", ["1000000"], checks=True)
    result.launches[0].metrics["gpu__time_duration.sum"]

    ptxemu.load_ptx(text).launch("saxpy", grid=8, block=256, args=[2.0, x, y, x.size])

Rooms: `ptx/` (text to operations), `core/` (the C++ that executes them), `counters/` (what it counted), `checks/` (what
it found), `machine/` (what ptxas made of the PTX), `model/` (how long a GPU would take), `metrics/` (what a profiler
shows), `program/` (build and run), `kernels/` (launch PTX on arrays). Imports nothing but the standard library.
"""

from ptxemu.api import build, load_ptx, run
from ptxemu.checks.findings import Finding, FindingKind
from ptxemu.errors import (
    CoreFailure,
    EmulatorError,
    InvalidInput,
    ProgramDoesNotBuild,
    ProgramNotEmulatable,
    ToolkitMissing,
)
from ptxemu.kernels.errors import KernelFailed
from ptxemu.kernels.module import LaunchResult, PtxModule
from ptxemu.metrics.lines import LineProfile
from ptxemu.metrics.names import NsightMetric
from ptxemu.metrics.profile import KernelLaunch
from ptxemu.program.result import RunResult
from ptxemu.program.run import EmulatedProgram, Streams

__all__ = [
    "CoreFailure",
    "EmulatedProgram",
    "EmulatorError",
    "Finding",
    "FindingKind",
    "InvalidInput",
    "KernelFailed",
    "KernelLaunch",
    "LaunchResult",
    "LineProfile",
    "NsightMetric",
    "ProgramDoesNotBuild",
    "ProgramNotEmulatable",
    "PtxModule",
    "RunResult",
    "Streams",
    "ToolkitMissing",
    "build",
    "load_ptx",
    "run",
]
