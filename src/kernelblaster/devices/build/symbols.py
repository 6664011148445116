"""What a candidate's object file defines and asks for, and which of it the policy allows.

A candidate is host code, too: its object is linked into the driver program. It may define one symbol that others
see, the launcher. What it may ask for is listed: the CUDA runtime, the C++ language and library, and those functions
of the C library that only compute, allocate, print and tell the time. Anything else is refused by name, and what only
a reward hack needs with its reason: other processes, files, dynamic loading, host threads, signal handlers, the
environment, the profiler's marks, the harness itself, system calls of its own, or a library that the run does not
allow.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelblaster.cuda_source.launcher import LAUNCHER, is_global_launcher, names_launcher
from kernelblaster.devices.build.symbol_allowlist import is_allowed
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.facts import Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.errors import DeviceError

_LIBRARY_PREFIXES = {"cublas": Library.CUBLAS, "cudnn": Library.CUDNN}
_FORBIDDEN_PREFIXES = {
    "cusparse": "the cuSPARSE library",
    "cusolver": "the cuSOLVER library",
    "cufft": "the cuFFT library",
    "curand": "the cuRAND host library",
    "nvrtc": "run-time compilation",
    "nccl": "the NCCL library",
    "npp": "the NPP library",
    "Py": "Python",
    "_ZN2at": "libtorch",
    "_ZN3c10": "libtorch",
    "_ZN5torch": "libtorch",
    "_ZN2kb": "the harness",
    "_ZNK2kb": "the harness",
    "_ZTIN2kb": "the harness",
    "_ZTVN2kb": "the harness",
    "GOMP_": "OpenMP, which runs host threads",
}
_SYSTEM_CALLS = re.compile(
    r"^\s*[0-9a-f]+:\t(?:[0-9a-f]{2,8} )+\s*\t(syscall|sysenter|int +\$0x80|svc)\b", re.MULTILINE
)
_FORBIDDEN = {
    "loads libraries at run time": {"dlopen", "dlsym", "dlvsym", "dlmopen", "dladdr", "dl_iterate_phdr"},
    "starts processes": {
        *("system", "popen", "fork", "vfork", "clone", "execl", "execle", "execlp", "execv", "execve", "execvp"),
        *("execvpe", "fexecve", "posix_spawn", "posix_spawnp", "daemon", "unshare", "setns"),
    },
    "reaches into processes": {
        *("ptrace", "process_vm_readv", "process_vm_writev", "kill", "killpg", "tgkill", "syscall", "prctl"),
        *("mprotect", "pkey_mprotect", "sigaction", "signal", "sigprocmask", "pthread_sigmask", "setitimer"),
        *("__libc_start_main", "personality"),
    },
    "runs host threads": {"pthread_create", "thrd_create"},
    "opens files or sockets": {
        *("open", "open64", "openat", "openat64", "creat", "fopen", "fopen64", "freopen", "fdopen", "mmap", "mmap64"),
        *("opendir", "readlink", "dup", "dup2", "dup3", "socket", "connect", "bind", "accept", "memfd_create"),
        *("shm_open", "unlink", "rename", "chmod", "truncate", "ftruncate", "mkstemp", "sendto", "write", "read"),
    },
    "reads the environment": {"getenv", "secure_getenv", "environ", "__environ", "setenv", "putenv", "getauxval"},
    "moves the profiler's marks": {"cudaProfilerStart", "cudaProfilerStop", "cuProfilerStart", "cuProfilerStop"},
    "changes the device under the harness": {"cudaDeviceReset", "cuDevicePrimaryCtxReset"},
    "runs host functions behind the call": {"cudaLaunchHostFunc", "cudaStreamAddCallback", "cudaGraphAddHostNode"},
    "writes files": {"cudaGraphDebugDotPrint"},
    "loads code at run time": {"cudaLibraryLoadData", "cudaLibraryLoadFromFile"},
    "opens streams that nothing waits for": {"cudaExecutionCtxStreamCreate", "cudaGreenCtxCreate"},
    "reaches memory of other processes": {"cudaIpcOpenMemHandle", "cudaImportExternalMemory"},
}
_FORBIDDEN_PARTS = {
    "6thread15_M_start_thread": "runs host threads",
    "basic_ifstream": "opens files",
    "basic_fstream": "opens files",
    "basic_ofstream": "opens files",
    "basic_filebuf": "opens files",
    "NSt10filesystem": "opens files",
    "KSt10filesystem": "opens files",
    "ZSt15__fs_": "opens files",
}
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
"""Endings that name another version, or the per-thread default stream, of a runtime function."""
_REASON_OF = {name: reason for reason, names in _FORBIDDEN.items() for name in names}


@dataclass(frozen=True)
class Symbols:
    """Symbols of one object file, mangled."""

    defined: frozenset[str]
    """Global, weak and unique definitions."""
    strong: frozenset[str]
    """The global ones among them."""
    undefined: frozenset[str]


def list_symbols(toolchain: Toolchain, path: str) -> list[str]:
    """The command that lists the symbols of an object file for `parse_symbols`."""
    return [str(toolchain.nm), "--format=posix", "--no-sort", path]


def read_symbols(toolchain: Toolchain, path: str) -> Symbols:
    """Symbols of an object file that nobody need be fenced off from. Raises DeviceError when nm fails."""
    return parse_symbols(_tool(list_symbols(toolchain, path)))


def parse_symbols(text: str) -> Symbols:
    """Symbols in what `list_symbols` prints."""
    defined, strong, undefined = set(), set(), set()
    for line in text.splitlines():
        name, kind = line.split()[:2]
        if kind in "Uvw":
            undefined.add(name)
        elif kind.isupper() or kind in "ui":
            defined.add(name)
            if kind not in "WV":
                strong.add(name)
    return Symbols(frozenset(defined), frozenset(strong), frozenset(undefined))


def demangle(toolchain: Toolchain, names: Sequence[str]) -> list[str]:
    """Readable names, in order."""
    if not names:
        return []
    return _tool([str(toolchain.cxxfilt)], "\n".join(names)).splitlines()


def _tool(argv: list[str], text: str | None = None) -> str:
    done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DeviceError(f"{argv[0]} failed: {done.stderr.strip()[-500:]}", hint="check binutils")
    return done.stdout


def check_policy(candidate: Symbols, harness: Symbols, libraries: Iterable[Library]) -> None:
    """Raise BuildFailure (POLICY) naming every symbol that a candidate may not define or ask for."""
    complaints = [*_overrides(candidate, harness), *_requests(candidate, frozenset(libraries))]
    if complaints:
        raise BuildFailure(
            BuildFailureKind.POLICY, f"the candidate is not only a kernel: {complaints[0]}", "\n".join(complaints)
        )


def check_instructions(disassembly: str) -> None:
    """Raise BuildFailure (POLICY) when host code, as `objdump -d` shows it, makes system calls of its own."""
    found = _SYSTEM_CALLS.search(disassembly)
    if found:
        raise BuildFailure(
            BuildFailureKind.POLICY, f"the candidate is not only a kernel: it makes system calls ({found[1]})"
        )


def guarded(symbols: Symbols) -> dict[str, str]:
    """Names under which an object file asks for guarded functions -> the functions."""
    return {name: plain for name in symbols.undefined if (plain := _VERSION_SUFFIX.sub("", name)) in GUARDED}


def _overrides(candidate: Symbols, harness: Symbols) -> list[str]:
    """Strong definitions that would stand in for the program's, the runtime's or the C library's."""
    taken = {name for name in candidate.strong if name in harness.undefined or name in harness.strong or name == "main"}
    runtime = {name for name in candidate.strong if re.match(r"_{0,2}cuda[A-Z]", name)}
    overriding = {name for name in taken | runtime if not names_launcher(name)}
    return [f"it defines {name}, which is not its own" for name in sorted(overriding)]


