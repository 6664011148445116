"""What an input set is drawn from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from kernelblaster.devices.base import UNPERTURBED
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.problems.problem import Precision, Problem


@dataclass(frozen=True)
class InputKey:
    """What an input set is drawn from. `draws` are the distributions to try, in order; the first informative wins.

    With a `perturbation` it is the set without one, as the harness changes it on the device: a reference, and no files.
    What is not `judged` has files and no reference, and the first of its draws.
    """

    problem: Problem
    precision: Precision
    workload: str
    draws: tuple[Distribution, ...]
    seed: int
    perturbation: int = UNPERTURBED
    judged: bool = True

    @property
    def name(self) -> str:
        """Name of its directory; two keys with one name are the same set."""
        extents = sorted(self.problem.workloads[self.workload].items())
        scalars = sorted(self.problem.scalars.items())
        asked = (str(self.problem.directory), str(extents), str(scalars), self.precision, self.workload)
        parts = (*asked, *self.draws, str(self.seed), str(self.perturbation), str(self.judged))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]
