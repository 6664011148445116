"""Names in object files: which of them go through a guard, which is the launcher, what they read as.

Which symbols a candidate may have is not decided here (`policy.CandidatePolicy`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

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
    }
)
"""Functions that candidates call through `harness/guards`, which forbids some of their uses."""
MOST_NAME = 2000
"""Characters of a name that are shown; those of templates are long."""
_NAMES_S = 10.0
_NAME_LIMITS = Limits(
    memory_bytes=2 << 30, file_bytes=1 << 20, disk_bytes=16 << 20, tasks=16, output_bytes=1 << 20, forks=True
)
_VERSION_SUFFIX = re.compile(r"(?<=[a-z])(?:_v\d+|_pt[sd][zs])+$")


def demangle(toolchain: Toolchain, names: Sequence[str]) -> list[str]:
    """Readable names, in order, shortened where they are long; as they are where c++filt does not read them.

    It runs as compilers do, for a candidate chose the names: one of 200 characters may stand for gigabytes.
    """
    if not any(name.startswith("_Z") for name in names):
        return [shortened(name) for name in names]
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
    found = outcome.output.splitlines()
    read = outcome.ok and len(found) == len(names)  # the tail alone, where they are very long
    return [shortened(name) for name in (found if read else names)]


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
