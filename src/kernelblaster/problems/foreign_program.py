"""Builds and runs a foreign KernelBench-CUDA driver against the libtorch of the installed PyTorch.

The driver is compiled once per directory (libtorch's headers take 10 s and more), each kernel source is its own
translation unit. A program runs in a process group of its own that is killed as a whole when its time is up. It is
trusted with nothing: what it prints becomes a `WeakVerdict` and no more.
"""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.errors import EnvironmentError_, KernelBlasterError
from kernelblaster.problems.foreign import (
    HEADER,
    WeakVerdict,
    candidate_source,
    driver_source,
    launcher_declaration,
    launcher_header,
    read_words,
)
from kernelblaster.problems.problem import Problem

_OUTPUT_BYTES = 1 << 16
_COMPILE_TIMEOUT_S = 300.0


class ForeignBuildError(KernelBlasterError):
    """A foreign driver or kernel does not build; `log` is the compiler's output."""

    def __init__(self, message: str, log: str) -> None:
        super().__init__(message, cure="see the compiler's output")
        self.log = log


@dataclass(frozen=True)
class Libtorch:
    """Where PyTorch's C++ headers and libraries lie, and which libraries a CUDA driver links."""

    include_dirs: tuple[Path, ...]
    library_dir: Path
    libraries: tuple[str, ...] = ("torch", "torch_cpu", "torch_cuda", "c10", "c10_cuda")
    cxx11_abi: bool = True


@dataclass(frozen=True)
class ForeignTools:
    """The compilers of one machine.

    `nvcc` and its `-arch` value, e.g. `sm_90a`; `include_dirs` and `link_args` give the CUDA runtime to the host
    compiler.
    """

    nvcc: Path
    arch: str
    include_dirs: tuple[Path, ...]
    link_args: tuple[str, ...]
    cxx: Path = Path("g++")


@dataclass(frozen=True)
class ForeignRun:
    """What a foreign program did. `returncode` is negative for a signal; `output` is bounded."""

    verdict: WeakVerdict
    returncode: int
    output: str
    timed_out: bool


def find_libtorch() -> Libtorch:
    """The libtorch inside the installed PyTorch. Raises EnvironmentError_ when that was built without CUDA."""
    import torch

    if torch.version.cuda is None:
        raise EnvironmentError_(
            f"PyTorch {torch.__version__} was built without CUDA, which foreign drivers need",
            cure="install a CUDA build of PyTorch",
        )
    root = Path(torch.__file__).parent
    return Libtorch(
        include_dirs=(root / "include", root / "include" / "torch" / "csrc" / "api" / "include"),
        library_dir=root / "lib",
        cxx11_abi=torch.compiled_with_cxx11_abi(),
    )


def build_foreign(problem: Problem, source: str, tools: ForeignTools, libtorch: Libtorch, directory: Path) -> Path:
    """Build a kernel source with its foreign driver; returns the program.

    Args:
        directory: where objects and the program go; the driver's object is kept there for the next source.

    Raises:
        ForeignBuildError: the driver or the source does not compile, or they do not link.
        ProblemError: the driver declares no launcher.
    """
    directory.mkdir(parents=True, exist_ok=True)
    driver = problem.driver_path.read_text(encoding="utf-8", errors="replace")
    (directory / HEADER).write_text(launcher_header(launcher_declaration(driver)), encoding="utf-8")
    driver_object = _compile_driver(driver_source(driver), tools, libtorch, directory)
    kernel, kernel_object = directory / "kernel.cu", directory / "kernel.o"
    kernel.write_text(candidate_source(source), encoding="utf-8")
    flags = ["-O3", "-std=c++17", f"-arch={tools.arch}", *(f"-I{path}" for path in (directory, *tools.include_dirs))]
    _compile([str(tools.nvcc), "-c", *flags, str(kernel), "-o", str(kernel_object)], "the kernel does not compile")
    program = directory / "program"
    paths = [f"-L{libtorch.library_dir}", f"-Wl,-rpath,{libtorch.library_dir}"]
    # --no-as-needed: the CUDA backend registers itself when its library is loaded, no symbol asks for it.
    libraries = ["-Wl,--no-as-needed", *(f"-l{name}" for name in libtorch.libraries), *tools.link_args]
    objects = [str(driver_object), str(kernel_object)]
    _compile([str(tools.cxx), *objects, *paths, *libraries, "-o", str(program)], "driver and kernel do not link")
    return program


def run_foreign(program: Path, timeout_s: float) -> ForeignRun:
    """Run a foreign program in its own directory and process group, and read its words."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=program.parent,
            start_new_session=True,
        )
        try:
            process.wait(timeout_s)
            timed_out = False
        except subprocess.TimeoutExpired:
            timed_out = True
        finally:
            _kill_group(process)
        output.seek(0)
        text = output.read(_OUTPUT_BYTES).decode(errors="replace")
    verdict = WeakVerdict.FAILED if timed_out else read_words(text, process.returncode)
    return ForeignRun(verdict, process.returncode, text, timed_out)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError):  # every process of the group has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _compile_driver(text: str, tools: ForeignTools, libtorch: Libtorch, directory: Path) -> Path:
    digest = hashlib.sha256(f"{libtorch}\n{tools}\n{text}".encode()).hexdigest()[:16]
    compiled = directory / f"driver_{digest}.o"
    if compiled.exists():
        return compiled
    source = directory / "driver.cpp"
    source.write_text(text, encoding="utf-8")
    includes = [f"-I{path}" for path in (directory, *libtorch.include_dirs, *tools.include_dirs)]
    abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(libtorch.cxx11_abi)}"
    # Optimisation of a driver only costs time: it is the kernel that is measured.
    partial = compiled.with_suffix(".partial")
    command = [str(tools.cxx), "-c", "-O0", "-std=c++17", abi, *includes, str(source), "-o", str(partial)]
    _compile(command, "the driver does not compile")
    partial.rename(compiled)
    return compiled


def _compile(command: Sequence[str], failure: str) -> None:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_COMPILE_TIMEOUT_S, check=False
        )
    except FileNotFoundError as error:
        raise EnvironmentError_(f"{command[0]} is not there", cure="install it, or name another") from error
    except subprocess.TimeoutExpired as error:
        raise ForeignBuildError(f"{failure} within {_COMPILE_TIMEOUT_S:.0f} s", log="") from error
    if done.returncode != 0:
        raise ForeignBuildError(failure, log=(done.stderr + done.stdout)[-_OUTPUT_BYTES:])
