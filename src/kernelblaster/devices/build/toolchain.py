"""The compilers and tools of this machine: where nvcc and its libraries are, which versions they have.

`Toolchain.find` looks where CUDA gets installed: PATH, CUDA_HOME, /usr/local/cuda*, the PyPI wheels. The layout of
a toolkit is asked of nvcc itself (`--dryrun`), because nvcc may be a wrapper script and wheels are laid out unlike
an installed toolkit. Optional tools are None when absent. Builds nothing.
"""

from __future__ import annotations

import logging
import os
import re
import shlex
import site
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelblaster.devices.facts import Library
from kernelblaster.errors import MachineError
from kernelblaster.paths import how_to_install
from kernelblaster.sandbox.isolation import installation

_WHEELS = f"its wheels ({how_to_install('nvcc')})"
_INSTALL_NVCC = f"install the CUDA toolkit or {_WHEELS}; then `kernelblaster doctor`"
_MEND_NVCC = f"mend or remove it, or install {_WHEELS} in its place; then `kernelblaster doctor`"
_QUERY_TIMEOUT_S = 60
_log = logging.getLogger(__name__)


class ToolMissing(MachineError):
    """A tool that the chosen device needs is not on this machine, or does not work."""


@dataclass(frozen=True)
class SearchPath:
    """Where `Toolchain.find` looks. Passed explicitly in tests, read from the process by `current`.

    Attributes:
        path: directories of PATH, first wins.
        cuda_homes: toolkit roots, first wins.
        site_packages: directories that hold `nvidia/*` wheels.
    """

    path: tuple[Path, ...]
    cuda_homes: tuple[Path, ...]
    site_packages: tuple[Path, ...]

    @classmethod
    def current(cls, environment: Mapping[str, str] = os.environ) -> SearchPath:
        """This process's PATH, CUDA_HOME / CUDA_PATH, /usr/local/cuda*, and the interpreter's site-packages."""
        homes = [Path(environment[name]) for name in ("CUDA_HOME", "CUDA_PATH") if environment.get(name)]
        installed = sorted(Path("/usr/local").glob("cuda*"), key=_version_key, reverse=True)
        wheels = dict.fromkeys([*site.getsitepackages(), *(entry for entry in sys.path if entry)])
        return cls(
            path=tuple(Path(entry) for entry in environment.get("PATH", "").split(os.pathsep) if entry),
            cuda_homes=(*homes, *installed),
            site_packages=tuple(Path(entry) for entry in wheels if (Path(entry) / "nvidia").is_dir()),
        )

    def executable(self, name: str, *extra: Path) -> Path | None:
        """First executable `name` in PATH, then in `extra` directories."""
        return next(self.executables(name, *extra), None)

    def executables(self, name: str, *extra: Path) -> Iterator[Path]:
        """Every executable `name` in PATH, then in `extra` directories."""
        for directory in (*self.path, *extra):
            candidate = directory / name
            if candidate.is_file() and os.access(candidate, os.X_OK):
                yield candidate

    def wheel_roots(self) -> Iterator[Path]:
        """Toolkit-like directories inside `nvidia` wheels: `nvidia/cu13`, `nvidia/cuda_nvcc`, ..."""
        for directory in self.site_packages:
            yield from sorted(path for path in (directory / "nvidia").iterdir() if path.is_dir())


