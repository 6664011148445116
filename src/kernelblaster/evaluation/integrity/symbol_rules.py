"""What a candidate's object file may define and ask for, and what its host code may not do.

A candidate is host code, too: its object is linked into the harness. It may define one symbol that others
see, the launcher. What it may ask for is listed: the CUDA runtime, the C++ language and library, and those functions
of the C library that only compute, allocate, print and tell the time. Anything else is refused by name, and what only
a reward hack needs with its reason: other processes, files, dynamic loading, host threads, signal handlers, the
environment, the profiler's marks, the harness itself, system calls of its own, or a library that the run does not
allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelblaster.cuda_source.launcher import names_launcher
from kernelblaster.devices.build.symbols import Symbols, plain_name
from kernelblaster.devices.facts import Library
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.evaluation.integrity.symbol_allowlist import is_allowed

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
_REASON_OF = {name: reason for reason, names in _FORBIDDEN.items() for name in names}


def check_symbols(candidate: Symbols, harness: Symbols, libraries: Iterable[Library]) -> None:
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
    reason = _REASON_OF.get(name) or _REASON_OF.get(plain_name(name))
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
