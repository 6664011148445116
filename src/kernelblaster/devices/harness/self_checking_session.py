"""A running program of a self-checking problem: it is asked for what its own driver concluded."""

from __future__ import annotations

from kernelblaster.devices.base import NO_TENSORS, BatchSession, Build, SelfCheckOutput
from kernelblaster.devices.harness.channel import PacketBuilder
from kernelblaster.devices.harness.protocol import HarnessReply, HarnessRequest
from kernelblaster.devices.harness.session import ProcessSession
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.limits import Limits


class SelfCheckingProcess(ProcessSession):
    """A process of a candidate and its problem's own driver. Satisfies `devices.base.SelfCheckingSession`."""

    def __init__(
        self, build: Build, *, view: FileView, limits: Limits | None = None, timeout_s: float, flush_bytes: int
    ):
        super().__init__(build, NO_TENSORS, view=view, limits=limits, timeout_s=timeout_s, flush_bytes=flush_bytes)

    def finish(self) -> SelfCheckOutput:
        """Make the last call, let the driver judge it and end. Raises RunFailure, DeviceError."""
        packet = self._request(PacketBuilder(HarnessRequest.QUIT), HarnessReply.JUDGED)
        code, restored, missing = packet.i32(), packet.u64(), packet.u64()
        return SelfCheckOutput(code, packet.lines(), restored, missing)

    def batches(self) -> BatchSession | None:
        """None: its driver holds one set of tensors."""
        return None
