"""Names in object files: which of them go through a guard, which is the launcher, what they read as.

Which symbols a candidate may have is not decided here (`policy.CandidatePolicy`).
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from kernelblaster.cuda_source.launcher import LAUNCHER, is_global_launcher
from kernelblaster.devices.build.elf import Symbols
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.errors import DeviceError

GUARDED = frozenset(
    {
        "cudaStreamCreateWithFlags",
        "cudaStreamCreateWithPriority",
        "cudaGetDriverEntryPoint",
        "cudaGetDriverEntryPointByVersion",
    }
)
"""Functions that candidates call through `harness/guards`, which forbids some of their uses."""
_VERSION_SUFFIX = re.compile(r"(?<=[a-z])(?:_v\d+|_pt[sd][zs])+$")


def demangle(toolchain: Toolchain, names: Sequence[str]) -> list[str]:
    """Readable names, in order."""
    if not names:
        return []
    found = _tool([str(toolchain.cxxfilt)], "\n".join(names)).splitlines()
    return found if len(found) == len(names) else list(names)


def _tool(argv: list[str], text: str | None = None) -> str:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DeviceError(f"{argv[0]} failed: {done.stderr.strip()[-500:]}", hint="check binutils")
    return done.stdout


def plain_name(symbol: str) -> str:
    """A function's name without the ending that names another version of it, or the per-thread default stream."""
    return _VERSION_SUFFIX.sub("", symbol)


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
