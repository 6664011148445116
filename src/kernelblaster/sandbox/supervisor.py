"""Runs one untrusted command under limits and leaves nothing of it behind. Started by `sandbox`.

A process of its own, so that limits are set without forking a threaded parent, and so that it can adopt
(`PR_SET_CHILD_SUBREAPER`) and kill whatever the command forks, also children that leave its process group.
It watches what resource limits do not cover for CUDA programs: CUDA reserves terabytes of address space, so memory
is counted as resident anonymous memory; processes and threads are counted because RLIMIT_NPROC does not bind root;
the bytes of all files together because RLIMIT_FSIZE bounds each alone. A command that has no business forking is
forbidden to (seccomp), so that killing it is killing all of it. What isolates it is bubblewrap's, or the namespaces
of `linux_isolation`, whose first process is a fork of this one that does nothing but wait, or Landlock's rules.

    main SPECIFICATION COMMAND [ARGUMENT...]

The JSON specification gives limits and two inherited descriptors: `control`, whose end of file means that nobody
waits any more, and `status`, to which one JSON object is written when everything is dead. Standard library only.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator

from kernelblaster.sandbox.linux_isolation import (
    clone_into_namespaces,
    enter_root,
    forbid_forks,
    give_up_privileges,
    isolate_network,
    libc,
    map_user,
    no_fork_filter,
    raise_loopback,
    restrict_files,
)

# What `typing` names so, without the time to import it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from kernelblaster.sandbox.specification import Specification, SupervisorReport

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_TICK_S = 0.05
_KILL_S = 60.0
_EXEC_FAILED = 127
_SIGNALLED = range(129, 129 + 64)
_MOST_FILES = 20_000
"""Files that a command may have at once; a compiler's working directory holds a hundred."""


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


def _file_bytes(directories: list[str]) -> int | None:
    """Bytes on disk below directories; None when there are too many files to count."""
    total, count, queue = 0, 0, list(directories)
    while queue:
        try:
            with os.scandir(queue.pop()) as entries:
                for entry in entries:
                    count += 1
                    if count > _MOST_FILES:
                        return None
                    if entry.is_dir(follow_symlinks=False):
                        queue.append(entry.path)
                    else:
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        except OSError:
            continue  # removed while it was looked at
    return total


def broken_limit(specification: Specification, guard: int | None) -> str | None:
    """Name of the limit that the command's processes exceed together, if any; the process `guard` is none of them."""
    processes = [pid for pid in descendants(os.getpid(), specification["tasks"] + 1) if pid != guard]
    if len(processes) > specification["tasks"]:
        return "tasks"
    usage = [_usage(pid) for pid in processes]
    if sum(threads for _, threads in usage) > specification["tasks"]:
        return "tasks"
    if sum(memory for memory, _ in usage) > specification["memory_bytes"]:
        return "memory"
    written = _file_bytes(specification["written"])
    if written is None or written > specification["disk_bytes"]:
        return "disk"
    return None


def _reap() -> dict[int, int]:
    """Wait statuses of the children that have ended."""
    ended: dict[int, int] = {}
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


def _bound(specification: Specification) -> None:
    """Set what the kernel itself bounds, and put signals back to what a program expects."""
    libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (specification["file_bytes"],) * 2)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    signal.set_wakeup_fd(-1)
    os.close(specification["control"])
    os.close(specification["status"])


