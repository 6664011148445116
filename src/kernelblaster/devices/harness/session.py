"""Talks to a driver program in a sandboxed process: job file in, reply lines out, every failure typed.

Only a line that begins with the job's nonce is a reply; what a candidate prints, and how its process ends, is
never evidence of success. A failure that the candidate caused is a RunFailure; one of the machine (GPU lost, tensors
that do not fit, a refused job) is a DeviceError.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import CallResult, Candidate, Job, TimingSample
from kernelblaster.devices.build.deferred import startable_program
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.harness.job import job_view, new_nonce, write_job
from kernelblaster.errors import DeviceError, DeviceMemoryFull
from kernelblaster.problems.problem import TensorRole
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.limits import CommandResult, ExceededLimit, Limits
from kernelblaster.sandbox.process import SandboxedProcess, Scratch, clean_environment

DEVICE_LOST = frozenset(
    {
        "cudaErrorDevicesUnavailable",
        "cudaErrorDeviceUninitialized",
        "cudaErrorECCUncorrectable",
        "cudaErrorNoDevice",
        "cudaErrorInvalidDevice",
        "cudaErrorInsufficientDriver",
        "cudaErrorInitializationError",
        "cudaErrorSystemDriverMismatch",
        "cudaErrorSystemNotReady",
        "cudaErrorCompatNotSupportedOnDevice",
        "cudaErrorNvlinkUncorrectable",
        "cudaErrorContained",
        "cudaErrorMpsConnectionFailed",
        "cudaErrorUnsupportedPtxVersion",
        "cudaErrorNoKernelImageForDevice",
    }
)
"""CUDA errors that say something of the machine, not of the candidate."""

_NOT_EMULATABLE = "kbErrorNotEmulatable"
MAX_REPLY_BYTES = 16 << 20
"""Longest line, and longest file, of replies."""
LOG_CHARACTERS = 8_000
"""Kept of what a failed program printed."""


class ReplyReader:
    """Reads reply lines from a pipe, within a deadline and a bounded size."""

    def __init__(self, descriptor: int, nonce: str) -> None:
        self._descriptor = descriptor
        self._prefix = f"{nonce} ".encode()
        self._buffer = bytearray()

    def next(self, deadline: float) -> str | None:
        """The next reply without its nonce; None at the end of the pipe.

        Raises:
            TimeoutError: `deadline` (time.monotonic) passed.
            RunFailure: a line without the nonce, or an endless one: somebody else writes to the pipe.
        """
        while b"\n" not in self._buffer:
            if len(self._buffer) > MAX_REPLY_BYTES:
                raise RunFailure(RunFailureKind.RUNTIME, "an endless line came over the result channel")
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._descriptor], [], [], left)[0]:
                raise TimeoutError
            data = os.read(self._descriptor, 1 << 16)
            if not data:
                return None
            self._buffer += data
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return strip_nonce(line, self._prefix)


def strip_nonce(line: bytes, prefix: bytes) -> str:
    """A reply without its nonce. Raises RunFailure when the line does not begin with it."""
    if not line.startswith(prefix):
        raise RunFailure(RunFailureKind.RUNTIME, "a line without the job's nonce came over the result channel")
    return line[len(prefix) :].decode(errors="replace")


class ProcessSession:
    """A driver process that answers commands one by one. Starts when entered, dies when left.

    Args:
        candidate: what it calls; it is waited for where its driver has no program of its own, else when that is ready.
        job: tensors, sizes, scalars.
        env: variables added to the clean environment.
        view: what the program sees beside itself and its tensors.
        limits: bounds of the process; the largest output always fits `file_bytes`.
        timeout_s: bound of each request, the start included.
        flush_bytes: memory written before each timed call, to empty the L2 cache; 0 for none.
    """

    def __init__(
        self,
        candidate: Candidate,
        job: Job,
        *,
        env: Mapping[str, str] | None = None,
        view: FileView | None = None,
        limits: Limits | None = None,
        timeout_s: float,
        flush_bytes: int = 0,
    ) -> None:
        self._candidate = candidate
        self._job = job
        self._env = env or {}
        self._view = view or FileView()
        self._limits = fitting(limits or Limits(), job)
        self._timeout_s = timeout_s
        self._flush_bytes = flush_bytes
        self._exit = contextlib.ExitStack()
        self._ready = False

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            part = stack.enter_context(startable_program(self._candidate))
            scratch = stack.enter_context(Scratch())
            nonce = new_nonce()
            write_job(self._job, scratch / "job", nonce)
            reply_read, reply_write = os.pipe()
            stack.callback(os.close, reply_read)
            try:
                self._process = SandboxedProcess(
                    [str(part.program), str(scratch / "job"), f"/dev/fd/{reply_write}"],
                    cwd=scratch,
                    environment=clean_environment(scratch, self._env),
                    limits=self._limits,
                    view=job_view(part.program, self._candidate.harness, self._job) | part.view | self._view,
                    pass_fds=(reply_write,),
                    stdin=True,
                )
            finally:
                os.close(reply_write)
            stack.enter_context(self._process)
            self._replies = ReplyReader(reply_read, nonce)
            self._expect("ready")
            # The process has read it; the nonce need not lie around while the candidate runs.
            (scratch / "job").unlink(missing_ok=True)
            self._ready = True
            for command in part.rest():
                self._request(command, "loaded")
            self._exit = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def call(self, poison: int) -> CallResult:
        """Fill outputs with byte `poison` (0-255), call, write the outputs. Raises RunFailure, DeviceError."""
        return CallResult(mutated_inputs=tuple(self._request(f"call {poison}", "called")))

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """Time a call per perturbation, each with a cold L2 and behind the cover. Raises RunFailure, DeviceError."""
        if not perturbations:
            return []
        numbers = " ".join(map(str, perturbations))
        began = time.perf_counter()
        count, *words = self._request(f"time {self._flush_bytes} {cover_fills} {numbers}", "timed")
        judge_us = 1e6 * (time.perf_counter() - began) / len(perturbations)
        values = [float(word) for word in words]
        if int(count) != len(perturbations) or len(values) != 3 * len(perturbations):
            raise RunFailure(
                RunFailureKind.RUNTIME, f"{len(perturbations)} calls were to be timed, {count} were answered"
            )
        clocks = zip(values[0::3], values[1::3], values[2::3], strict=True)
        return [
            TimingSample(device_us, host_us, enqueue_us, judge_us=judge_us) for device_us, host_us, enqueue_us in clocks
        ]

    def fetch(self) -> CallResult:
        """Write the outputs as the last call, timed or not, left them. Raises RunFailure, DeviceError."""
        return CallResult(mutated_inputs=tuple(self._request("fetch", "called")))

    def reload(self) -> None:
        """Copy the (changed) input files to the device again. Raises RunFailure, DeviceError."""
        self._request("reload", "reloaded")

    def _request(self, command: str, expected: str) -> list[str]:
        try:
            self._process.send(f"{command}\n".encode())
        except BrokenPipeError:
            raise self._died() from None
        return self._expect(expected)

    def _expect(self, word: str) -> list[str]:
        """Words after `word` of the next reply. Raises RunFailure, DeviceError."""
        try:
            reply = self._replies.next(time.monotonic() + self._timeout_s)
        except TimeoutError:
            self._process.close()
            raise RunFailure(
                RunFailureKind.TIMEOUT, f"no answer within {self._timeout_s:g} s", self._log(self._process.close())
            ) from None
        if reply is None:
            raise self._died()
        first, *words = reply.split()
        if first == "error":
            raise self._failure(reply)
        if first != word:
            raise RunFailure(RunFailureKind.RUNTIME, f"an answer out of turn: {reply[:100]}")
        return words

    def _failure(self, reply: str) -> RunFailure:
        """What an `error` reply stands for. Raises DeviceError.

        Once a candidate runs it can bring about any CUDA error, so a lost GPU is believed only when a fresh process
        does not get one either.
        """
        log = self._log(self._process.close())
        try:
            return reported_error(reply, ready=self._ready, log=log)
        except DeviceError:
            name = reply.split(maxsplit=2)[1]
            if not self._ready or name not in DEVICE_LOST:
                raise
            again = ProcessSession(
                self._candidate,
                self._job,
                env=self._env,
                view=self._view,
                limits=self._limits,
                timeout_s=self._timeout_s,
            )
            with again:
                return RunFailure(RunFailureKind.RUNTIME, f"{name}, but a fresh process finds the GPU well", log)

    def _died(self) -> RunFailure:
        return process_failure(self._process.wait(self._timeout_s), ready=self._ready)

    @staticmethod
    def _log(outcome: CommandResult) -> str:
        return outcome.output[-LOG_CHARACTERS:]


def fitting(limits: Limits, job: Job) -> Limits:
    """Limits under which the job's own outputs can be written."""
    outputs = [tensor.spec.bytes for tensor in job.tensors if tensor.spec.role is TensorRole.OUTPUT]
    return replace(
        limits,
        file_bytes=max(limits.file_bytes, *outputs, 0),
        disk_bytes=limits.disk_bytes + sum(outputs),
    )


