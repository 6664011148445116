"""Runs one untrusted command under limits and leaves nothing of it behind. Started by `sandbox`, never imported.

A process of its own, so that limits are set without forking a threaded parent, and so that it can adopt
(`PR_SET_CHILD_SUBREAPER`) and kill whatever the command forks, also children that leave its process group.
It watches what resource limits do not cover for CUDA programs: CUDA reserves terabytes of address space, so memory
is counted as resident anonymous memory; processes and threads are counted because RLIMIT_NPROC does not bind root.
A command that has no business forking is forbidden to (seccomp), so that killing it is killing all of it.

    supervisor.py SPECIFICATION COMMAND [ARGUMENT...]

The JSON specification gives limits and two inherited descriptors: `control`, whose end of file means that nobody
waits any more, and `status`, to which one JSON object is written when everything is dead. Standard library only.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import json
import os
import platform
import resource
import select
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable, Iterator

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_THREAD = 0x00010000
_TICK_S = 0.05
_KILL_S = 60.0
_EXEC_FAILED = 127

_libc = ctypes.CDLL(None, use_errno=True)


def _children(pid: int) -> Iterator[int]:
    try:
        tasks = os.listdir(f"/proc/{pid}/task")
    except OSError:
        return
    for task in tasks:
        try:
            with open(f"/proc/{pid}/task/{task}/children") as file:
                yield from map(int, file.read().split())
        except OSError:
            continue


def descendants(pid: int, at_most: int) -> list[int]:
    """Processes below `pid`, parents first; stops looking when more than `at_most` are found."""
    found: list[int] = []
    queue = [pid]
    while queue and len(found) <= at_most:
        below = list(_children(queue.pop()))
        found += below
        queue += below
    return found


def _usage(pid: int) -> tuple[int, int]:
    """Anonymous resident bytes and threads of a process; zeros once it is gone."""
    fields = {}
    try:
        with open(f"/proc/{pid}/status") as file:
            for line in file:
                key, _, value = line.partition(":")
                fields[key] = value.split()
    except OSError:
        return 0, 0
    return int(fields.get("RssAnon", ["0"])[0]) * 1024, int(fields.get("Threads", ["1"])[0])


def broken_limit(specification: dict) -> str | None:
    """Name of the limit that the command's processes exceed together, if any."""
    processes = descendants(os.getpid(), specification["tasks"])
    if len(processes) > specification["tasks"]:
        return "tasks"
    usage = [_usage(pid) for pid in processes]
    if sum(threads for _, threads in usage) > specification["tasks"]:
        return "tasks"
    if sum(memory for memory, _ in usage) > specification["memory_bytes"]:
        return "memory"
    return None


def _reap() -> dict[int, int]:
    """Wait statuses of the children that have ended."""
    ended = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status


def kill_descendants(group: int) -> dict[int, int]:
    """Kill everything below this process, the command's process group first. Returns the wait statuses."""
    ended = {}
    deadline = time.monotonic() + _KILL_S
    while time.monotonic() < deadline:
        # One system call reaches the whole group at once: nothing in it can fork faster than it is killed.
        _signal(os.killpg, group)
        ended.update(_reap())
        alive = descendants(os.getpid(), at_most=10_000)
        if not alive:
            break
        for pid in alive:
            _signal(os.kill, pid)
        time.sleep(0.001)
    ended.update(_reap())
    return ended


def _signal(send: Callable[[int, int], None], target: int) -> None:
    try:
        send(target, signal.SIGKILL)
    except ProcessLookupError:
        return


def isolate_network() -> bool:
    """Move this process to an empty network namespace with a loopback of its own. False where refused."""
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWNET) != 0:
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            return False
        for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    # Profilers talk to the program over loopback.
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interface:
        fcntl.ioctl(interface, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))
    return True


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


_NO_CALL = 0xFFFFFFFF
_SYSTEM_CALLS = {
    # machine: (audit architecture, seccomp, clone, clone3, fork, vfork, first call number of another ABI)
    "x86_64": (0xC000003E, 317, 56, 435, 57, 58, 0x40000000),
    "aarch64": (0xC00000B7, 277, 220, 435, _NO_CALL, _NO_CALL, _NO_CALL),
}


def forbid_forks() -> bool:
    """Let this process make threads, and no processes, from now on. False where the kernel refuses."""
    if platform.machine() not in _SYSTEM_CALLS:
        return False
    architecture, seccomp, clone, clone3, fork, vfork, foreign = _SYSTEM_CALLS[platform.machine()]
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000
    lines = [
        (load, 0, 0, 4),  # the architecture of the call
        (equal, 0, 8, architecture),
        (load, 0, 0, 0),  # its number
        (at_least, 6, 0, foreign),
        (equal, 5, 0, fork),
        (equal, 4, 0, vfork),
        (equal, 4, 0, clone3),  # its flags lie in memory, out of a filter's sight: libc falls back to clone
        (equal, 0, 4, clone),
        (load, 0, 0, 16),  # the flags of clone
        (any_bit, 2, 0, _CLONE_THREAD),
        (give, 0, 0, refuse | errno.EPERM),
        (give, 0, 0, refuse | errno.ENOSYS),
        (give, 0, 0, allow),
    ]
    program = _Program(len(lines), (_Instruction * len(lines))(*(_Instruction(*line) for line in lines)))
    if _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    set_filter, keep_speculation = 1, 4
    return _libc.syscall(seccomp, set_filter, keep_speculation, ctypes.byref(program)) == 0


def _become_command(specification: dict, command: list[str]) -> None:
    """In the forked child: limits, isolation, exec. Does not return."""
    _lead_group(0)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if specification["isolate_network"]:
        isolate_network()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (specification["file_bytes"],) * 2)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    for name in ("control", "status"):
        os.close(specification[name])
    if not specification["forks"]:
        forbid_forks()
    try:
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(_EXEC_FAILED)


def _lead_group(pid: int) -> None:
    """Give the command a process group of its own. Done on both sides of the fork, so that neither has to wait."""
    try:
        os.setpgid(pid, pid)
    except (PermissionError, ProcessLookupError):
        return  # it has executed its command already, after doing the same


def _watch(specification: dict, child: int, wake: int) -> tuple[int | None, str | None]:
    """Until the command ends or breaks a limit: its wait status, or the reason to kill it."""
    while True:
        ended = _reap()
        if child in ended:
            return ended[child], None
        reason = broken_limit(specification)
        if reason is not None:
            return None, reason
        ready, _, _ = select.select([specification["control"], wake], [], [], _TICK_S)
        if specification["control"] in ready:
            return None, "abandoned"
        if wake in ready:
            os.read(wake, 4096)


def main(specification: dict, command: list[str]) -> None:
    """Run `command`, kill what it leaves, report how it ended."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1)
    _libc.prctl(_PR_SET_PDEATHSIG, 0)
    wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    child = os.fork()
    if child == 0:
        _become_command(specification, command)
    _lead_group(child)
    # The supervisor holds no end of the command's pipes: their end of file means that the command is gone.
    os.closerange(0, 3)
    for descriptor in specification["command_only"]:
        os.close(descriptor)
    status, reason = _watch(specification, child, wake)
    ended = kill_descendants(child)
    if status is None:
        status = ended.get(child)
    code = None if status is None else os.waitstatus_to_exitcode(status)
    report = {"code": code, "limit": reason}
    os.write(specification["status"], json.dumps(report).encode())


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
