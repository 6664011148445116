"""Names in object files: which of them go through a guard, which is the launcher, what they read as.

Which symbols a candidate may have is not decided here (`policy.CandidatePolicy`).
"""

from __future__ import annotations

import re
import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from tempfile import TemporaryFile

from kernelblaster.cuda_source.launcher import LAUNCHER, is_global_launcher
from kernelblaster.devices.build.elf import Symbols
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.sandbox.isolation import FileView, SystemView
from kernelblaster.sandbox.limits import Limits
from kernelblaster.sandbox.process import SandboxedProcess, Scratch, clean_environment

GUARDED = frozenset(
    {
        "cudaStreamCreateWithFlags",
        "cudaStreamCreateWithPriority",
        "cudaGetDriverEntryPoint",
        "cudaGetDriverEntryPointByVersion",
        "cudaSetDeviceFlags",
        "cudaInitDevice",
        "omp_get_max_threads",
        "omp_get_num_procs",
        "omp_get_num_threads",
        "omp_get_thread_num",
        "omp_get_wtime",
        "omp_set_num_threads",
    }
)
"""Functions that candidates call through `harness/guards`, which forbids some of their uses.

Pragmas of OpenMP are comments to the compiler here, for host code runs on one thread: its functions say so.
"""
MOST_NAME = 2000
"""Characters of a name that are shown; those of templates are long."""
_NAMES_S = 10.0
_USUAL_NAMES = 1000
"""Characters of all names of a usual candidate together."""
_BOUNDS = {resource.RLIMIT_AS: 1 << 29, resource.RLIMIT_CPU: 5, resource.RLIMIT_FSIZE: 1 << 20, resource.RLIMIT_CORE: 0}
_NAME_LIMITS = Limits(
    memory_bytes=2 << 30, file_bytes=1 << 20, disk_bytes=16 << 20, tasks=16, output_bytes=1 << 20, forks=True
)
_VERSION_SUFFIX = re.compile(r"(?<=[a-z])(?:_v\d+|_pt[sd][zs])+$")


def demangle(toolchain: Toolchain, names: Sequence[str]) -> list[str]:
    """Readable names, in order, shortened where they are long; as they are where c++filt does not read them.

    A candidate chose the names: one of 200 characters may stand for gigabytes. So c++filt is bounded; what is longer
    than names of usual kernels it reads in a sandbox, as compilers run, which takes a tenth of a second.
    """
    if not any(name.startswith("_Z") for name in names):
        return [shortened(name) for name in names]
    usual = sum(map(len, names)) <= _USUAL_NAMES
    found = (_bounded if usual else _sandboxed)(toolchain, names)
    return [shortened(name) for name in (found if len(found) == len(names) else names)]


def _bounded(toolchain: Toolchain, names: Sequence[str]) -> list[str]:
    """What c++filt prints, a line for each name; nothing where it fails."""
    with TemporaryFile() as printed:
        process = subprocess.Popen(
            [str(toolchain.cxxfilt)],
            stdin=subprocess.PIPE,
            stdout=printed,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C"},
        )
        try:
            for what, most in _BOUNDS.items():  # it waits for its first name meanwhile
                resource.prlimit(process.pid, what, (most, most))
            process.communicate("\n".join(names).encode("ascii", "replace"), timeout=_NAMES_S)
        except (ProcessLookupError, subprocess.TimeoutExpired):
            return []
        finally:
            process.kill()
            process.wait()
        printed.seek(0)
        return printed.read().decode("ascii", "replace").splitlines() if process.returncode == 0 else []


def _sandboxed(toolchain: Toolchain, names: Sequence[str]) -> list[str]:
    """As `_bounded`; the tail alone where it prints more than the sandbox keeps."""
    with Scratch() as scratch:
        (scratch / "names").write_text("\n".join(names), encoding="ascii", errors="replace")
        with (
            (scratch / "names").open("rb") as given,
            SandboxedProcess(
                [str(toolchain.cxxfilt)],
                limits=_NAME_LIMITS,
                cwd=scratch,
                environment=clean_environment(scratch, {"LC_ALL": "C"}),
                view=FileView(readable=toolchain.directories, system=SystemView.TOOLS),
                stdin=given.fileno(),
            ) as process,
        ):
            outcome = process.wait(_NAMES_S)
    return outcome.output.splitlines() if outcome.ok else []


def shortened(name: str) -> str:
    """A name with its middle left out where it is longer than anybody reads."""
    if len(name) <= MOST_NAME:
        return name
    half = MOST_NAME // 2 - 2
    return f"{name[:half]}...{name[-half:]}"


def plain_name(symbol: str) -> str:
    """A function's name without the ending that names another version of it, or the per-thread default stream."""
    # No function has such a long name, and the time that this takes grows with the square of the length.
    return symbol if len(symbol) > MOST_NAME else _VERSION_SUFFIX.sub("", symbol)


def guarded(symbols: Symbols) -> dict[str, str]:
    """Names under which an object file asks for guarded functions -> the functions."""
    return {name: plain for name in symbols.undefined if (plain := plain_name(name)) in GUARDED}


@dataclass(frozen=True)
class LauncherMatch:
    """How the candidate's launcher becomes the one that the harness calls.

    Attributes:
        symbol: the name it is defined under.
        wanted: the name the harness asks for.
    """

    symbol: str
    wanted: str


def match_launcher(toolchain: Toolchain, candidate: Symbols, wanted: str, declaration: str) -> LauncherMatch:
    """Find the candidate's launcher.

    The exact C++ signature is taken; so is C linkage, and one that differs only in what the pointers point to
    (`const void*`, `__half*`) or in the spelling of a 64-bit integer: the calling convention is the same.

    Raises:
        BuildFailure: LINK, with the declaration that the harness calls and what was found instead.
    """
    if wanted in candidate.defined:
        return LauncherMatch(wanted, wanted)
    if LAUNCHER in candidate.defined:
        return LauncherMatch(LAUNCHER, wanted)
    named = sorted(name for name in candidate.defined if is_global_launcher(name))
    expected, *found = demangle(toolchain, [wanted, *named])
    for name, signature in zip(named, found, strict=True):
        if _calling_convention(signature) == _calling_convention(expected):
            return LauncherMatch(name, wanted)
    reason = (
        f"{LAUNCHER} has the wrong signature: expected `{declaration}`, found `{'`, `'.join(found)}`"
        if found
        else f"{LAUNCHER} is not defined: expected `{declaration}`"
    )
    raise BuildFailure(BuildFailureKind.LINK, reason, reason)


def _calling_convention(signature: str) -> list[str]:
    """Kinds of the parameters of a demangled function, as far as the x86-64 and AArch64 ABIs tell them apart."""
    parameters = re.sub(r"^[^(]*\((.*)\)$", r"\1", signature)
    kinds = []
    for parameter in parameters.split(","):
        words = parameter.replace("const", "").strip()
        if words.endswith("*"):
            kinds.append("pointer")
        elif words in ("long", "long long", "unsigned long", "unsigned long long"):
            kinds.append("int64")
        else:
            kinds.append(words)
    return kinds
