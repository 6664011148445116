"""Measures the phases of a stage by the moments that it tells."""

from __future__ import annotations

import time
from collections.abc import Mapping

import torch

from kernelblaster.training.phases import ENDED_BY, GIB, PhaseCost


class PhaseMeter:
    """Measures phases by the moments that a stage tells.

    Args:
        before: what earlier starts of the stage took.
    """

    def __init__(self, before: Mapping[str, PhaseCost]) -> None:
        self.phases = {name: phase.model_copy(deep=True) for name, phase in before.items()}
        self._last = time.monotonic()

    def __call__(self, moment: str) -> None:
        """A phase ends now."""
        phase = self.phases.setdefault(ENDED_BY[moment], PhaseCost())
        if torch.cuda.is_available():
            torch.cuda.synchronize()
            phase.peak_gib = max(phase.peak_gib or 0.0, torch.cuda.max_memory_allocated() / GIB)
            torch.cuda.reset_peak_memory_stats()
        now = time.monotonic()
        if moment == "saved":
            phase.seconds[-1] += now - self._last
        else:
            phase.seconds.append(now - self._last)
        self._last = now
