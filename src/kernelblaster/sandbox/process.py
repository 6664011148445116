"""Runs a command that is not trusted: bounded in time, memory, processes, files, output; isolated; without network.

Each command gets a `supervisor` process of its own, a clean environment (an allow-list: no keys), an empty working
directory that is removed afterwards, and the strongest `Isolation` that works here, which is tried once per process.
Its output is drained all the time and only the tail is kept. Knows nothing of CUDA, candidates or verdicts.
"""

from __future__ import annotations

import json
import logging
import os
import select
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Self

import kernelblaster
from kernelblaster.errors import DeviceError, UsageError
from kernelblaster.sandbox.isolation import LEVELS, FileView, Isolation, as_words, bubblewrap_command, plan, weaker
from kernelblaster.sandbox.limits import CommandResult, ExceededLimit, Limits
from kernelblaster.sandbox.specification import Descriptors, IsolationPlan, Specification
from kernelblaster.sandbox.text import printable_lines
from kernelblaster.sandbox.trees import remove_tree

_LOG = logging.getLogger(__name__)
# The interpreter's own modules come first: nothing that is installed beside this package can stand in for them.
_SUPERVISOR = (
    f"import sys; sys.path.append({str(Path(kernelblaster.__file__).parents[1])!r}); "
    "from kernelblaster.sandbox.supervisor import main; main()"
)
STRONGEST_VARIABLE = "KERNELBLASTER_ISOLATION"
"""Environment variable that names the strongest isolation to try."""
ISOLATION_HINT = (
    "install bubblewrap (Debian, Ubuntu: `apt install bubblewrap`) and allow user namespaces "
    "(sysctl user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns=0); "
    "in a container also `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or `--privileged`"
)
_TRYING = threading.Lock()
_TAIL_BYTES = 256 * 1024
_FLOOD_CHECK_S = 0.1
_GRACE_S = 75.0
"""Longer than the supervisor's own patience when killing."""

INHERITED_VARIABLES = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LD_LIBRARY_PATH",
    "CUDA_VISIBLE_DEVICES",
    "CUDA_DEVICE_ORDER",
    "CUDA_MODULE_LOADING",
    "NVIDIA_VISIBLE_DEVICES",
    "NVIDIA_DRIVER_CAPABILITIES",
)
"""The only variables of this process that a command sees. None of them can carry a key."""


