"""Where shipped data and caches lie. The only module that knows."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from kernelblaster.errors import MachineError

_PACKAGE = Path(__file__).resolve().parent


def data_dir() -> Path:
    """Shipped problems, knowledge base and recordings: inside the wheel, or `data/` of a clone."""
    packaged = _PACKAGE / "data"
    return packaged if packaged.is_dir() else _PACKAGE.parents[1] / "data"


def how_to_install(extra: str) -> str:
    """What to type so that this very Python has an extra of this package; in no registry is it to be found."""
    checkout = _PACKAGE.parents[1]
    if not (checkout / "pyproject.toml").is_file():
        return f"install the package again, from the same wheel, as 'WHEEL[{extra}]'"
    if Path(sys.prefix) == checkout / ".venv":
        return f"KERNELBLASTER_EXTRAS={extra} bash {checkout}/scripts/setup.sh"
    return f"{sys.executable} -m pip install --editable '{checkout}[{extra}]'"


def problem_skeleton() -> Path:
    """Directory of the problem that `kernelblaster new` copies."""
    return data_dir() / "problem_skeleton"


def harness_include_dir() -> Path:
    """Header-only C++ harness that `driver.cpp` and kernels include as `<kernelblaster/...>`."""
    return _PACKAGE / "devices" / "harness" / "include"


def program_source() -> Path:
    """The harness' program, to which a problem's driver is linked."""
    return _PACKAGE / "devices" / "harness" / "program.cpp"


def deferred_source() -> Path:
    """What stands in for the launcher in a harness that loads its candidate."""
    return _PACKAGE / "devices" / "harness" / "deferred" / "deferred.cpp"


def initialise_source() -> Path:
    """Part of every candidate's shared object: runs its constructors when it is told to."""
    return _PACKAGE / "devices" / "harness" / "deferred" / "initialise.cpp"


def program_exports() -> Path:
    """Linker's version script of a harness program: it exports nothing."""
    return _PACKAGE / "devices" / "harness" / "deferred" / "program.map"


def candidate_link_script() -> Path:
    """How the linker lays out a candidate's shared object."""
    return _PACKAGE / "devices" / "harness" / "deferred" / "candidate.ld"


def guards_source() -> Path:
    """Stand-ins for functions of the CUDA runtime, compiled into programs whose candidates call those."""
    return _PACKAGE / "devices" / "harness" / "guards" / "guards.cpp"


def inline_torch_source() -> Path:
    """What stands for PyTorch's C++ interface before sources of a candidate's extensions."""
    return _PACKAGE / "python_candidates" / "inline_torch.cuh"


def cache_dir() -> Path:
    """Compiled harnesses, candidates and the emulator's core; safe to delete. `KERNELBLASTER_CACHE` moves it.

    Raises MachineError when there is no place for it.
    """
    hint = "set KERNELBLASTER_CACHE to a directory that can be written"
    try:
        base = _cache_base()
        base.mkdir(parents=True, exist_ok=True)
    except RuntimeError as error:
        raise MachineError("this user has no home directory, where caches would lie", hint=hint) from error
    except OSError as error:
        message = f"caches cannot be kept in {base}: {error.strerror}"
        raise MachineError(message, hint=hint) from error
    if os.statvfs(base).f_flag & os.ST_NOEXEC:
        # Otherwise every candidate would be blamed for not starting.
        message = f"{base} is mounted noexec: compiled kernels could not be started"
        raise MachineError(message, hint="set KERNELBLASTER_CACHE to a directory from which programs may run")
    return base


def _cache_base() -> Path:
    chosen, shared = os.environ.get("KERNELBLASTER_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if chosen:
        return Path(chosen)
    return (Path(shared) if shared else Path.home() / ".cache") / "kernelblaster"