def _execute(command: list[str]) -> None:
    try:
        os.execv(command[0], command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(_EXEC_FAILED)


def _become_command(specification: Specification, command: list[str]) -> None:
    """In the forked child: limits, no privileges, exec. Does not return."""
    _lead_group(0)
    _bound(specification)
    alone = specification["isolate_network"] and isolate_network()
    landlocked, forks = specification["isolation"] == "landlock", specification["forks"]
    if landlocked or not forks:
        give_up_privileges(counters=specification["counters"], isolated=False)
    if landlocked:
        # Profilers need a network of their own to talk over, or else this machine's.
        restrict_files(specification["steps"], network=bool(alone or forks))
    if not forks:
        forbid_forks()
    _execute(command)


def _become_wrapped(specification: Specification, command: list[str]) -> None:
    """In the forked child: limits, then the tool that isolates the command. Does not return."""
    _lead_group(0)
    _bound(specification)
    wrapper = list(specification["wrapper"])
    code = None if specification["forks"] else no_fork_filter()
    if code is not None:
        descriptor = os.memfd_create("filter", 0)
        os.write(descriptor, code)
        os.lseek(descriptor, 0, os.SEEK_SET)
        wrapper += ["--seccomp", str(descriptor)]
    _execute([*wrapper, "--", *command])


def _become_guard(specification: Specification, command: list[str], result: int, user: tuple[int, int] | None) -> None:
    """In the first process of new namespaces: set up the isolation, start the command in it, say how it ended."""
    _lead_group(0)
    try:
        _bound(specification)
        if user is not None:
            map_user(*user)
        if specification["isolate_network"]:
            raise_loopback()
        enter_root(specification["steps"], specification["cwd"])
        give_up_privileges(counters=specification["counters"], isolated=True)
        child = os.fork()
        if child == 0:
            if not specification["forks"]:
                forbid_forks()
            _execute(command)
        _let_go(specification)
        while (ended := os.wait())[0] != child:
            pass
        os.write(result, json.dumps({"status": ended[1]}).encode())
    except OSError as error:
        os.write(result, json.dumps({"refused": _reason(error)}).encode())
    finally:
        os._exit(0)


def _lead_group(pid: int) -> None:
    """Give the command a process group of its own. Done on both sides of the fork, so that neither has to wait."""
    try:
        os.setpgid(pid, pid)
    except (PermissionError, ProcessLookupError):
        return  # it has executed its command already, after doing the same


def _watch(specification: Specification, child: int, guard: int | None, wake: int) -> tuple[int | None, str | None]:
    """Until the command ends or breaks a limit: its wait status, or the reason to kill it."""
    while True:
        ended = _reap()
        if child in ended:
            return ended[child], None
        reason = broken_limit(specification, guard)
        if reason is not None:
            return None, reason
        ready, _, _ = select.select([specification["control"], wake], [], [], _TICK_S)
        if specification["control"] in ready:
            return None, "abandoned"
        if wake in ready:
            os.read(wake, 4096)


def _let_go(specification: Specification) -> None:
    """Hold no end of the command's pipes: their end of file means that the command is gone."""
    os.closerange(0, 3)
    for descriptor in specification["command_only"]:
        os.close(descriptor)


def _reason(error: OSError) -> str:
    return f"{error.filename or 'namespaces'}: {error.strerror}"


def _start(specification: Specification, command: list[str], result: int) -> tuple[int, int | None]:
    """Start the command. Returns the child's number, and that of the guard if the child is one. Raises OSError."""
    if specification["isolation"] == "namespaces":
        user = (os.geteuid(), os.getegid())
        child, mapped = clone_into_namespaces(network=not specification["isolate_network"])
        if child == 0:
            _become_guard(specification, command, result, user if mapped else None)
        return child, child
    child = os.fork()
    if child == 0:
        become = _become_wrapped if specification["isolation"] == "bubblewrap" else _become_command
        become(specification, command)
    return child, None


def _told(result: int) -> SupervisorReport:
    """What the guard has said before it ended; empty when it was killed, or there was none."""
    with os.fdopen(result, "rb") as pipe:
        report: SupervisorReport = json.loads(pipe.read() or b"{}")
    return report


def _exit_code(specification: Specification, status: int | None) -> int | None:
    if status is None:
        return None
    code = os.waitstatus_to_exitcode(status)
    # bubblewrap passes a signal on as a shell does.
    return 128 - code if specification["isolation"] == "bubblewrap" and code in _SIGNALLED else code


def _supervise(specification: Specification, command: list[str]) -> SupervisorReport:
    """Run the command until it ends or is to end, kill what it leaves. Returns the report."""
    wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    result, result_write = os.pipe()
    try:
        child, guard = _start(specification, command, result_write)
    except OSError as error:
        return {"refused": _reason(error)}
    _lead_group(child)
    os.close(result_write)
    _let_go(specification)
    status, reason = _watch(specification, child, guard, wake)
    ended = kill_descendants(child)
    if status is None:
        status = ended.get(child)
    told = _told(result)
    if guard is not None:
        status = told.get("status")
    return {"code": _exit_code(specification, status), "limit": reason, "refused": told.get("refused")}


def main() -> None:
    """Run the command of the arguments under the specification before it; report how it ended."""
    specification, command = json.loads(sys.argv[1]), sys.argv[2:]
    libc().prctl(_PR_SET_CHILD_SUBREAPER, 1)
    libc().prctl(_PR_SET_PDEATHSIG, 0)
    report = _supervise(specification, command)
    os.write(specification["status"], json.dumps(report).encode())
