"""A running program of a self-checking problem: it is asked for what its own driver concluded."""

from __future__ import annotations

from kernelblaster.devices.base import NO_TENSORS, Build, SelfCheckOutput
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.harness.session import ProcessSession
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.limits import Limits


class SelfCheckingProcess(ProcessSession):
    """A process of a candidate and its problem's own driver. Satisfies `devices.base.SelfJudged`."""

    def __init__(
        self, build: Build, *, view: FileView, limits: Limits | None = None, timeout_s: float, flush_bytes: int
    ):
        super().__init__(build, NO_TENSORS, view=view, limits=limits, timeout_s=timeout_s, flush_bytes=flush_bytes)

    def finish(self) -> SelfCheckOutput:
        """Make the last call, let the driver judge it and end. Raises RunFailure, DeviceError."""
        code, restored, missing, spoken = self._request("quit", "judged")
        try:
            text = "" if spoken == "-" else bytes.fromhex(spoken).decode(errors="replace")
            return SelfCheckOutput(int(code), text, int(restored), int(missing))
        except ValueError:
            raise RunFailure(RunFailureKind.RUNTIME, f"a malformed answer: {spoken[:100]}") from None