@dataclass(frozen=True)
class Toolchain:
    """What is needed to build programs, and the optional tools next to it.

    Attributes:
        nvcc: the compiler as found (it may be a wrapper).
        version: nvcc's release, e.g. (13, 0, 88).
        root: the real toolkit directory.
        include_dirs: CUDA runtime headers.
        lib_dirs: directories with CUDA libraries.
        cudart_static: `libcudart_static.a`.
        host_compiler: g++.
        objcopy, objdump, ld, cxxfilt: binutils.
        cuobjdump, nvdisasm, ncu, sanitizer: absent (None) where not installed.
        search: where libraries that candidates may link are looked for.
    """

    nvcc: Path
    version: tuple[int, int, int]
    root: Path
    include_dirs: tuple[Path, ...]
    lib_dirs: tuple[Path, ...]
    cudart_static: Path
    host_compiler: Path
    objcopy: Path
    objdump: Path
    ld: Path
    cxxfilt: Path
    cuobjdump: Path | None
    nvdisasm: Path | None
    ncu: Path | None
    sanitizer: Path | None
    search: SearchPath

    @classmethod
    def find(cls, search: SearchPath | None = None) -> Toolchain:
        """The first working toolchain; toolkits before it that do not work are told of once.

        Raises ToolMissing with what to install or mend.
        """
        search = search or SearchPath.current()
        toolkit = _first_that_works(search)
        return cls(
            nvcc=toolkit.nvcc,
            version=toolkit.version,
            root=toolkit.root,
            include_dirs=toolkit.includes,
            lib_dirs=toolkit.libraries,
            cudart_static=toolkit.cudart_static,
            host_compiler=_required(search, "g++", "install g++ (Debian, Ubuntu: `apt install g++`)"),
            objcopy=_required(search, "objcopy", "install binutils"),
            objdump=_required(search, "objdump", "install binutils"),
            ld=_required(search, "ld", "install binutils"),
            cxxfilt=_required(search, "c++filt", "install binutils"),
            cuobjdump=search.executable("cuobjdump", toolkit.root / "bin"),
            nvdisasm=search.executable("nvdisasm", toolkit.root / "bin"),
            ncu=find_ncu(search),
            sanitizer=search.executable("compute-sanitizer", *_tool_dirs(search, "compute-sanitizer")),
            search=search,
        )

    @property
    def directories(self) -> tuple[Path, ...]:
        """Where the toolchain lies: what a process must see to compile, profile, or load NVIDIA's libraries."""
        building = (self.nvcc, self.host_compiler, self.objcopy, self.ld)
        tools = (*building, self.cuobjdump, self.nvdisasm, self.ncu, self.sanitizer)
        own = [directory for tool in tools if tool is not None for directory in installation(tool)]
        parts = (self.root, *self.include_dirs, *self.lib_dirs, self.cudart_static.parent, *self.search.wheel_roots())
        return tuple(dict.fromkeys((*own, *parts)))

    @property
    def shared_runtimes(self) -> tuple[Path, ...]:
        """The CUDA runtime as a shared object, under all its names."""
        return tuple(path for directory in self.lib_dirs for path in sorted(directory.glob("libcudart.so*")))

    @property
    def cudart_link_args(self) -> tuple[str, ...]:
        """Link arguments for the real CUDA runtime, by full path: wheels have no `libcudart.so` to link by name."""
        return (str(self.cudart_static), "-ldl", "-lpthread", "-lrt")

    @property
    def cudart_shared_link_args(self) -> tuple[str, ...] | None:
        """Link arguments for the real CUDA runtime as a shared object; None where there is only the archive."""
        found = self.shared_runtimes
        return (str(found[0]), f"-Wl,-rpath,{found[0].parent}") if found else None

    def library(self, library: Library) -> LinkLibrary:
        """Compile and link arguments of `library`. Raises ToolMissing when it is not installed."""
        return find_library(library, self)

    @property
    def version_text(self) -> str:
        """`13.0.88`"""
        return ".".join(str(part) for part in self.version)


@dataclass(frozen=True)
class LinkLibrary:
    """How a candidate uses a library: header directories and link arguments (with an rpath)."""

    include_dirs: tuple[Path, ...]
    link_args: tuple[str, ...]


@dataclass(frozen=True)
class _Layout:
    root: Path
    includes: tuple[Path, ...]
    libraries: tuple[Path, ...]


@dataclass(frozen=True)
class _Toolkit:
    nvcc: Path
    version: tuple[int, int, int]
    root: Path
    includes: tuple[Path, ...]
    libraries: tuple[Path, ...]
    cudart_static: Path


