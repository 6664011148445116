"""Fresh values and addresses for every timed call, and which of these calls are judged.

A kernel that remembers results, by pointer, by shape or by what the inputs hold, must not gain by it. So no two timed
calls of a process see the same values. Before each, the harness derives them on the device from the one input set it
has loaded, and lays all tensors at other addresses: the judge sends a random number of 63 bits, the *perturbation*,
which decides per tensor a rotation of the flat values and how many leading ones are altered: halved, or, of
integers, mirrored between their bounds (the formula is in
`devices/harness/include/kernelblaster/perturbation.hpp`; `apply_perturbation` is its other half). Rotation moves every
element to another row and column, so distribution and power draw stay as they are; halving makes sums, means and losses
move, which a rotation alone would leave where they were. Copies on the device cost about what the flush of the L2 does.
Integers and flags are rotated and never changed, so that indices stay in their range; where a problem declares bounds
(`Problem.ranges`), leading ones are mirrored between them, for a sort or a histogram knows no order. Tensors in which
positions have a meaning are halved as a whole, if they are floating-point, or stay; so do numbers that are labels.

Candidate and baseline are given the same perturbations in the same order.

A few of them, `checked`, have references that the judge has computed before. They are sent in the row of the
others at secret places: all but one at random among the calls that every comparison makes, the last after the last
measured call, at the end of a visit of random length. When such a call has returned, and not before, the harness is
asked for its outputs; they are judged when timing is over. The block of samples in which this happened is thrown away,
for the GPU has rested meanwhile. A modelled device makes one call, on a perturbation; its outputs are judged.

What this catches: whatever is kept between calls, unless it is found again by values that were never there before; and
work left out in timed calls, if half of them with probability 7/8 for three checked calls, and again in every further
process; who is lucky there has checked calls that took longer than the others, which `timing` refuses. What it cannot
catch: a candidate shares its address space with the harness. One that knew this protocol could read the numbers of a
visit as they come, and look for parts of the new values in results it has kept; where that is cheaper than computing
(sums over long rows, from prefix sums), it would gain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random, SystemRandom
from typing import TYPE_CHECKING

from kernelblaster.devices.base import UNPERTURBED, PerturbationKind, TimingSample

if TYPE_CHECKING:
    import torch

    from kernelblaster.problems.problem import Problem

CHECKED = 3
"""Timed calls that are judged, per process."""
_BITS = 63
_MASK = (1 << 64) - 1
_GRANULE_BYTES = 16
_SMALL_TENSOR = 4096
_SHIFT, _CUT = 0, 1


def mirror_of(problem: Problem, name: str) -> int:
    """Least plus largest value of a tensor whose bounds a problem declares; 0 for any other."""
    bounds = problem.ranges.get(name)
    return 0 if bounds is None else bounds.low + bounds.high


def apply_perturbation(
    values: torch.Tensor, change: PerturbationKind, index: int, perturbation: int, mirror: int = 0
) -> torch.Tensor:
    """The values that a perturbation puts into a tensor.

    Args:
        values: as drawn, of the stored type; any shape.
        change: what may be done to them.
        index: place of the tensor in the job.
        perturbation: 64 bits.
        mirror: see `mirror_of`.
    """
    count = values.numel()
    if perturbation == UNPERTURBED or change is PerturbationKind.FIXED or count == 0:
        return values
    if change is PerturbationKind.SCALE:
        return _halved(values) if _number(perturbation, index, _CUT) % 2 else values
    width = values.element_size()
    granule = max(_GRANULE_BYTES // width, 1) if count * width >= _SMALL_TENSOR else 1
    units = count // granule
    bits = values.reshape(-1).view(_bits_of(width))  # torch cannot roll every format
    flat = bits.roll(-granule * (_number(perturbation, index, _SHIFT) % units)).view(values.dtype)
    if change is not PerturbationKind.ROTATE:
        cut = granule * (_number(perturbation, index, _CUT) % (units + 1))
        mirrored = change is PerturbationKind.MIRROR
        flat[:cut] = _mirrored(flat[:cut], mirror) if mirrored else _halved(flat[:cut])
    return flat.reshape(values.shape)


def _bits_of(width: int) -> torch.dtype:
    import torch

    return {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[width]


def _halved(values: torch.Tensor) -> torch.Tensor:
    """Half of each value, rounded as IEEE multiplication does; torch has no arithmetic for formats of 8 bits."""
    return values * 0.5 if values.element_size() > 1 else (values.float() * 0.5).to(values.dtype)


def _mirrored(values: torch.Tensor, total: int) -> torch.Tensor:
    """`total` minus each value, modulo the width of their type."""
    return (total - values.long()).to(values.dtype)


def _number(perturbation: int, tensor: int, what: int) -> int:
    """The harness' `draw`: splitmix64 of the perturbation and of what is decided."""
    z = (perturbation + 0x9E3779B97F4A7C15 * (4 * tensor + what + 1)) & _MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
    return z ^ (z >> 31)


