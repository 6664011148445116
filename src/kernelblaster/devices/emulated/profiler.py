"""Profiles one call on the emulated device. Nothing is started early: counts are taken when they are asked for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from kernelblaster.devices.emulated.translation import kernel_profile
from kernelblaster.devices.profiles import Profile, ProfileSource, totals
from ptxemu.metrics.profile import kernel_launch
from ptxemu.model.architecture import GpuModel
from ptxemu.model.call import CallEstimate

_LINES = 8
"""Source lines of a kernel that are kept, by how much its warps wait there."""


@dataclass(frozen=True)
class EmulatedProfiler:
    """Satisfies `devices.base.Profiler`.

    Attributes:
        gpu: the GPU to stand for.
        estimate: counts one warmed call and models its time. Raises RunFailure.
    """

    gpu: GpuModel
    estimate: Callable[[], CallEstimate]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Nothing was started."""

    def settle(self) -> None:
        """Nothing runs."""

    def collect(self) -> Callable[[], Profile]:
        """Counts of one warmed call and the model's times. Raises RunFailure."""
        call = self.estimate()
        return lambda: self._profile(call)

    def _profile(self, call: CallEstimate) -> Profile:
        kernels = [kernel_profile(kernel_launch(estimate, self.gpu, lines=_LINES)) for estimate in call.kernels]
        warnings = [] if kernels else ["the call launched no kernel"]
        if call.transfers_us:
            warnings.append(f"copies and fills take {call.transfers_us:.1f} us of {call.device_us:.1f} us")
        return Profile(
            source=ProfileSource.EMULATED,
            kernels=kernels,
            totals=totals(kernels),
            executed_share=call.executed_share,
            warnings=warnings,
        )