def find_nvccs(search: SearchPath) -> list[Path]:
    """Every nvcc in PATH, a CUDA home or a wheel, whether it works or not; at least one. Raises ToolMissing."""
    homes = [home / "bin" for home in search.cuda_homes]
    wheels = [root / "bin" for root in search.wheel_roots()]
    found = list(dict.fromkeys(search.executables("nvcc", *homes, *wheels)))
    if not found:
        raise ToolMissing("nvcc was not found in PATH, CUDA_HOME, /usr/local/cuda* or the wheels", hint=_INSTALL_NVCC)
    return found


def _first_that_works(search: SearchPath) -> _Toolkit:
    """The first toolkit whose nvcc runs and that has what is needed. Raises ToolMissing, about the first one found."""
    broken: list[ToolMissing] = []
    for nvcc in find_nvccs(search):
        try:
            toolkit = _toolkit(nvcc, search)
        except ToolMissing as error:
            broken.append(error)
            continue
        for other in broken:
            _tell_once(f"{other.message}; {nvcc} is used instead")
        return toolkit
    raise broken[0]


@cache
def _tell_once(message: str) -> None:
    _log.warning("%s", message)


def _toolkit(nvcc: Path, search: SearchPath) -> _Toolkit:
    """The toolkit of an nvcc. Raises ToolMissing when it does not work."""
    version, layout = nvcc_version(nvcc), _ask_layout(nvcc)
    libraries = _library_dirs(layout, search)
    return _Toolkit(nvcc, version, layout.root, _include_dirs(layout), libraries, _static_runtime(libraries))


def find_ncu(search: SearchPath) -> Path | None:
    """Nsight Compute's command line, or None."""
    return search.executable("ncu", *_tool_dirs(search, "nsight-compute"))


def nvcc_version(nvcc: Path) -> tuple[int, int, int]:
    """Release of an nvcc. Raises ToolMissing when it does not run."""
    text = _query([str(nvcc), "--version"])
    match = re.search(r"\bV(\d+)\.(\d+)\.(\d+)", text)
    if match is None:
        raise _broken(nvcc, "--version", text)
    return int(match[1]), int(match[2]), int(match[3])


def find_library(library: Library, toolchain: Toolchain) -> LinkLibrary:
    """Look for a library in the toolkit, then in the wheels. Raises ToolMissing."""
    if library is Library.CUTLASS:
        return LinkLibrary((_header_dir("cutlass/cutlass.h", library, toolchain),), ())
    header, names = {
        Library.CUBLAS: ("cublas_v2.h", ("libcublas.so", "libcublasLt.so")),
        Library.CUDNN: ("cudnn.h", ("libcudnn.so",)),
    }[library]
    files = [_shared_object(name, library, toolchain) for name in names]
    directories = dict.fromkeys(file.parent for file in files)
    rpaths = [f"-Wl,-rpath,{directory}" for directory in directories]
    return LinkLibrary((_header_dir(header, library, toolchain),), (*map(str, files), *rpaths))


def _header_dir(header: str, library: Library, toolchain: Toolchain) -> Path:
    system = (Path("/usr/include"), Path("/usr/local/include"))
    wheels = tuple(root / "include" for root in toolchain.search.wheel_roots())
    bundled = tuple(path / "cutlass_library/source/include" for path in toolchain.search.site_packages)
    for directory in (*toolchain.include_dirs, *system, *wheels, *bundled):
        if (directory / header).is_file():
            return directory
    raise ToolMissing(
        f"{library} headers ({header}) were not found", hint=f"install {library}, or forbid it in the run"
    )


def _shared_object(name: str, library: Library, toolchain: Toolchain) -> Path:
    system = (Path("/usr/lib/x86_64-linux-gnu"), Path("/usr/lib/aarch64-linux-gnu"))
    wheels = tuple(root / "lib" for root in toolchain.search.wheel_roots())
    for directory in (*toolchain.lib_dirs, *system, *wheels):
        found = sorted(directory.glob(f"{name}*"))
        if found:
            return found[0]
    raise ToolMissing(f"{name} was not found", hint=f"install {library}, or do not allow it")


