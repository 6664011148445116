"""The calls that most callers need: build a CUDA program and run it, or load PTX and launch its kernels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from ptxemu.kernels.module import PtxModule
from ptxemu.program.result import RunResult
from ptxemu.program.run import DEFAULT_ARCH, EmulatedProgram, Streams


def build(
    source: str | os.PathLike[str],
    *more: str | os.PathLike[str],
    arch: str = DEFAULT_ARCH,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
    nvcc_flags: Sequence[str] = (),
    cache_dir: str | os.PathLike[str] | None = None,
) -> EmulatedProgram:
    """Compile a .cu file that has a `main`, and assemble its PTX. Unchanged programs come from the cache.

    Args:
        source: path of the file.
        more: further CUDA and C++ files; their device code is linked where a flag is `-rdc=true`.
        arch: `sm_80`, `sm_86`, `sm_89`, `sm_90` or `sm_100`; it decides which GPU is emulated.
        include_dirs: further directories with headers.
        nvcc_flags: `-DNAME=1`, `-std=c++20`, `-lm` and the like.
        cache_dir: where programs and the core are kept; PTXEMU_CACHE or the user's cache if not given.

    Raises:
        InvalidInput: no such file or architecture, or a flag that is not to be given.
        ProgramDoesNotBuild: it does not compile or link; `log` has the compiler's messages.
        ProgramNotEmulatable: it needs something that the emulator lacks.
        ToolkitMissing: no nvcc or no g++.
        CoreFailure: the emulator's core does not build.
    """
    return EmulatedProgram.build(
        Path(source),
        more=[Path(file) for file in more],
        arch=arch,
        include_dirs=[Path(directory) for directory in include_dirs],
        nvcc_flags=nvcc_flags,
        cache_root=None if cache_dir is None else Path(cache_dir),
    )


def run(
    program: EmulatedProgram | str | os.PathLike[str],
    arguments: Sequence[str] = (),
    *,
    arch: str = DEFAULT_ARCH,
    checks: bool = False,
    leaks: bool = False,
    lines: int = 0,
    sample: int = 0,
    timeout_s: float = 300.0,
    streams: Streams | None = None,
) -> RunResult:
    """Run a program on the emulated GPU; what its kernels did is counted, how long they take is modelled.

    A program that fails is no error here: `RunResult.exit_code` says how it ended.

    Args:
        program: a .cu file, which is built first, or what `build` returned.
        arguments: of the program.
        arch: what a .cu file is built for; a built program has its own.
        checks: whether memory, races and barriers are checked, which takes several times as long.
        leaks: whether device memory that is not freed in the end is a finding, too; implies `checks`.
        lines: source lines to profile for each launch.
        sample: warp instructions of a launch that are enough: beyond them the blocks of whole SMs are left out, so
            that outputs are incomplete, and counts are scaled. 0 executes every block.
        timeout_s: seconds after which the program is killed.
        streams: where it reads and writes; this process's own streams if not given.

    Raises:
        ProgramNotEmulatable: what a sample leaves out would decide what else is executed.
        EmulatorError: as `build`.
    """
    built = program if isinstance(program, EmulatedProgram) else build(program, arch=arch)
    return built.run(
        arguments, timeout_s=timeout_s, checks=checks, leaks=leaks, lines=lines, sample=sample, streams=streams
    )


def load_ptx(
    text: str,
    *,
    arch: str = DEFAULT_ARCH,
    cache_dir: str | os.PathLike[str] | None = None,
) -> PtxModule:
    """Assemble PTX whose kernels `PtxModule.launch` launches; a text that was loaded before comes from the cache.

    Args:
        text: PTX, as nvcc, NVRTC, Triton or a person writes it.
        arch: `sm_80`, `sm_86`, `sm_89`, `sm_90` or `sm_100`; it decides which GPU is emulated, whatever `.target` says.
        cache_dir: where results and the core are kept; PTXEMU_CACHE or the user's cache if not given.

    Raises:
        InvalidInput: no such architecture.
        ProgramDoesNotBuild: ptxas refuses the text; `log` has its messages.
        ProgramNotEmulatable: it needs an instruction that the emulator lacks.
        ToolkitMissing: no nvcc or no g++.
        CoreFailure: the emulator's core does not build.
    """
    return PtxModule.load(text, arch=arch, cache_root=None if cache_dir is None else Path(cache_dir))
