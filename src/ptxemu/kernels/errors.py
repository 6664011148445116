"""What a launch may end in, beside the errors of `ptxemu.errors`."""

from __future__ import annotations

from collections.abc import Sequence

from ptxemu.checks.findings import Finding
from ptxemu.errors import EmulatorError


class KernelFailed(EmulatorError):
    """A kernel launched from Python faulted or was killed. `findings` is what the checks found until then."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message, hint=hint)
        self.findings = tuple(findings)