def _version_key(path: Path) -> tuple[bool, list[int]]:
    """`/usr/local/cuda` (the machine's choice) before versions, higher versions first when reversed."""
    return path.name == "cuda", [int(part) for part in re.findall(r"\d+", path.name)]


def _required(search: SearchPath, name: str, hint: str) -> Path:
    found = search.executable(name)
    if found is None:
        raise ToolMissing(f"{name} was not found in PATH", hint=hint)
    return found


def _tool_dirs(search: SearchPath, name: str) -> list[Path]:
    """Directories where toolkits keep a tool that may not be linked into their `bin`."""
    homes = [directory for home in search.cuda_homes for directory in (home / "bin", home / name)]
    nested = [path for home in search.cuda_homes for path in sorted(home.glob(f"{name}-*"), reverse=True)]
    own = sorted(Path("/opt/nvidia").glob(f"{name}/*"), reverse=True)
    return [*homes, *nested, *own]


def _query(argv: list[str]) -> str:
    """Combined output of a short tool run. Raises ToolMissing when it cannot be started or hangs."""
    try:
        done = subprocess.run(
            argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_QUERY_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolMissing(f"{argv[0]} does not run: {error}", hint=_MEND_NVCC) from error
    return done.stdout


def _broken(nvcc: Path, option: str, printed: str) -> ToolMissing:
    shown = " ".join(printed.split())[-300:] or "nothing"
    return ToolMissing(f"{nvcc} is broken: asked for {option}, it printed: {shown}", hint=_MEND_NVCC)


def _ask_layout(nvcc: Path) -> _Layout:
    """Toolkit directories as nvcc itself states them. Raises ToolMissing."""
    with TemporaryDirectory(prefix="kernelblaster-") as scratch:
        source = Path(scratch) / "empty.cu"
        source.touch()
        text = _query([str(nvcc), "--dryrun", str(source), "-o", str(Path(scratch) / "empty")])
    variables = dict(re.findall(r"^#\$ (\w+)=(.*)$", text, re.MULTILINE))
    if "TOP" not in variables:
        raise _broken(nvcc, "--dryrun", text)
    flags = " ".join(variables.get(name, "") for name in ("INCLUDES", "SYSTEM_INCLUDES", "LIBRARIES"))
    words = shlex.split(flags.replace('"-isystem" ', "-I"))
    return _Layout(
        root=Path(variables["TOP"]).resolve(),
        includes=tuple(_resolved(word[2:]) for word in words if word.startswith("-I")),
        libraries=tuple(_resolved(word[2:]) for word in words if word.startswith("-L")),
    )


def _resolved(text: str) -> Path:
    return Path(text.strip('"')).resolve()


def _existing(directories: list[Path]) -> tuple[Path, ...]:
    return tuple(dict.fromkeys(path for path in directories if path.is_dir()))


def _include_dirs(layout: _Layout) -> tuple[Path, ...]:
    found = _existing([*layout.includes, layout.root / "include", layout.root / "include" / "cccl"])
    if not any((path / "cuda_runtime_api.h").is_file() for path in found):
        raise ToolMissing(f"the toolkit at {layout.root} has no cuda_runtime_api.h", hint=_INSTALL_NVCC)
    return found


def _library_dirs(layout: _Layout, search: SearchPath) -> tuple[Path, ...]:
    """Never the stubs: they are for linking against a driver that is not there."""
    own = [path for path in layout.libraries if path.name != "stubs"]
    wheels = [root / "lib" for root in search.wheel_roots()] if "site-packages" in layout.root.parts else []
    return _existing([*own, layout.root / "lib64", layout.root / "lib", *wheels])


def _static_runtime(directories: tuple[Path, ...]) -> Path:
    for directory in directories:
        if (directory / "libcudart_static.a").is_file():
            return directory / "libcudart_static.a"
    where = ", ".join(map(str, directories)) or "its library directories"
    raise ToolMissing(f"libcudart_static.a is not in {where}", hint="install the CUDA runtime next to nvcc")
