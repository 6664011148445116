"""The values of one input set: files that candidates read."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelblaster.devices.base import PerturbationKind
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.problems.problem import TensorRole, TensorSpec


@dataclass(frozen=True)
class DrawnInputs:
    """Inputs and weights in files.

    Attributes:
        key: what they were drawn from.
        distribution: how they were drawn in the end.
        specs: outputs, inputs, weights, in the launcher's order.
        files: input and weight name -> file of its bytes.
        perturbation_kinds: input and weight name -> what a perturbation may do to its values.
    """

    key: InputKey
    distribution: Distribution
    specs: tuple[TensorSpec, ...]
    files: dict[str, Path]
    perturbation_kinds: dict[str, PerturbationKind]

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What a candidate writes, in the launcher's order."""
        return tuple(spec for spec in self.specs if spec.role is TensorRole.OUTPUT)

    @property
    def file_bytes(self) -> int:
        """Bytes of the files."""
        return sum(spec.bytes for spec in self.specs if spec.name in self.files)
