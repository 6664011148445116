"""A problem: `reference.py` (the PyTorch reference), `init.cu` (the start), `driver.cpp` (the host harness)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.notes import read_notes
from kernelblaster.problems.tags import Split, Tag, split_of

OUTPUT = "output"
"""Name of the output of a problem that names none."""


class Precision(StrEnum):
    """Storage type `scalar_t` of a problem's floating-point tensors but for those that pin another in `DTYPES`.

    Accumulation is fp32.
    """

    FP16 = "fp16"
    FP32 = "fp32"
    BF16 = "bf16"

    @property
    def dtype(self) -> DType:
        """The element type that it stands for."""
        return DType.of(self.value)


class StandardWorkload(StrEnum):
    """Well-known workloads, also called sizes: `small` runs emulated, `medium` fits 16 GB, `full` is KernelBench's.

    `v0` has the shapes of KernelBench's first release, where they differ: most published kernels and times use these.
    A problem may declare others, under any name; wherever one is asked for, it is asked for by name.
    """

    SMALL = "small"
    MEDIUM = "medium"
    FULL = "full"
    V0 = "v0"


class TensorRole(StrEnum):
    """What a tensor is to the launcher."""

    INPUT = "input"
    WEIGHT = "weight"
    OUTPUT = "output"


@dataclass(frozen=True)
class TensorSpec:
    """One tensor that crosses the launcher.

    Attributes:
        name: `forward`'s argument name, the `state_dict` key, or the output's name.
        role: input, weight or output.
        dtype: as stored for the launcher.
        shape: extents, row-major and contiguous.
    """

    name: str
    role: TensorRole
    dtype: DType
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
        return self.elements * self.dtype.itemsize


@dataclass(frozen=True)
class IndexSource:
    """What the elements of an index output are indices into: equal values there make several answers right.

    Attributes:
        tensor: name of an input.
        axis: of that input, along which they count; the output has its other axes, and may have this one.
    """

    tensor: str
    axis: int


@dataclass(frozen=True)
class ValueRange:
    """Bounds of an integer input, both included: every value between them is a sound one.

    Timed calls find `low + high - x` in the place of some values x, so that they hold others, and as many in bounds.
    """

    low: int
    high: int


@dataclass(frozen=True, order=True)
class ProblemId:
    """Level and number, as in KernelBench: `level1` / 23. A problem of one's own has neither, and goes by its name."""

    level: int
    number: int
    name: str = ""
    """Of a problem of one's own; empty for one of a data set."""

    def __str__(self) -> str:
        return self.name or f"level{self.level}/{self.number:03d}"


@dataclass(frozen=True)
class Problem:
    """One problem directory.

    Attributes:
        id: level and number.
        name: directory name without the number, e.g. `Softmax`.
        directory: where its three files lie.
        workloads: name -> integer parameters (`SIZES` of `reference.py`), passed to the launcher by name.
        scalars: non-integer parameters passed to the launcher by name (`SCALARS` of `reference.py`).
        outputs: names of what `forward` returns, in order (`OUTPUTS` of `reference.py`).
        dtypes: tensors that pin their own element type (`DTYPES` of `reference.py`); the others follow the precision.
        indices: outputs that hold indices, and into what (`INDICES` of `reference.py`).
        precisions: those in which it is meant, its own first (`PRECISIONS` of `reference.py`).
        ranges: integer inputs and their bounds (`RANGES` of `reference.py`).
        kept: inputs that mean something as a whole, such as a tree: no other values are derived from those that are
            declared, and timed calls halve all of them or none (`KEPT` of `reference.py`).
        partly_read: inputs of which a kernel need not read every byte (`PARTLY_READ` of `reference.py`).
        tags: operations it holds, the main one first (`TAGS` of `reference.py`); none where none are declared.
        declared_mends: what was mended of KernelBench's form (`MENDS` of `reference.py`); `mends` corrects it.
        weakly_verified: a self-checking directory whose own driver judges itself; its passes count for less.
        init_file: name of the starting kernel's file; self-checking directories may call it `final_cuda.cu`.
    """

    id: ProblemId
    name: str
    directory: Path
    workloads: dict[str, dict[str, int]] = field(hash=False)
    scalars: dict[str, float] = field(default_factory=dict, hash=False)
    outputs: tuple[str, ...] = (OUTPUT,)
    dtypes: dict[str, DType] = field(default_factory=dict, hash=False)
    indices: dict[str, IndexSource] = field(default_factory=dict, hash=False)
    precisions: tuple[Precision, ...] = tuple(Precision)
    ranges: dict[str, ValueRange] = field(default_factory=dict, hash=False)
    kept: frozenset[str] = frozenset()
    partly_read: frozenset[str] = frozenset()
    tags: tuple[Tag, ...] = ()
    declared_mends: str = ""
    weakly_verified: bool = False
    init_file: str = "init.cu"

    def require_reference(self) -> None:
        """Raise ProblemError for a self-checking directory, whose driver alone judges."""
        if self.weakly_verified:
            raise ProblemError(
                f"{self.slug} has no reference.py: its driver judges itself",
                hint="write a reference.py and a driver.cpp on <kernelblaster/driver.hpp> to have it verified",
            )

    def precision_for(self, asked: Precision) -> Precision:
        """The precision that it is judged in by a run of another: the one that is asked for, or else its own."""
        return asked if asked in self.precisions else self.precisions[0]

    @property
    def mends(self) -> str:
        """What KernelBench's form of it gets wrong, and what this one does instead; empty where nothing was mended.

        What `notes.json` says of it goes before `declared_mends`. Raises ProblemError for damaged notes: they are read
        here and not by who loads it, since nothing measured depends on them.
        """
        return read_notes(self.directory).instead or self.declared_mends

    @property
    def has_start(self) -> bool:
        """Whether there is a kernel to begin with; otherwise a search has the model write one."""
        return self.init_path.is_file()

    @property
    def split(self) -> Split | None:
        """The part of its data set that it belongs to; None without tags."""
        return split_of(self.tags)

    @property
    def cheap_workload(self) -> str:
        """The workload that is cheap to check: `small`, or the first that is declared. Raises ProblemError."""
        self.require_reference()
        return StandardWorkload.SMALL if StandardWorkload.SMALL in self.workloads else next(iter(self.workloads))

    @property
    def slug(self) -> str:
        """Directory name: `023_Softmax`; of a problem of one's own its name."""
        return self.id.name or f"{self.id.number:03d}_{self.name}"

    @property
    def title(self) -> str:
        """For a person: `level1/023 Softmax`; of a problem of one's own its name."""
        return self.id.name or f"{self.id} {self.name}"

    @property
    def reference_path(self) -> Path:
        """The PyTorch reference."""
        return self.directory / "reference.py"

    @property
    def definition_digest(self) -> str:
        """16 hexadecimal digits of the file that says what it computes: number and name do not tell it from others."""
        defining = self.driver_path if self.weakly_verified else self.reference_path
        return hashlib.sha256(defining.read_bytes()).hexdigest()[:16]

    @property
    def init_path(self) -> Path:
        """The starting kernel."""
        return self.directory / self.init_file

    @property
    def driver_path(self) -> Path:
        """The host harness."""
        return self.directory / "driver.cpp"