def _requests(candidate: Symbols, libraries: frozenset[Library]) -> list[str]:
    complaints = []
    for name in sorted(candidate.undefined):
        reason = _reason_to_refuse(name, libraries)
        if reason is not None:
            complaints.append(f"it {reason} ({name})")
    return complaints


def _reason_to_refuse(name: str, libraries: frozenset[Library]) -> str | None:
    reason = _REASON_OF.get(name) or _REASON_OF.get(_VERSION_SUFFIX.sub("", name))
    if reason is not None:
        return reason
    for prefix, library in _LIBRARY_PREFIXES.items():
        if name.startswith(prefix) and library not in libraries:
            return f"links {library}, which this run does not allow"
    for prefix, what in _FORBIDDEN_PREFIXES.items():
        if name.startswith(prefix):
            return f"links {what}"
    for part, reason in _FORBIDDEN_PARTS.items():
        if part in name:
            return reason
    if is_allowed(name) or names_launcher(name):
        return None
    return "asks for a function that no kernel needs"


@dataclass(frozen=True)
class LauncherMatch:
    """How the candidate's launcher becomes the one that the driver calls.

    Attributes:
        symbol: the name it is defined under.
        wanted: the name the driver asks for.
    """

    symbol: str
    wanted: str


def match_launcher(toolchain: Toolchain, candidate: Symbols, wanted: str, declaration: str) -> LauncherMatch:
    """Find the candidate's launcher.

    The exact C++ signature is taken; so is C linkage, and one that differs only in what the pointers point to
    (`const void*`, `__half*`) or in the spelling of a 64-bit integer: the calling convention is the same.

    Raises:
        BuildFailure: LINK, with the declaration that the driver calls and what was found instead.
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