def derived_perturbation(secret: int, place: str) -> int:
    """A perturbation that depends on a secret and a place, never `UNPERTURBED`."""
    digest = hashlib.sha256(f"{secret}/{place}".encode()).digest()
    return 1 + int.from_bytes(digest[:8], "little") % ((1 << _BITS) - 1)


@dataclass
class PerturbationSchedule:
    """The perturbations of one comparison, in the order in which the candidate sees them.

    Args:
        checked: perturbations whose calls are judged; none: nothing is judged.
        changing: whether values change at all; otherwise every call finds the drawn ones.
        random: where secrets come from.
    """

    checked: Sequence[int] = ()
    changing: bool = True
    random: Random = field(default_factory=SystemRandom)

    def __post_init__(self) -> None:
        self._places: dict[int, int] = {}
        self._drawn = 0
        self._left = list(self.checked)

    @property
    def exhausted(self) -> bool:
        """Whether all that are judged have been handed out: the call of the last one is the last of all."""
        return not self._left

    def begin(self, calls: int) -> None:
        """Choose secret places among the next `calls` calls for all but one of the checked ones.

        A single call takes the first of them.
        """
        early = self._left[:1] if calls == 1 else self._left[:-1]
        places = self.random.sample(range(calls), min(len(early), calls))
        self._places = {self._drawn + place: perturbation for place, perturbation in zip(places, early, strict=False)}

    def draw(self, count: int) -> list[int]:
        """Perturbations of the next `count` calls."""
        return [self._next() for _ in range(count)]

    def last_visit(self, longest: int) -> list[int]:
        """A visit after the last measured call that ends with a checked one; empty when none is left."""
        if not self._left:
            return []
        self._places = {}
        return [*self.draw(self.random.randrange(longest)), self._left.pop(0)]

    def _next(self) -> int:
        place, self._drawn = self._drawn, self._drawn + 1
        if place in self._places:
            perturbation = self._places.pop(place)
            self._left.remove(perturbation)
            return perturbation
        return 1 + self.random.getrandbits(_BITS) if self.changing else UNPERTURBED


@dataclass
class InspectedSession:
    """Samples a candidate and stops behind the calls that are judged. Satisfies `timing.Sampled`.

    Attributes:
        time_session: times calls of the candidate.
        look: keeps the outputs of the call that was just made, of this perturbation.
        checked: perturbations that are looked at.
        judged: samples of the calls that were.
    """

    time_session: Callable[[Sequence[int], int], list[TimingSample]]
    look: Callable[[int], None]
    checked: Sequence[int]
    judged: list[TimingSample] = field(default_factory=list)

    @property
    def looks(self) -> int:
        """How often the candidate was stopped."""
        return len(self.judged)

    def time_calls(self, perturbations: Sequence[int], cover_fills: int = 1) -> list[TimingSample]:
        """As the session's. Raises RunFailure."""
        samples: list[TimingSample] = []
        begun = 0
        for place, perturbation in enumerate(perturbations, start=1):
            if perturbation in self.checked:
                samples += self.time_session(perturbations[begun:place], cover_fills)
                self.look(perturbation)
                self.judged.append(samples[-1])
                begun = place
        return (
            samples + self.time_session(perturbations[begun:], cover_fills) if begun < len(perturbations) else samples
        )
