"""What comparing an output showed, in the words of whoever repairs the kernel."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernelblaster.problems.problem import TensorSpec

TILES = (256, 128, 64, 32, 16)
"""Tile extents whose tail is worth naming."""


@dataclass(frozen=True)
class Worst:
    """The element furthest over (or nearest to) its budget."""

    index: tuple[int, ...]
    expected: float
    got: float


@dataclass(frozen=True)
class WorstRow:
    """The row whose elements are furthest off together.

    Attributes:
        index: of the row, an index less than its elements have.
        share: by which part of the row's values.
        ratio: over what is granted.
    """

    index: tuple[int, ...]
    share: float
    ratio: float


@dataclass
class Findings:
    """What comparing one output showed. Errors are inf where the output is not finite and should be."""

    spec: TensorSpec
    max_error: float = 0.0
    norm_error: float = 0.0
    ratio: float = 0.0
    """Worst error over its budget: of an element, of a row together, in norm."""
    wrong: int = 0
    strays: int = 0
    """Elements beyond their budget that are none of the wrong ones, see `error_budget`."""
    unwritten: int = 0
    not_finite: int = 0
    worst: Worst | None = None
    worst_row: WorstRow | None = None
    """None where rows are not judged."""
    low_corner: list[int] = field(default_factory=list)
    """Per axis, the smallest index of a wrong element."""
    factor: float | None = None
    """got / expected where that is one constant over the wrong elements."""

    @property
    def passed(self) -> bool:
        """Whether every element, every row and the norm are within budget."""
        return self.wrong == 0 and self.ratio <= 1

    def describe(self) -> str:
        """One line for whoever repairs the kernel; for a failed comparison."""
        name, total = self.spec.name, self.spec.elements
        row = self.worst_row
        if self.wrong == 0 and row is not None and row.ratio > 1:
            place, side = ", ".join([*map(str, row.index), ":"]), "large" if row.share > 0 else "small"
            return (
                f"{name}: every element is within budget, but {name}[{place}] as a whole is {abs(row.share):.2%} too "
                f"{side}: its elements share an error, e.g. of a sum that is not added in fp32"
            )
        if self.wrong == 0:
            return f"{name}: every element is within budget but the relative error in norm {self.norm_error:.3g} is not"
        parts = [f"{name}: {self.wrong} of {total} elements are wrong ({_share(self.wrong, total)})"]
        if self.worst is not None:
            place = f"{name}[{', '.join(map(str, self.worst.index))}]"
            parts.append(f"worst {place} expected {self.worst.expected:.6g}, got {self.worst.got:.6g}")
        if self.unwritten:
            parts.append(f"{self.unwritten} elements were never written")
        elif self.not_finite:
            parts.append(f"{self.not_finite} are NaN or infinite")
        return "; ".join([*parts, *self._hints()])

    def _hints(self) -> list[str]:
        hints = [] if self.factor is None else [f"got is {self.factor:.4g} times expected"]
        for axis, (extent, low) in enumerate(zip(self.spec.shape, self.low_corner, strict=False)):
            edges = [extent - extent % tile for tile in TILES if 0 < extent % tile < extent]
            reached = [edge for edge in edges if low >= edge]
            if reached:
                hints.append(
                    f"all wrong elements have index >= {max(reached)} on axis {axis} of extent {extent}: "
                    "check the partial tile at the end"
                )
        return hints


def _share(part: int, total: int) -> str:
    share = 100 * part / total
    return f"{share:.1f} %" if share >= 0.1 else f"{share:.2g} %"
