"""Programs of problems whose own libtorch driver judges itself: built like any other, and asked for the driver's words.

The driver's object is compiled once per problem and cached by content, for libtorch's headers take 10 s and more. Its
`main`, its call of the launcher and its standard output are renamed to those of `self_checking.hpp`, which serves the
commands of every harness program on the arguments of that call. So a candidate is audited, sealed, isolated, timed
and profiled like any other; only who says that it is right is another, and what it says comes over the result channel.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernelblaster.cuda_source.launcher import LAUNCHER, launcher_declaration, names_launcher
from kernelblaster.devices.base import Build, Harness
from kernelblaster.devices.build.builder import CandidateBuilder
from kernelblaster.devices.build.elf import read_symbols
from kernelblaster.devices.build.policy import CandidatePolicy
from kernelblaster.devices.build.recipes import Recipes
from kernelblaster.devices.build.tools import ToolStep
from kernelblaster.devices.facts import Library
from kernelblaster.errors import MachineError, ProblemError
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.self_checking import candidate_source, driver_source, launcher_header
from kernelblaster.sandbox.process import Scratch

_RENAMED = {
    "main": "kb_self_checking_main",
    "_ZSt4cout": "kb_driver_cout",
    "stdout": "kb_driver_stdout",
    "printf": "kb_driver_printf",
    "vprintf": "kb_driver_vprintf",
    "puts": "kb_driver_puts",
    "putchar": "kb_driver_putchar",
    "exit": "kb_driver_exit",
}
"""Symbols of a driver, and what stands for them."""
_ARRIVAL = re.compile(r"^_ZN2kb13self_checking7Forward\w*10kb_arrival\w*$")


@dataclass(frozen=True)
class Libtorch:
    """Where PyTorch's C++ headers and libraries lie, which of the libraries a driver links, and its version."""

    include_dirs: tuple[Path, ...]
    library_dir: Path
    version: str
    libraries: tuple[str, ...] = ("torch", "torch_cpu", "torch_cuda", "c10", "c10_cuda")
    cxx11_abi: bool = True

    @property
    def link_args(self) -> tuple[str, ...]:
        """Link arguments; every library is kept, for a backend registers itself and no symbol asks for it.

        What the libraries need themselves is found when they are loaded.
        """
        names = (f"-l{name}" for name in self.libraries)
        return (
            "-Wl,--no-as-needed",
            "-Wl,--allow-shlib-undefined",
            f"-L{self.library_dir}",
            f"-Wl,-rpath,{self.library_dir}",
            *names,
        )

    @property
    def loads_from(self) -> tuple[Path, ...]:
        """Directories of its libraries, and of NVIDIA's wheels beside it."""
        wheels = self.library_dir.parent.parent / "nvidia"
        return (self.library_dir, *([wheels] if wheels.is_dir() else []))


def find_libtorch() -> Libtorch:
    """The libtorch inside the installed PyTorch. Raises MachineError when that was built without CUDA."""
    import torch

    if torch.version.cuda is None:
        raise MachineError(
            f"PyTorch {torch.__version__} was built without CUDA, which self-checking drivers need",
            hint="install a CUDA build of PyTorch",
        )
    root = Path(torch.__file__).parent
    return Libtorch(
        include_dirs=(root / "include", root / "include" / "torch" / "csrc" / "api" / "include"),
        library_dir=root / "lib",
        version=torch.__version__,
        cxx11_abi=torch.compiled_with_cxx11_abi(),
    )


def shim_source(declaration: str) -> str:
    """The translation unit that stands between a driver and the launcher that it declares so."""
    shim = f"#include <kernelblaster/self_checking.hpp>\nKB_SELF_CHECKING_DRIVER({LAUNCHER})\n"
    return launcher_header(declaration) + shim


class SelfCheckingBuilder(CandidateBuilder):
    """Builds self-checking drivers and the candidates that they call.

    Args:
        libtorch: what the drivers link.
        recipes: how programs are built, but for that.
        policy: what candidates may contain.
        cache_dir, jobs: as `CandidateBuilder`'s.
    """

    def __init__(
        self, libtorch: Libtorch, recipes: Recipes, policy: CandidatePolicy, cache_dir: Path, *, jobs: int = 0
    ) -> None:
        linked = (*libtorch.link_args, *recipes.link_args)
        super().__init__(
            replace(recipes, link_args=linked, keep_ptx=False, deferred_loading=False), policy, cache_dir, jobs=jobs
        )
        self._libtorch = libtorch

    def harness(self, problem: Problem, precision: Precision) -> Harness:
        """Compile `driver.cpp` against libtorch, or take it from the cache. Raises ProblemError."""
        return replace(super().harness(problem, precision), loads_from=self._libtorch.loads_from)

    def program(self, source: str, harness: Harness, libraries: Sequence[Library] = ()) -> Build:
        """As `CandidateBuilder.program`; what sources of the other build leave out is put in."""
        return super().program(candidate_source(source), harness, libraries)

    def _host_identity(self) -> str:
        return f"{super()._host_identity()} {self._libtorch}"

    def _compile_harness(self, source: bytes, entry: Path, problem: Problem, precision: Precision) -> None:
        text = source.decode(errors="replace")
        declaration = launcher_declaration(text)
        with Scratch() as scratch:
            (scratch / "driver.cpp").write_text(driver_source(text), encoding="utf-8")
            (scratch / "shim.cpp").write_text(shim_source(declaration), encoding="utf-8")
            self._compile_host([*self._torch_flags(), "driver.cpp", "-o", "plain.o"], scratch, problem)
            self._compile_host([*self._recipes.host_flags, "shim.cpp", "-o", "shim.o"], scratch, problem)
            self._join(scratch, problem)
            self._publish(scratch, entry, ["harness.o"])

    def _torch_flags(self) -> tuple[str, ...]:
        """How a driver is compiled. Optimising it only costs time: it is the kernel that is measured."""
        includes = (f"-I{path}" for path in (*self._libtorch.include_dirs, *self._tools.include_dirs))
        abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(self._libtorch.cxx11_abi)}"
        return ("-O0", "-std=c++20", "-w", "-fno-gnu-unique", "-U_FORTIFY_SOURCE", abi, *includes)

    def _join(self, scratch: Path, problem: Problem) -> None:
        """plain.o and shim.o -> harness.o, which calls the launcher only through the shim. Raises ProblemError."""
        plain, shim = (read_symbols(scratch / name) for name in ("plain.o", "shim.o"))
        launchers = [name for name in plain.undefined if names_launcher(name)]
        if len(launchers) != 1 or launchers[0] not in shim.undefined:
            raise ProblemError(
                f"{problem.driver_path} does not call the {LAUNCHER} that it declares", hint="declare it and call it"
            )
        (arrival,) = (name for name in shim.defined if _ARRIVAL.match(name))
        renamed = {**_RENAMED, launchers[0]: arrival}
        options = [f"--redefine-sym={name}={other}" for name, other in renamed.items()]
        self._binutils(
            scratch,
            ToolStep((str(self._tools.objcopy), *options, "plain.o", "renamed.o")),
            ToolStep((str(self._tools.ld), "-r", "renamed.o", "shim.o", "-o", "harness.o")),
        )