def clean_environment(scratch: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The allow-listed variables, a private HOME and TMPDIR, and `extra`."""
    kept = {name: os.environ[name] for name in INHERITED_VARIABLES if name in os.environ}
    return {**kept, "HOME": str(scratch), "TMPDIR": str(scratch), **(extra or {})}


class Scratch:
    """A private empty directory, removed with all its contents on exit. `parent` picks the file system."""

    PREFIX = "kernelblaster-"
    """Begins the name of each."""

    def __init__(self, parent: Path | None = None) -> None:
        self.path = Path(mkdtemp(prefix=self.PREFIX, dir=parent))

    def __enter__(self) -> Path:
        return self.path

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove it; what cannot be removed is left to the system's cleaning of temporary files."""
        remove_tree(self.path)


class _Tail:
    """Drains a pipe on a thread of its own; keeps the last bytes and counts all of them."""

    def __init__(self, descriptor: int, limit: int) -> None:
        self._descriptor = descriptor
        self._limit = limit
        self._kept = bytearray()
        self.total = 0
        self.flooded = threading.Event()
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        while data := os.read(self._descriptor, 1 << 16):
            self.total += len(data)
            self._kept += data
            del self._kept[:-_TAIL_BYTES]
            if self.total > self._limit:
                self.flooded.set()
                break
        # Closed under the feet of a writer that does not stop: SIGPIPE ends it.
        os.close(self._descriptor)

    def finish(self) -> str:
        """Wait for the end of the pipe; the tail as printable text."""
        self._thread.join(_GRACE_S)
        return printable_lines(bytes(self._kept))


class SandboxedProcess:
    """A running command. Always `close` it (or use it as a context manager): that kills what is left of it.

    Args:
        argv: the command; its first word is an absolute path.
        cwd: working directory, usually a `Scratch`.
        environment: the complete environment.
        view: what it sees beside the system, `cwd` and its own program.
        pass_fds: descriptors the command inherits; the caller closes its own copies.
        stdin: a descriptor that becomes its standard input, a socket for instance; without one it reads nothing.

    Raises:
        DeviceError: the supervisor cannot be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        environment: Mapping[str, str],
        limits: Limits,
        view: FileView | None = None,
        pass_fds: Sequence[int] = (),
        stdin: int | None = None,
    ) -> None:
        argv = [str(word) for word in argv]
        self._started = time.monotonic()
        self._limits = limits
        self._exceeded: ExceededLimit | None = None
        self._outcome: CommandResult | None = None
        self._refused: str | None = None
        self._status, status_write = os.pipe()
        control_read, self._control = os.pipe()
        output_read, output_write = os.pipe()
        shown = FileView(readable=(Path(argv[0]),)) | (view or FileView())
        descriptors = Descriptors(control=control_read, status=status_write, command_only=list(pass_fds))
        specification: Specification = {**_isolation_plan(limits, shown, cwd), **descriptors}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _SUPERVISOR, json.dumps(specification), *argv],
                cwd=cwd,
                env=dict(environment),
                stdin=subprocess.DEVNULL if stdin is None else stdin,
                stdout=output_write,
                stderr=output_write,
                start_new_session=True,
                pass_fds=[control_read, status_write, *pass_fds],
            )
        except OSError as error:
            for descriptor in (self._status, self._control, output_read):
                os.close(descriptor)
            raise DeviceError(f"cannot start a process: {error}", hint="check memory and process limits") from error
        finally:
            for descriptor in (status_write, control_read, output_write):
                os.close(descriptor)
        self._tail = _Tail(output_read, limits.output_bytes)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def flooded(self) -> bool:
        """Whether it wrote more than it may."""
        return self._tail.flooded.is_set()

    @property
    def running(self) -> bool:
        """Whether the command, or what supervises it, is still there."""
        return self._outcome is None and self._process.poll() is None

    def wait(self, timeout_s: float) -> CommandResult:
        """Wait for the end; kill it after `timeout_s` seconds or when it floods its output. Raises as `close`."""
        deadline = time.monotonic() + timeout_s
        while self._outcome is None and not self._has_ended(min(deadline - time.monotonic(), _FLOOD_CHECK_S)):
            if time.monotonic() >= deadline or self.flooded:
                self._exceeded = ExceededLimit.OUTPUT if self.flooded else ExceededLimit.TIME
                break
        return self.close()

    def _has_ended(self, within_s: float) -> bool:
        """Whether everything is dead, or will be within so many seconds: then the supervisor reports, or is gone.

        `Popen.wait` with a timeout looks every 50 ms; this wakes at once.
        """
        poll = select.poll()
        poll.register(self._status, select.POLLIN)
        return bool(poll.poll(max(within_s, 0) * 1e3))

    def close(self) -> CommandResult:
        """Kill whatever is left and collect the outcome. Idempotent.

        Raises DeviceError when it never ran because its isolation could not be set up.
        """
        if self._outcome is None:
            self._outcome = self._finish()
        if self._refused is not None:
            raise DeviceError(f"a process could not be isolated: {self._refused}", hint=ISOLATION_HINT)
        return self._outcome

    def _finish(self) -> CommandResult:
        os.close(self._control)
        if not self._has_ended(_GRACE_S):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        with os.fdopen(self._status, "rb") as pipe:
            report = json.loads(pipe.read() or b"{}")
        self._refused = report.get("refused")
        limit = report.get("limit")
        if self._exceeded is None and limit in (ExceededLimit.MEMORY, ExceededLimit.TASKS, ExceededLimit.DISK):
            self._exceeded = ExceededLimit(limit)
        if self._exceeded is None and self.flooded:
            self._exceeded = ExceededLimit.OUTPUT
        code = report.get("code")
        return CommandResult(
            code=-signal.SIGKILL if code is None else code,
            exceeded=self._exceeded,
            output=self._tail.finish(),
            output_bytes=self._tail.total,
            seconds=time.monotonic() - self._started,
        )


def run(
    argv: Sequence[str],
    *,
    timeout_s: float,
    limits: Limits,
    cwd: Path,
    environment: Mapping[str, str],
    view: FileView | None = None,
) -> CommandResult:
    """Run a command to its end, bounded. Raises DeviceError only when it cannot be started."""
    with SandboxedProcess(argv, cwd=cwd, environment=environment, limits=limits, view=view) as process:
        return process.wait(timeout_s)


def _isolation_plan(limits: Limits, view: FileView, cwd: Path) -> IsolationPlan:
    """What the supervisor is told of limits and isolation."""
    level = limits.isolation or strongest().level
    steps = plan(view, cwd) if level.isolates else []
    wrapper: list[str] = []
    if level is Isolation.BUBBLEWRAP:
        network = not limits.isolate_network
        wrapper = bubblewrap_command(_bubblewrap(), steps, view, cwd, network=network, root=is_administrator())
    return {
        "memory_bytes": limits.memory_bytes,
        "file_bytes": limits.file_bytes,
        "disk_bytes": limits.disk_bytes,
        "tasks": limits.tasks,
        "isolate_network": limits.isolate_network,
        "forks": limits.forks,
        "isolation": level,
        "wrapper": wrapper,
        "steps": [] if level is Isolation.BUBBLEWRAP else as_words(steps),
        "counters": view.counters,
        "cwd": str(cwd),
        "written": [str(path) for path in (cwd, *view.writable)],
    }


def is_administrator() -> bool:
    """Whether this process has CAP_SYS_ADMIN (21) in its effective set."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    effective = next(line.split()[1] for line in status.splitlines() if line.startswith("CapEff:"))
    return bool(int(effective, 16) >> 21 & 1)


def _bubblewrap() -> Path:
    found = shutil.which("bwrap")
    if found is None:
        raise DeviceError("bubblewrap is not installed", hint=ISOLATION_HINT)
    return Path(found)


@dataclass(frozen=True)
class IsolationSupport:
    """What this machine allows.

    Attributes:
        level: the strongest isolation that works.
        network: whether a command can be cut off the network.
        unavailable: stronger levels, and why each does not work.
    """

    level: Isolation
    network: bool
    unavailable: Mapping[Isolation, str]

    def missing(self) -> str:
        """One line: `bubblewrap is not installed; namespaces: Operation not permitted`."""
        return "; ".join(f"{level}: {reason}" for level, reason in self.unavailable.items())


def strongest() -> IsolationSupport:
    """The strongest isolation that works here; tried once per process. Warns, once, when there is none at all.

    Raises UsageError when KERNELBLASTER_ISOLATION names no level.
    """
    with _TRYING:
        return _try_levels()


@cache
def _try_levels() -> IsolationSupport:
    unavailable: dict[Isolation, str] = {}
    for level in _candidates():
        reason = trial(level) if level.isolates else None
        if reason is None:
            break
        unavailable[level] = reason
    found = IsolationSupport(level, _without_network(level), unavailable)
    if not level.isolates:
        _LOG.warning(
            "CANDIDATES ARE NOT ISOLATED: they run under limits, but could read every file that you can read "
            "(%s). Hint: %s",
            found.missing() or f"{STRONGEST_VARIABLE} says so",
            ISOLATION_HINT,
        )
    return found


def _candidates() -> tuple[Isolation, ...]:
    chosen = os.environ.get(STRONGEST_VARIABLE) or LEVELS[0]
    if chosen not in LEVELS:
        raise UsageError(f"{STRONGEST_VARIABLE}={chosen}", hint=f"use one of {', '.join(LEVELS)}")
    return weaker(Isolation(chosen))


def trial(level: Isolation) -> str | None:
    """Why a level does not work here; None when it does: a file elsewhere is out of sight, the system unwritable."""
    script = '! cat "$1" && ! (echo > "$2") && echo > proof'
    with Scratch() as scratch, Scratch() as elsewhere:
        secret, stain = elsewhere / "secret", elsewhere / "stain"
        secret.touch()
        try:
            outcome = run(
                ["/bin/sh", "-c", script, "sh", str(secret), str(stain)],
                timeout_s=30,
                limits=Limits(forks=True, isolation=level),
                cwd=scratch,
                environment=clean_environment(scratch),
            )
        except DeviceError as error:
            return error.message
        if outcome.ok and (scratch / "proof").exists() and not stain.exists():
            return None
    return (outcome.output.strip().splitlines() or [outcome.describe()])[-1]


def _without_network(level: Isolation) -> bool:
    """Whether a command under a level finds no network but a loopback of its own."""
    with Scratch() as scratch:
        outcome = run(
            ["/bin/sh", "-c", "cat /proc/net/dev"],
            timeout_s=30,
            limits=Limits(forks=True, isolation=level),
            cwd=scratch,
            environment=clean_environment(scratch),
        )
    interfaces = [line.split(":")[0].strip() for line in outcome.output.splitlines() if ":" in line]
    return outcome.ok and interfaces == ["lo"]
