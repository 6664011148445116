"""Runs a driver program under a tool that wraps it, or by itself, for a fixed list of commands; replies go to a file.

The tools (ncu, compute-sanitizer) start the program themselves, so its replies cannot come through a pipe of ours. The
start of such a program takes about a second; `BatchProgram` starts it early and lets it wait for its commands.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import Candidate, Job
from kernelblaster.devices.build.deferred import startable_program
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.harness.job import job_view, new_nonce, write_job
from kernelblaster.devices.harness.session import (
    LOG_CHARACTERS,
    MAX_REPLY_BYTES,
    fitting,
    process_failure,
    reported_error,
    strip_nonce,
)
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.limits import CommandResult, Limits
from kernelblaster.sandbox.process import SandboxedProcess, Scratch, clean_environment

_POLL_S = 0.01


@dataclass(frozen=True)
class BatchResult:
    """What a program has answered to its list of commands.

    Attributes:
        replies: the reply of each command, without nonce; those to the start and to begun commands left out.
        stdout_tail: the end of what it (and its wrapper) printed.
        returncode: exit status, or minus a signal number.
        failure: why not every command was answered; None when all were.
    """

    replies: tuple[str, ...]
    stdout_tail: str
    returncode: int
    failure: RunFailure | None

    def require(self) -> Self:
        """This result, when every command was answered. Raises RunFailure."""
        if self.failure is not None:
            raise self.failure
        return self


class BatchProgram:
    """A driver program that loads its tensors and then waits for its commands. Starts when entered, dies when left.

    Args:
        candidate: what it calls; where its driver has a program of its own, it is waited for when commands are given.
        job: tensors, sizes, scalars.
        wrapper_argv: a tool that runs the program and passes its standard input on, e.g. ncu with its options.
        env: variables added to the clean environment.
        view: what the processes see beside the program and its tensors.
        limits: bounds of the processes; a wrapper may fork.

    Raises:
        DeviceError: on entering, when no process can be started.
    """

    def __init__(
        self,
        candidate: Candidate,
        job: Job,
        wrapper_argv: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        view: FileView | None = None,
        limits: Limits | None = None,
    ) -> None:
        self._begun = 0
        self._candidate = candidate
        self._job = job
        self._wrapper = tuple(wrapper_argv)
        self._env = env or {}
        self._view = view or FileView()
        bounds = fitting(limits or Limits(), job)
        self._limits = replace(bounds, forks=True) if self._wrapper else bounds
        self._nonce = new_nonce()
        self._exit = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self._part = stack.enter_context(startable_program(self._candidate))
            scratch = stack.enter_context(Scratch())
            write_job(self._job, scratch / "job", self._nonce)
            self._replies = scratch / "replies"
            program = self._part.program
            argv = [*self._wrapper, str(program), str(scratch / "job"), str(self._replies)]
            environment = clean_environment(scratch, self._env)
            view = job_view(program, self._candidate.harness, self._job) | self._part.view | self._view
            self._process = stack.enter_context(
                SandboxedProcess(argv, cwd=scratch, environment=environment, limits=self._limits, view=view, stdin=True)
            )
            self._exit = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def settle(self, timeout_s: float) -> None:
        """Wait until it has loaded its tensors and done what was begun, has ended, or `timeout_s` seconds are over."""
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self._process.running and self._answers() <= self._begun:
            time.sleep(_POLL_S)

    def begin(self, command: str) -> None:
        """Give it a command that nobody waits for, and whose reply is no result."""
        self._send([command])
        self._begun += 1

    def finish(self, commands: Sequence[str], timeout_s: float) -> BatchResult:
        """Give it its commands and wait for its end, at most `timeout_s` seconds. Raises BuildFailure, DeviceError."""
        for command in self._part.rest():
            self.begin(command)
        self._send((*commands, "quit"))
        outcome = self._process.wait(timeout_s)
        return _result(_read_replies(self._replies, self._nonce), self._begun, len(commands), outcome)

    def _send(self, commands: Sequence[str]) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended already; its replies and its exit say why
            self._process.send("".join(f"{command}\n" for command in commands).encode())

    def _answers(self) -> int:
        """Replies so far; the one to the start counts."""
        if not self._replies.is_file() or self._replies.stat().st_size > MAX_REPLY_BYTES:
            return 0
        return self._replies.read_bytes().count(b"\n")


def run_batch(
    candidate: Candidate,
    job: Job,
    commands: Sequence[str],
    wrapper_argv: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    view: FileView | None = None,
    limits: Limits | None = None,
    timeout_s: float,
) -> BatchResult:
    """Run commands in a process of their own. A failing candidate is returned, not raised. Raises DeviceError."""
    with BatchProgram(candidate, job, wrapper_argv, env=env, view=view, limits=limits) as program:
        return program.finish(commands, timeout_s)


def _read_replies(path: Path, nonce: str) -> list[str]:
    """Reply lines of a finished process; none when it never opened the file. Raises RunFailure."""
    if not path.is_file():
        return []
    if path.stat().st_size > MAX_REPLY_BYTES:
        raise RunFailure(RunFailureKind.RUNTIME, "the result channel was flooded")
    prefix = f"{nonce} ".encode()
    return [strip_nonce(line, prefix) for line in path.read_bytes().splitlines()]


def _result(lines: list[str], begun: int, expected: int, outcome: CommandResult) -> BatchResult:
    ready = bool(lines) and lines[0] == "ready"
    replies = tuple(line for line in lines[1 + begun :] if not line.startswith("error "))
    errors = [line for line in lines if line.startswith("error ")]
    failure = None
    if errors:
        failure = reported_error(errors[0], ready=ready, log=outcome.output[-LOG_CHARACTERS:])
    elif not ready or len(replies) < expected or outcome.exceeded is not None:
        failure = process_failure(outcome, ready=ready)
    return BatchResult(replies, outcome.output, outcome.code, failure)
