"""What a candidate's object file may define and ask for, and what its host code may not do.

A candidate is host code, too. It may define one symbol that others see, the launcher. Where it is contained, files,
processes and threads fail at run time, by whatever name they are asked for: names are hints then, which tell a model
why. Refused are functions that reach into the measurement, the harness itself, and libraries that the run does not
allow. Where a candidate is not contained (a driver that judges itself, a machine without the filter), what it may ask
for is listed in `symbol_allowlist`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from kernelblaster.cuda_source.launcher import names_launcher
from kernelblaster.devices.build.elf import Symbols
from kernelblaster.devices.build.symbols import MOST_NAME, plain_name
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
    "kb_": "the harness",
    "ptxemu_": "the emulated GPU",
    "_ZN6ptxemu": "the emulated GPU",
    "_ZNK6ptxemu": "the emulated GPU",
}
_SYSTEM_CALLS = re.compile(
    r"^\s*[0-9a-f]+:\t(?:[0-9a-f]{2,8} )+\s*\t(syscall|sysenter|int +\$0x80|svc)\b", re.MULTILINE
)
_FORBIDDEN = {
    "moves the profiler's marks": {"cudaProfilerStart", "cudaProfilerStop", "cuProfilerStart", "cuProfilerStop"},
    "changes the device under the harness": {"cudaDeviceReset", "cuDevicePrimaryCtxReset"},
    "runs host functions behind the call": {
        *("cudaLaunchHostFunc", "cudaStreamAddCallback", "cudaGraphAddHostNode", "cudaUserObjectCreate"),
        *("cudaLogsRegisterCallback", "cudaSignalExternalSemaphoresAsync"),
    },
    "reaches into the driver": {"cudaGetExportTable", "cuGetExportTable"},
    "loads code at run time": {"cudaLibraryLoadData", "cudaLibraryLoadFromFile"},
    "opens streams that nothing waits for": {"cudaExecutionCtxStreamCreate", "cudaGreenCtxCreate"},
    "reaches memory of other processes": {"cudaIpcOpenMemHandle", "cudaImportExternalMemory"},
}
"""What a candidate is refused for: it would reach into the measurement, which no filter of system calls prevents."""
_INSTEAD = {
    "runs host functions behind the call": "do their work in the launcher or in a kernel",
    "links OpenMP, which runs host threads": "host code has one thread; pragmas of OpenMP are ignored",
    "runs host threads": "host code has one thread",
    "moves the profiler's marks": "leave them out",
    "opens streams that nothing waits for": "make streams by cudaStreamCreate, and let events join them",
}
"""What honest code does instead."""
_OWN_STREAMS = frozenset(
    {
        *("cudaStreamCreate", "cudaStreamCreateWithFlags", "cudaStreamCreateWithPriority", "cuStreamCreate"),
        *("cuStreamCreateWithPriority", "cuGreenCtxStreamCreate", "cuGetProcAddress"),
    }
)
"""What gives a candidate a stream beside the legacy default one, or a function that does.

Graphs are not among them: launched on the default stream they begin behind what was launched there before, and for
another they need one of these. Neither are `cudaGetDriverEntryPoint` and its kin, which kernels with tensor maps need:
a candidate's go through a guard (`harness/guards`) that hands out no function of streams.
"""
_PER_THREAD = re.compile(r"cu(?:da)?[A-Z]\w*_pt[sd][zs]")
"""Another name of a function: its default stream is that of the thread."""
_CONTAINED = {
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
    "writes files": {"cudaGraphDebugDotPrint", "cudaLogsDumpToFile"},
}
"""What fails in a process that is contained, or reaches nothing outside of it."""
_CONTAINED_PARTS = {
    "6thread15_M_start_thread": "runs host threads",
    "basic_ifstream": "opens files",
    "basic_fstream": "opens files",
    "basic_ofstream": "opens files",
    "basic_filebuf": "opens files",
    "St12__basic_file": "opens files",
    "NSt10filesystem": "opens files",
    "KSt10filesystem": "opens files",
    "ZSt15__fs_": "opens files",
}


def check_symbols(
    candidate: Symbols, harness: Symbols, libraries: Iterable[Library], *, contained: bool
) -> tuple[str, ...]:
    """What a candidate asks for that leads nowhere where it is contained, one line each.

    Args:
        candidate: symbols of its object file.
        harness: symbols of the harness' object file.
        libraries: that it may link.
        contained: whether its host code runs under the system-call filter. Where it does not, functions that are not
            known to be harmless are refused by name.

    Raises:
        BuildFailure: POLICY, naming every symbol that it may not define or ask for.
    """
    requests = _requests(candidate, frozenset(libraries), contained)
    refused = [*_overrides(candidate, harness), *(text for text, wall in requests if wall)]
    if refused:
        raise BuildFailure(
            BuildFailureKind.POLICY, f"the candidate is not only a kernel: {refused[0]}", "\n".join(refused)
        )
    return tuple(text for text, _ in requests)


def own_streams(candidate: Symbols) -> tuple[str, ...]:
    """Functions that an object file asks for to work on streams beside the legacy default one, sorted."""
    return tuple(
        sorted(
            name
            for name in candidate.undefined
            if plain_name(name) in _OWN_STREAMS or (len(name) <= MOST_NAME and _PER_THREAD.fullmatch(name))
        )
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


def _requests(candidate: Symbols, libraries: frozenset[Library], contained: bool) -> list[tuple[str, bool]]:
    """What it asks for that deserves a word, and whether that is refused."""
    found = []
    for name in sorted(candidate.undefined):
        reason, wall = _objection(name, libraries)
        if reason is None and not contained and not (is_allowed(name) or names_launcher(name)):
            reason = "asks for a function that no kernel needs"
        if reason is not None:
            instead = f": {_INSTEAD[reason]}" if reason in _INSTEAD else ""
            found.append((f"it {reason} ({name}){instead}", wall or not contained))
    return found


def _objection(name: str, libraries: frozenset[Library]) -> tuple[str | None, bool]:
    """What a function is asked for in a reward hack, and whether the filter of system calls does not help there."""
    plain = plain_name(name)
    for table, wall in ((_FORBIDDEN, True), (_CONTAINED, False)):
        for reason, names in table.items():
            if name in names or plain in names:
                return reason, wall
    for prefix, library in _LIBRARY_PREFIXES.items():
        if name.startswith(prefix) and library not in libraries:
            return f"links {library}, which this run does not allow", True
    for prefix, what in _FORBIDDEN_PREFIXES.items():
        if name.startswith(prefix):
            return f"links {what}", True
    for part, reason in _CONTAINED_PARTS.items():
        if part in name:
            return reason, False
    return None, False
