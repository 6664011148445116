"""What a program is built from: its files, and flags of nvcc that it needs.

As with nvcc, each CUDA file has device code of its own, unless `-rdc=true` asks for code that is linked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from ptxemu.errors import InvalidInput, ProgramNotEmulatable

_CUDA, _HOST = frozenset([".cu", ".cuh"]), frozenset([".c", ".cc", ".cpp", ".cxx"])
_OWN = (
    *("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code", "-o", "--output-file"),
    *("-c", "--compile", "-ptx", "--ptx", "-cubin", "--cubin", "--keep", "-keep", "-E", "-M"),
)
"""Flags that say what is made, for what, and where: not the program's to say."""
_RELOCATABLE = ("-rdc", "--relocatable-device-code", "-dc", "--device-c", "-dlink", "--device-link")
_NEEDLESS = (*_RELOCATABLE, "-cudart", "--cudart", "-lcudart", "-lcudart_static", "-lcudadevrt", "-lcuda")
"""Flags about linking device code and the runtime, which the emulator sees to."""
_WITH_VALUE = (
    *("-std", "--std", "-maxrregcount", "--maxrregcount", "-include", "--pre-include", "-rdc"),
    *("--relocatable-device-code", "-diag-suppress", "--diag-suppress", "-ftz", "-prec-div", "-prec-sqrt", "-fmad"),
    *("-Xcompiler", "--compiler-options", "-Xptxas", "--ptxas-options", "-Xlinker", "--linker-options"),
    *("-Xcudafe", "-isystem", "-default-stream", "--default-stream"),
)
"""Flags whose value may stand behind a blank, and behind = as well."""
_TO_OTHER_TOOLS = tuple(flag for flag in _WITH_VALUE if flag.startswith("-X") or flag.endswith("-options"))
_LETTERS = ("-D", "-U", "-I", "-L", "-l")
"""Flags whose value may stand behind a blank, and without one."""
_WITHOUT_PTX = ("cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "npp", "nvjpeg")
"""Libraries whose kernels come as machine code alone."""


@dataclass(frozen=True)
class ProgramSource:
    """The files of a program and flags of nvcc.

    Attributes:
        files: CUDA and C++ files; the first gives the program its name.
        compile_flags: for each file.
        link_flags: libraries and where they are.
        relocatable: whether device code of one file may use what another defines.
    """

    files: tuple[Path, ...]
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    relocatable: bool = False

    @classmethod
    def of(cls, files: Sequence[Path], flags: Sequence[str] = ()) -> Self:
        """Sort out what was given.

        Raises:
            InvalidInput: a file that is not there or no source, or a flag that the emulator sets itself.
            ProgramNotEmulatable: a library of which there is no PTX.
        """
        for file in files:
            if not file.is_file():
                raise InvalidInput(f"{file}: no such file", hint="give the path of a .cu file with a main function")
            if not is_source(file) and file is not files[0]:
                raise InvalidInput(f"{file} is no CUDA or C++ source", hint="give .cu, .cc, .cpp, .cxx or .c files")
        given = _in_one_word(flags)
        kept = [flag for flag in given if _name(flag) not in _NEEDLESS]
        for flag in kept:
            _refuse(flag)
        linked = tuple(flag for flag in kept if flag.startswith(("-l", "-L")) and not flag.startswith("-line"))
        relocatable = any(_name(flag) in _RELOCATABLE and not flag.endswith("=false") for flag in given)
        return cls(tuple(files), tuple(flag for flag in kept if flag not in linked), linked, relocatable)

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from others, its files' content apart."""
        files = (str(file.resolve()) for file in self.files)
        return (*files, *self.compile_flags, *self.link_flags, f"rdc={self.relocatable}")

    @property
    def host_files(self) -> tuple[Path, ...]:
        """Those that the host's compiler gets."""
        return tuple(file for file in self.files if file.suffix in _HOST)

    @property
    def cuda_files(self) -> tuple[Path, ...]:
        """Those with device code."""
        return tuple(file for file in self.files if file not in self.host_files)

    @property
    def units(self) -> int:
        """Modules of device code that it becomes; one without kernels where it has no CUDA file."""
        return 1 if self.relocatable else max(1, len(self.cuda_files))


def is_source(path: Path) -> bool:
    """Whether it is a file of CUDA or C++ by its name."""
    return path.suffix in _CUDA | _HOST


def looks_like_flag_of_nvcc(word: str) -> bool:
    """Whether a word of a command line was meant for the compiler, as far as that can be told."""
    return word.startswith(("-rdc=", "-std=", "--std=", "--expt-", "-arch=", "-gencode", "-Xptxas", "-Xcompiler"))


def _in_one_word(flags: Sequence[str]) -> list[str]:
    """Flags with their values, which nvcc takes behind a blank, too."""
    given: list[str] = []
    for flag in flags:
        before = given[-1] if given else ""
        if before in _LETTERS or (before in _WITH_VALUE and not flag.startswith("-")) or before in _TO_OTHER_TOOLS:
            given[-1] += flag if before in _LETTERS else f"={flag}"
        else:
            given.append(flag)
    return given


def _name(flag: str) -> str:
    return flag.partition("=")[0]


def _refuse(flag: str) -> None:
    """Raises InvalidInput and ProgramNotEmulatable."""
    if _name(flag) in _OWN:
        raise InvalidInput(f"{flag} is not a flag to give", hint="--arch chooses the GPU; the emulator does the rest")
    if not flag.startswith("-"):
        raise InvalidInput(f"{flag} is no flag of nvcc", hint="write a flag's value behind =, as in -std=c++20")
    library = flag.removeprefix("-l")
    if flag != library and library.startswith(_WITHOUT_PTX):
        raise ProgramNotEmulatable(f"the library {library} comes as machine code, without PTX", hint="run it on a GPU")
