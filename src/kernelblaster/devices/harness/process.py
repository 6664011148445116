"""A harness program in a sandboxed process: requests go in and replies come out over a socket, every failure typed.

What a candidate prints, how its process ends, and what comes over the socket is never evidence of success: outputs are
compared, and times are checked, elsewhere.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import BatchTime, Build, CallResult, Candidate, Job, TimingSample
from kernelblaster.devices.build.deferred import startable_program
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.harness.channel import Channel, ForgedReply, MalformedPacket, Packet, PacketBuilder
from kernelblaster.devices.harness.failures import (
    LOG_CHARACTERS,
    Presence,
    process_failure,
    reported_error,
    silence,
)
from kernelblaster.devices.harness.job import fitting, job_packets, job_view, opened, opened_outputs, reload_packets
from kernelblaster.devices.harness.protocol import HarnessReply, HarnessRequest
from kernelblaster.errors import DeviceError
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.limits import CommandResult, Limits
from kernelblaster.sandbox.process import SandboxedProcess, Scratch, clean_environment

_LOG = logging.getLogger(__name__)
WATCHED_S = 0.1
"""Longer than usual batches of calls: replies at which the judge reads its clock are watched for."""
CANARY_S = 60.0
"""A sound machine starts a process without a candidate in a second or two."""


@dataclass(frozen=True)
class Containment:
    """Whether a candidate's host code runs under the system-call filter.

    Attributes:
        contained: whether it does.
        memory_protected: whether it cannot reach the memory of the harness, either.
        microseconds: what putting it up took.
        obstacle: why it does not; empty where it does or need not.
    """

    contained: bool
    memory_protected: bool
    microseconds: float
    obstacle: str


class HarnessProcess:
    """A harness program with its tensors. Starts when entered, dies when left.

    Args:
        candidate: what it calls; nobody waits for its build before `load`, where its harness is a program of its own.
        job: tensors, sizes, scalars.
        wrapper: a tool that runs the program and passes its standard input on, e.g. ncu with its options.
        env: variables added to the clean environment.
        view: what the processes see beside the program.
        limits: bounds of the processes; a wrapper may fork.
        timeout_s: bound of each request, the start included.
        contain: whether host code of the candidate runs under the system-call filter; a profiler could not work there.

    Raises:
        DeviceError: on entering, when no process can be started.
    """

    def __init__(
        self,
        candidate: Candidate,
        job: Job,
        wrapper: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        view: FileView | None = None,
        limits: Limits | None = None,
        timeout_s: float,
        contain: bool = True,
    ) -> None:
        self._candidate = candidate
        self._job = job
        self._wrapper = tuple(wrapper)
        self._env = env or {}
        self._view = view or FileView()
        bounds = fitting(limits or Limits(), job)
        self._limits = replace(bounds, forks=True) if self._wrapper else bounds
        self._timeout_s = timeout_s
        self._contain = contain
        self._exit = contextlib.ExitStack()
        self._due: list[HarnessReply] = []
        self._loaded = False
        self.containment = Containment(False, False, 0.0, "")
        self.reported = 0
        """Bytes that an emulated GPU's runtime had reported, to its files, when the last call was over."""

    def __enter__(self) -> Self:
        self._due.clear()
        with contextlib.ExitStack() as stack:
            self._part = stack.enter_context(startable_program(self._candidate))
            scratch = stack.enter_context(Scratch())
            self._channel = stack.enter_context(Channel())
            program = self._part.program
            self._process = SandboxedProcess(
                [*self._wrapper, str(program)],
                cwd=scratch,
                environment=clean_environment(scratch, self._env),
                limits=self._limits,
                view=job_view(program, self._candidate.harness) | self._part.view | self._view,
                stdin=self._channel.theirs.fileno(),
            )
            stack.enter_context(self._process)
            self._channel.theirs.close()
            self._send_job()
            self._exit = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    # ------------------------------------------------------------------ what it is asked for

    def settle(self) -> None:
        """Wait until it has its tensors on the device and has done what was begun. Raises RunFailure, DeviceError."""
        while self._due:
            self._receive(self._due[0])
            self._due.pop(0)

    def begin_warm_up(self) -> None:
        """Have it run an empty kernel between profiler marks, without waiting for that."""
        with contextlib.suppress(BrokenPipeError):  # it has ended already; the next request says why
            self._channel.send(PacketBuilder(HarnessRequest.WARM_UP), deadline=self._deadline)
        self._due.append(HarnessReply.WARMED_UP)

    def load(self) -> None:
        """Load the candidate, and contain it. Raises RunFailure, BuildFailure, DeviceError."""
        self.settle()
        path = self._part.library()
        if path is None:
            self._loaded = True
            return
        self._loaded = True  # whatever happens from here on may be its doing
        packet = self._request(
            PacketBuilder(HarnessRequest.LOAD).text(str(path)).u8(self._contain), HarnessReply.LOADED
        )
        self.containment = Containment(bool(packet.u8()), bool(packet.u8()), packet.f64(), packet.text())
        packet.end()
        if self.containment.contained and not self.containment.memory_protected:
            _LOG.warning("candidates can reach the memory of the harness: no gate is written for this processor")
        hints = self._candidate.built().hints
        if self._contain and not self.containment.contained:
            _LOG.warning("candidates are not contained here: %s", self.containment.obstacle)
            if hints:
                raise RunFailure(RunFailureKind.POLICY, f"nothing contains candidates here, and {hints[0]}")

    def add(self, build: Build) -> None:
        """Load one more candidate, before `load` brings the last one. Raises RunFailure, DeviceError."""
        self.settle()
        self._loaded = True
        path = self._part.further_library(build)
        self._request(PacketBuilder(HarnessRequest.ADD).text(str(path)), HarnessReply.ADDED).end()

    def choose(self, index: int) -> str:
        """Call the candidate that was loaded at this place from here on, and once now; why that fails, else empty.

        Raises RunFailure when it fails in a way that leaves no sound process, and DeviceError.
        """
        packet = self._request(PacketBuilder(HarnessRequest.CHOOSE).u32(index), HarnessReply.CHOSEN)
        succeeded, reason = bool(packet.u8()), packet.text()
        packet.end()
        return "" if succeeded else reason or "it fails without a reason"

    def call(self, poison: int) -> CallResult:
        """Fill outputs with byte `poison` (0-255), call, write the outputs. Raises RunFailure, DeviceError."""
        self._called(PacketBuilder(HarnessRequest.CALL).u8(poison), HarnessReply.CALLED)
        return self.fetch()

    def fetch(self) -> CallResult:
        """Write the outputs as the last call, timed or not, left them. Raises RunFailure, DeviceError."""
        with opened_outputs(self._job) as descriptors:
            packet = self._request(PacketBuilder(HarnessRequest.FETCH), HarnessReply.FETCHED, descriptors)
        damage = [(packet.u32(), packet.u8()) for _ in range(packet.u32())]
        packet.end()
        return CallResult(mutated_inputs=tuple(self._damaged(index, around) for index, around in damage))

    def reload(self) -> None:
        """Copy the inputs, which may have other values now, to the device again. Raises RunFailure, DeviceError."""
        for message, paths in reload_packets(self._job):
            with opened(paths) as descriptors:
                self._request(message, HarnessReply.RELOADED, descriptors)

    def profile(self, perturbation: int) -> None:
        """Make one warm-up call, then one call between profiler marks. Raises RunFailure, DeviceError."""
        self._called(PacketBuilder(HarnessRequest.PROFILE).u64(perturbation), HarnessReply.PROFILED)

    def _called(self, message: PacketBuilder, reply: HarnessReply) -> None:
        packet = self._request(message, reply)
        self.reported = packet.u64()
        packet.end()

    def time_call(self, flush_bytes: int, cover_fills: int, perturbation: int) -> TimingSample:
        """Time one call with a cold L2. Raises RunFailure, DeviceError."""
        message = PacketBuilder(HarnessRequest.TIME).u64(flush_bytes).u32(cover_fills).u64(perturbation)
        began = time.perf_counter()
        packet = self._request(message, HarnessReply.TIMED)
        judge_us = 1e6 * (time.perf_counter() - began)
        sample = TimingSample(packet.f64(), packet.f64(), packet.f64(), judge_us=judge_us)
        packet.end()
        return sample

    def prepare_batch(self, perturbations: Sequence[int]) -> None:
        """Put the values of each perturbation into a slot, its outputs poisoned. Raises RunFailure, DeviceError."""
        message = PacketBuilder(HarnessRequest.PREPARE_BATCH).list_u64(perturbations)
        self._request(message, HarnessReply.BATCH_PREPARED).end()

    def time_batch(self, flush_bytes: int, calls: int, fills: int) -> BatchTime:
        """Make one call in each of the first slots, by the clock of this process. Raises RunFailure, DeviceError."""
        message = PacketBuilder(HarnessRequest.BATCH).u32(calls).u64(flush_bytes).u32(fills)
        began = time.perf_counter()
        self._request(message, HarnessReply.ISSUED, watched_s=WATCHED_S).end()
        issued = time.perf_counter()
        self._receive(HarnessReply.BATCHED, WATCHED_S).end()
        return BatchTime(1e6 * (issued - began), 1e6 * (time.perf_counter() - began))

    def select_slot(self, slot: int) -> None:
        """Have the tensors of a slot fetched next. Raises RunFailure, DeviceError."""
        self._request(PacketBuilder(HarnessRequest.SELECT).u32(slot), HarnessReply.SELECTED).end()

    def quit(self, at_most_s: float | None = None) -> CommandResult:
        """Let it end, and wait for that, at most so long, or as long as for a reply. Raises DeviceError."""
        with contextlib.suppress(BrokenPipeError):
            self._channel.send(PacketBuilder(HarnessRequest.QUIT), deadline=self._deadline)
        return self._process.wait(self._timeout_s if at_most_s is None else min(at_most_s, self._timeout_s))

    # ------------------------------------------------------------------ packets

    @property
    def _deadline(self) -> float:
        return time.monotonic() + self._timeout_s

    def _send_job(self) -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended already; the next request says why
            self._channel.send_key(self._deadline)
        for message, paths in job_packets(self._job):
            with opened(paths) as descriptors, contextlib.suppress(BrokenPipeError):
                self._channel.send(message, descriptors, deadline=self._deadline)
        self._due.append(HarnessReply.READY)

    def _damaged(self, index: int, around: int) -> str:
        if index >= len(self._job.tensors):
            raise MalformedPacket("there is no such tensor")
        name = self._job.tensors[index].spec.name
        return f"around:{name}" if around else name

    def _request(
        self,
        message: PacketBuilder,
        reply: HarnessReply,
        descriptors: Sequence[int] = (),
        *,
        watched_s: float = 0.0,
    ) -> Packet:
        try:
            self._channel.send(message, descriptors, deadline=self._deadline)
        except BrokenPipeError:
            raise self._died() from None
        except TimeoutError:
            raise self._silent() from None
        return self._receive(reply, watched_s)

    def _receive(self, expected: HarnessReply, watched_s: float = 0.0) -> Packet:
        """The next packet, which must be `expected`; see `Channel.receive`. Raises RunFailure, DeviceError."""
        try:
            packet = self._next_reply(self._deadline, watched_s)
            if packet is None:
                raise self._died()
            kind = packet.u8()
            if kind == HarnessReply.ERROR:
                raise self._reported(packet)
        except TimeoutError:
            raise self._silent() from None
        if kind != expected:
            raise MalformedPacket("an answer out of turn")
        return packet

    def _next_reply(self, deadline: float, watched_s: float = 0.0) -> Packet | None:
        """As `Channel.receive`. Raises DeviceError for what is forged where no candidate is."""
        try:
            return self._channel.receive(deadline, watched_s)
        except ForgedReply as forged:
            if self._loaded:
                raise
            raise DeviceError(
                f"no candidate is loaded, and {forged.reason}",
                hint="delete the cache directory: it may hold old programs",
            ) from forged

    def _ended_log(self) -> str:
        """End the process; the last of what it has printed."""
        return self._process.close().output[-LOG_CHARACTERS:]

    def _reported(self, error: Packet) -> RunFailure:
        """The failure that an ERROR packet tells of, its first byte read. Raises DeviceError."""
        name, message = error.text(), error.text()
        return reported_error(name, message, self._ended_log(), candidate=self._presence, canary=self._canary)

    def _silent(self) -> RunFailure:
        """The failure of a process that does not answer. Raises DeviceError."""
        return silence(self._timeout_s, self._ended_log(), candidate=self._presence, canary=self._canary)

    @property
    def _presence(self) -> Presence:
        if self._loaded:
            return Presence.LOADED
        # A wrapper that fails takes nothing from anybody: it is a tool's, whose callers go on without it.
        alone = self._candidate.harness.program is not None and not self._wrapper
        return Presence.ABSENT if alone else Presence.LINKED

    def _died(self) -> RunFailure:
        """The failure of a process that has closed its socket; it may have said why before. Raises DeviceError."""
        with contextlib.suppress(TimeoutError, MalformedPacket):
            while (packet := self._next_reply(time.monotonic() + 1)) is not None:
                if packet.u8() == HarnessReply.ERROR:
                    return self._reported(packet)
        return process_failure(self._process.wait(self._timeout_s), candidate=self._presence)

    def _canary(self) -> None:
        """Raise DeviceError when a fresh process without the candidate does not come up either."""
        program = self._candidate.harness.program
        if program is None or self._wrapper:
            return
        with HarnessProcess(
            self._candidate, self._job, env=self._env, view=self._view, limits=self._limits, timeout_s=CANARY_S
        ) as fresh:
            fresh.begin_warm_up()
            fresh.settle()
