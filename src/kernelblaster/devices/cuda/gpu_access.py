"""Which isolation lets a program reach the GPU: tried once per process, with a program that allocates GPU memory."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.build.tools import run_tool
from kernelblaster.devices.harness.libraries import runtime_libraries
from kernelblaster.errors import DeviceError
from kernelblaster.sandbox.isolation import FileView, Isolation, SystemView, strongest_working, weaker
from kernelblaster.sandbox.limits import CommandResult, Limits
from kernelblaster.sandbox.process import Scratch, clean_environment, run, strongest

_LOG = logging.getLogger(__name__)
_TIMEOUT_S = 60.0
_UVM_DEVICE = Path("/dev/nvidia-uvm")
_SOURCE = """
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

typedef int (*Call)(void*, long);

static void step(void* driver, const char* name, void* first, long second) {
    Call call = (Call)dlsym(driver, name);
    const int code = call ? call(first, second) : -1;
    if (code == 0) return;
    printf("%s failed with CUDA error %d\\n", name, code);
    fflush(stdout);
    _Exit(1);
}

int main() {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) return printf("%s\\n", dlerror()), 1;
    void *context, *memory;
    int device;
    step(driver, "cuInit", 0, 0);
    step(driver, "cuDeviceGet", &device, 0);
    step(driver, "cuDevicePrimaryCtxRetain", &context, device);
    step(driver, "cuCtxSetCurrent", context, 0);
    step(driver, "cuMemAlloc_v2", &memory, 1 << 20);
    return 0;
}
"""


def needs_helper() -> bool:
    """Whether the first CUDA program has to start the driver's helper, which makes missing device nodes."""
    return not _UVM_DEVICE.exists()


@cache
def reaching_isolation(tools: Toolchain) -> Isolation:
    """The strongest isolation under which a program reaches the GPU; warns when it is not the strongest there is.

    Raises DeviceError when the program that tries does not compile.
    """
    wanted = strongest().level
    with Scratch() as scratch:
        program = _compile(tools, scratch)
        if needs_helper():
            _try(FileView(readable=tools.directories), program, scratch, Limits(forks=True, isolation=Isolation.LIMITS))
        try:
            found = strongest_working(weaker(wanted), lambda level: _reach(tools, program, scratch, level), _Unreached)
        except _Unreached:
            return wanted  # the isolation is not to blame
    if found.refused:
        warning = "" if found.level.isolates else "CANDIDATES ARE NOT ISOLATED: "
        reasons = "; ".join(f"{level}: {reason}" for level, reason in found.refused.items())
        _LOG.warning("%sthe GPU is only reached under %s (%s)", warning, found.level, reasons)
    return found.level


@cache
def little_view(tools: Toolchain) -> FileView:
    """What a program needs to reach the GPU: the CUDA runtime, the driver, the C library, no system folder."""
    return FileView(readable=(*tools.shared_runtimes, *runtime_libraries()), system=SystemView.PROGRAM)


@cache
def suffices_for_the_gpu(tools: Toolchain, level: Isolation) -> bool:
    """Whether a program reaches the GPU that sees `little_view`; warns when it does not."""
    if needs_helper():
        return False  # it is a program that lies in a folder of the system
    with Scratch() as scratch:
        program = _compile(tools, scratch)
        outcome = _try(little_view(tools), program, scratch, Limits(isolation=level))
        whole = _try(FileView(readable=tools.directories), program, scratch, Limits(isolation=level))
    if whole.ok and not outcome.ok:
        _LOG.warning(
            "candidates see all libraries of the system: with less, the GPU is not reached (%s)", outcome.output
        )
    return outcome.ok


class _Unreached(Exception):
    """The program that tries did not reach the GPU; the text says why."""


def _reach(tools: Toolchain, program: Path, scratch: Path, level: Isolation) -> None:
    outcome = _try(
        FileView(readable=tools.directories), program, scratch, Limits(forks=needs_helper(), isolation=level)
    )
    if not outcome.ok:
        said = outcome.output.strip().splitlines()
        raise _Unreached(said[-1] if said else outcome.describe())


def _compile(tools: Toolchain, scratch: Path) -> Path:
    (scratch / "reach.cpp").write_text(_SOURCE)
    outcome = run_tool(tools, [str(tools.host_compiler), "reach.cpp", "-o", "reach", "-ldl"], scratch)
    if not outcome.ok:
        raise DeviceError(f"a small program does not compile: {outcome.output[-500:]}", hint="check g++")
    return scratch / "reach"


def _try(view: FileView, program: Path, scratch: Path, limits: Limits) -> CommandResult:
    return run(
        [str(program)],
        timeout_s=_TIMEOUT_S,
        limits=limits,
        cwd=scratch,
        environment=clean_environment(scratch),
        view=view,
    )
