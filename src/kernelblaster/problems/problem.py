"""A problem: `reference.py` (the truth), `init.cu` (the start), `driver.cpp` (the host harness)."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kernelblaster.errors import ProblemError


class Precision(StrEnum):
    """Storage type `scalar_t` of every floating-point tensor of a problem; accumulation is fp32."""

    FP16 = "fp16"
    FP32 = "fp32"
    BF16 = "bf16"


class Size(StrEnum):
    """Well-known sizes: `full` is KernelBench's, `medium` fits 16 GB, `small` runs emulated.

    A problem may declare others, under any name; wherever one is asked for, it is asked for by name.
    """

    SMALL = "small"
    MEDIUM = "medium"
    FULL = "full"


class TensorRole(StrEnum):
    """What a tensor is to the launcher."""

    INPUT = "input"
    WEIGHT = "weight"
    OUTPUT = "output"


@dataclass(frozen=True)
class TensorSpec:
    """One tensor that crosses the launcher.

    Attributes:
        name: `forward`'s argument name, the `state_dict` key, or `output`.
        role: input, weight or output.
        dtype: `fp16`, `fp32`, `bf16`, `int64`, `int32`, `bool` as stored for the launcher.
        shape: extents, row-major and contiguous.
    """

    name: str
    role: TensorRole
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """Number of elements (1 for a scalar)."""
        n = 1
        for extent in self.shape:
            n *= extent
        return n

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.elements * {"fp16": 2, "bf16": 2, "fp32": 4, "int32": 4, "int64": 8, "bool": 1}[self.dtype]


@dataclass(frozen=True, order=True)
class ProblemId:
    """Level and number, as in KernelBench: `level1` / 23."""

    level: int
    number: int

    def __str__(self) -> str:
        return f"level{self.level}/{self.number:03d}"


@dataclass(frozen=True)
class Problem:
    """One problem directory.

    Attributes:
        id: level and number.
        name: directory name without the number, e.g. `Softmax`.
        directory: where its three files lie.
        sizes: size name -> integer parameters (`SIZES` of `reference.py`), passed to the launcher by name.
        scalars: non-integer parameters passed to the launcher by name (`SCALARS` of `reference.py`).
        weakly_verified: a self-checking directory whose own driver judges itself; its passes count for less.
        init_file: name of the starting kernel's file; self-checking directories may call it `final_cuda.cu`.
    """

    id: ProblemId
    name: str
    directory: Path
    sizes: dict[str, dict[str, int]] = field(hash=False)
    scalars: dict[str, float] = field(default_factory=dict, hash=False)
    weakly_verified: bool = False
    init_file: str = "init.cu"

    def require_reference(self) -> None:
        """Raise ProblemError for a self-checking directory, which has no truth but its own driver."""
        if self.weakly_verified:
            raise ProblemError(
                f"{self.slug} has no reference.py: its driver judges itself",
                hint="write a reference.py and a driver.cpp on <kernelblaster/driver.hpp> to have it verified",
            )

    @property
    def cheap_size(self) -> str:
        """The size that is cheap to check: `small`, or the first that is declared. Raises ProblemError."""
        self.require_reference()
        return Size.SMALL if Size.SMALL in self.sizes else next(iter(self.sizes))

    @property
    def slug(self) -> str:
        """Directory name: `023_Softmax`."""
        return f"{self.id.number:03d}_{self.name}"

    @property
    def reference_path(self) -> Path:
        """The PyTorch truth."""
        return self.directory / "reference.py"

    @property
    def init_path(self) -> Path:
        """The starting kernel."""
        return self.directory / self.init_file

    @property
    def driver_path(self) -> Path:
        """The host harness."""
        return self.directory / "driver.cpp"