def reported_error(reply: str, *, ready: bool, log: str) -> RunFailure:
    """The failure that an `error NAME MESSAGE` reply stands for. Raises DeviceError when no candidate caused it."""
    _, name, *rest = reply.split(maxsplit=2)
    message = rest[0] if rest else ""
    if name in DEVICE_LOST:
        raise DeviceError(f"the GPU failed: {name}: {message}", hint="check the GPU with nvidia-smi and dmesg")
    if not ready and name == "cudaErrorMemoryAllocation":
        raise DeviceMemoryFull(
            "the problem's tensors do not fit the memory that is free on the GPU",
            hint="free GPU memory, or choose a smaller --size",
        )
    if name == "harness":
        raise DeviceError(f"the driver program refused its job: {message}", hint="check driver.cpp and disk space")
    if name == "load":
        return RunFailure(RunFailureKind.LOAD, f"the candidate cannot be loaded: {message}", log)
    if name == _NOT_EMULATABLE:
        return RunFailure(RunFailureKind.NOT_EMULATABLE, message, log)
    kind = RunFailureKind.TIMEOUT if name == "cudaErrorLaunchTimeout" else RunFailureKind.RUNTIME
    return RunFailure(kind, f"{name}: {message}", log)


def process_failure(outcome: CommandResult, *, ready: bool) -> RunFailure:
    """The failure of a process that ended without an answer."""
    log = outcome.output[-LOG_CHARACTERS:]
    if outcome.exceeded is ExceededLimit.TIME:
        return RunFailure(RunFailureKind.TIMEOUT, "it ran out of time", log)
    if outcome.exceeded is not None:
        return RunFailure(RunFailureKind.RUNTIME, f"it {outcome.describe()}", log)
    if not ready and ("error while loading shared libraries" in log or "symbol lookup error" in log):
        return RunFailure(RunFailureKind.LOAD, "the program cannot be loaded", log)
    return RunFailure(RunFailureKind.RUNTIME, f"the process {outcome.describe()} before it had answered", log)
