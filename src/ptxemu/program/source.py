"""What a program is built from: its files, and flags of nvcc that it needs.

All CUDA files become one translation unit, as if the first included the others: relocatable device code needs no
linker then, and calls among files are compiled as calls within one. Names that are static in two files clash.
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
_NEEDLESS = (
    *("-rdc", "--relocatable-device-code", "-dc", "--device-c", "-dlink", "--device-link"),
    *("-cudart", "--cudart", "-lcudart", "-lcudart_static", "-lcudadevrt", "-lcuda"),
)
"""Flags about linking device code and the runtime, of which there is one kind here."""
_WITHOUT_PTX = ("cublas", "cudnn", "cufft", "curand", "cusolver", "cusparse", "nccl", "npp", "nvjpeg")
"""Libraries whose kernels come as machine code alone."""


@dataclass(frozen=True)
class ProgramSource:
    """The files of a program and flags of nvcc.

    Attributes:
        files: CUDA and C++ files; the first gives the program its name.
        compile_flags: for each file.
        link_flags: libraries and where they are.
    """

    files: tuple[Path, ...]
    compile_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()

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
            if file.suffix not in _CUDA | _HOST and file is not files[0]:
                raise InvalidInput(f"{file} is no CUDA or C++ source", hint="give .cu, .cc, .cpp, .cxx or .c files")
        kept = [flag for flag in flags if _name(flag) not in _NEEDLESS]
        for flag in kept:
            _refuse(flag)
        linked = tuple(flag for flag in kept if flag.startswith(("-l", "-L")) and not flag.startswith("-line"))
        return cls(tuple(files), tuple(flag for flag in kept if flag not in linked), linked)

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from others, its files' content apart."""
        return (*(str(file.resolve()) for file in self.files), *self.compile_flags, *self.link_flags)

    @property
    def host_files(self) -> tuple[Path, ...]:
        """Those that the host's compiler gets."""
        return tuple(file for file in self.files if file.suffix in _HOST)

    def unit(self, scratch: Path) -> Path:
        """The CUDA files as one."""
        files = [file.resolve() for file in self.files if file not in self.host_files]
        if len(files) == 1:
            return files[0]
        unit = scratch / "unit.cu"
        unit.write_text("".join(f'#include "{file}"\n' for file in files), encoding="utf-8")
        return unit


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
