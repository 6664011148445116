"""The commands that turn sources into programs. They are run by `build`; nothing happens here."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelblaster.devices.base import Harness
from kernelblaster.devices.build.forgotten_headers import forgotten_headers
from kernelblaster.devices.build.symbols import LauncherMatch
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.build.tools import ToolStep
from kernelblaster.devices.facts import Library
from kernelblaster.paths import (
    candidate_link_script,
    deferred_source,
    guards_source,
    harness_include_dir,
    initialise_source,
    program_exports,
    program_source,
)
from kernelblaster.problems.problem import Precision

PROGRAM, INITIALISER, _LIBRARY = "program", "initialise.o", "candidate.so"
MACHINE_CODE = "candidate.sass"
_LISTING = f"""mkdir listed && cd listed && "$0" -xelf all ../candidate.o > extracted.log &&
for each in *.cubin; do "$1" -c "$each" || exit 1; done > listing && mv listing ../{MACHINE_CODE}"""
"""All code of an object or nothing: half of it would refute what the other half has. Apart from what nvcc keeps."""
COMPILER_LOG = "compiler.log"
"""What nvcc says of a candidate: a file, for its warnings may be many, and what ptxas says comes last."""
_HARDENED = "-Wl,-z,relro,-z,now,-z,noexecstack"


@dataclass(frozen=True)
class Recipes:
    """How programs are built. Files are named in the working directory of the commands.

    Attributes:
        tools: compilers and binutils.
        compile_arch: what nvcc compiles for, e.g. `sm_90a`.
        link_args: the CUDA runtime to link, e.g. the real one's archive or `-L... -lptxcudart`.
        keep_ptx: whether PTX and machine code are wanted; costs nothing to run and a little to build.
        deferred_loading: whether harnesses become programs that load candidates, which are shared objects then; the
            runtime must be one, too, for both to share it.
    """

    tools: Toolchain
    compile_arch: str
    link_args: tuple[str, ...]
    keep_ptx: bool = True
    deferred_loading: bool = False

    @property
    def target(self) -> str:
        """Name of what a candidate becomes."""
        return _LIBRARY if self.deferred_loading else PROGRAM

    @property
    def host_flags(self) -> tuple[str, ...]:
        """How host code of the harness is compiled."""
        includes = (f"-I{path}" for path in (harness_include_dir(), *self.tools.include_dirs))
        return ("-O2", "-std=c++17", "-fno-gnu-unique", *includes)

    def compile_main(self, target: str) -> ToolStep:
        """The harness' program without a driver."""
        return ToolStep((str(self.tools.host_compiler), *self.host_flags, "-c", str(program_source()), "-o", target))

    def join(self, *objects: str, into: str) -> ToolStep:
        """Several objects -> one."""
        return ToolStep((str(self.tools.ld), "-r", *objects, "-o", into))

    def compile_flags(self, precision: Precision) -> tuple[str, ...]:
        """How nvcc compiles a candidate."""
        number = self.compile_arch.removeprefix("sm_")
        return (
            "-O3",
            "-std=c++17",
            f"-gencode=arch=compute_{number},code=sm_{number}",
            "-lineinfo",
            "-Xptxas=-v",
            # Unique symbols stay global whatever objcopy is told.
            "-Xcompiler=-fno-gnu-unique",
            # NVTX, which CUB brings, loads a library: refused where nothing contains a candidate.
            "-Xcompiler=-fPIC" if self.deferred_loading else "-DNVTX_DISABLE",
            "-Wno-deprecated-gpu-targets",
            f"-DKB_{precision.upper()}",
        )

    def compile(self, source: str, precision: Precision, libraries: tuple[Library, ...], keep_in: Path) -> ToolStep:
        """candidate.cu, which holds `source`, -> candidate.o; PTX, where it is kept, lies in `keep_in`."""
        own = (f"-I{path}" for library in libraries for path in self.tools.library(library).include_dirs)
        headers = (flag for header in forgotten_headers(source) for flag in ("-include", header))
        keep = ("--keep", "--keep-dir", str(keep_in)) if self.keep_ptx else ()
        return ToolStep(
            (
                # Two threads: host and device code are compiled side by side.
                *(str(self.tools.nvcc), "--threads=2", "-ccbin", str(self.tools.host_compiler)),
                *self.compile_flags(precision),
                *(f"-I{harness_include_dir()}", *own, *headers, *keep),
                *("-c", "candidate.cu", "-o", "candidate.o"),
            ),
            COMPILER_LOG,
            errors=True,
        )

    def list_machine_code(self) -> list[ToolStep]:
        """candidate.o -> candidate.sass, its machine code for the GPU; nothing where the tools are not installed.

        `cuobjdump -sass` looks for nvdisasm through /proc, which is not there: it would print headers alone.
        """
        if self.tools.cuobjdump is None or self.tools.nvdisasm is None:
            return []
        tools = (str(self.tools.cuobjdump), str(self.tools.nvdisasm))
        return [ToolStep(("/bin/sh", "-c", _LISTING, *tools), optional=True)]

    def disassemble(self) -> list[ToolStep]:
        """candidate.o -> candidate.dis, its instructions, where nothing contains them."""
        if self.deferred_loading:
            return []
        return [ToolStep((str(self.tools.objdump), "-d", "candidate.o"), "candidate.dis")]

    def seal(self, match: LauncherMatch, guards: dict[str, str]) -> list[ToolStep]:
        """candidate.o -> sealed.o, whose only global symbol is the launcher.

        `guards`: names under which it asks for guarded functions -> the functions.
        """
        rename = [f"--redefine-sym={name}=kb_guard_{function}" for name, function in guards.items()]
        if match.symbol != match.wanted:
            rename.append(f"--redefine-sym={match.symbol}={match.wanted}")
        ld, objcopy = str(self.tools.ld), str(self.tools.objcopy)
        return [
            # COMDAT groups are dissolved first: the linker merges them by name with the harness', and a symbol that was
            # made local would be left pointing into the copy that it threw away.
            ToolStep((ld, "-r", "--force-group-allocation", "candidate.o", "-o", "whole.o")),
            # Code that the object brings for a linker to compile has symbols of its own, which nothing makes local.
            ToolStep((objcopy, "--remove-section=.gnu.lto_*", f"--keep-global-symbol={match.symbol}", "whole.o")),
            ToolStep((objcopy, *rename, "whole.o", "sealed.o")),
        ]

    def link(self, harness: Harness, libraries: tuple[Library, ...], guards: dict[str, str]) -> list[ToolStep]:
        """sealed.o, with the stand-ins of the guarded functions that it calls, -> the program or shared object."""
        extra = (argument for library in libraries for argument in self.tools.library(library).link_args)
        # What a shared object asks for is looked for now, as it would be for a program. Nothing of it runs when it is
        # loaded: its constructors wait until the process is contained.
        harness_part: tuple[str, ...] = (str(harness.object_path),)
        if harness.program is not None:
            alone = ("-shared", "-nostartfiles", "-Wl,-z,defs", "-T", str(candidate_link_script()))
            harness_part = (*alone, str(harness.program.with_name(INITIALISER)))
        linking = ToolStep(
            (
                *(str(self.tools.host_compiler), *harness_part, "sealed.o", *(["guards.o"] if guards else [])),
                *("-o", self.target),
                # Code that an object brings for the linker to compile was not audited.
                "-fno-use-linker-plugin",
                *(_HARDENED, "-Wl,--as-needed", *extra, *self.link_args),
            )
        )
        return [*self._compile_guards(sorted(set(guards.values()))), linking]

    def _compile_guards(self, functions: list[str]) -> list[ToolStep]:
        if not functions:
            return []
        defines = (f"-DKB_GUARD_{function}" for function in functions)
        flags = (*self.host_flags, "-fPIC", "-Wno-deprecated-declarations", *defines)
        return [ToolStep((str(self.tools.host_compiler), *flags, "-c", str(guards_source()), "-o", "guards.o"))]

    def link_deferred(self, harness: Harness) -> list[ToolStep]:
        """A harness' object -> its program without a candidate, and what every candidate of it is linked with."""
        compiler, launcher = str(self.tools.host_compiler), f'-DKB_LAUNCHER="{harness.launcher_symbol}"'
        parts = f"-I{deferred_source().parent}"  # a compiler sees what its arguments name
        return [
            ToolStep((compiler, *self.host_flags, "-fPIC", "-c", str(initialise_source()), "-o", INITIALISER)),
            ToolStep((compiler, *self.host_flags, parts, launcher, "-c", str(deferred_source()), "-o", "deferred.o")),
            ToolStep(
                # A C++ library of its own, whose symbols nobody sees: what a candidate does to the common one, its
                # locale say, changes nothing here.
                (
                    *(compiler, str(harness.object_path), "deferred.o", "-o", PROGRAM, _HARDENED),
                    *("-static-libstdc++", "-Xlinker", "--version-script", "-Xlinker", str(program_exports())),
                    *(*self.link_args, "-ldl", "-lpthread"),
                )
            ),
        ]
