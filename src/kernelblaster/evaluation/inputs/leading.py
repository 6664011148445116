"""Values that only one input of a problem gets: the first whose samples (indices of an axis) are the output's.

Others would meet in sums and products there: nothing would be left of what each is to show, and of infinities NaN.
What those get instead is in `companions`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from random import Random

import torch

from kernelblaster.evaluation.inputs.distributions import MASKS
from kernelblaster.problems.problem import TensorRole, TensorSpec

_SCATTERED, _POSITIVE = 0.3, 0.25
_FAR_BELOW = {torch.float16: -60_000.0}
_FAR_BELOW_ELSEWHERE = -500_000.0
"""Below some numbers that kernels begin a maximum with instead of -infinity, and above what stands for an infinity
where it is found out whether infinities are defined (`correctness.infinities`)."""
_UNMASKED, _ALL_FAR_BELOW = 5, 6
_SHARES = {"normal": 5, "above": 3, "large": 2, "below": 3, "tiny": 2, "sparse": 1}
_SHARES_WITH_MASKS = {"normal": 5, "above": 2, "masked": 2, "below": 2, "large": 2, "tiny": 2, "sparse": 1}
"""Of the samples of a mixed tensor, in 16ths."""
_TINY = {torch.float16: 2.0**-10}
_TINY_ELSEWHERE = 2.0**-20
_FEW = 1 / 16
_PEAK = 4.0
_CHUNK = 1 << 24
"""Elements at once."""
_LEAST_FACTOR = 8.0
"""A piece that is so many times larger than the rest and has its energy is a 64th of it."""
_WIDEST, _FARTHEST = 2.0, 4.0
"""How many times larger than the large samples of a mixture a piece of a sample is at most, and one of the tensor."""
_SHARE, _FEW_SHARE = (1 / 16, 1 / 2), 1 / 64
"""Of all energy, what the piece of the tensor has at least and at most; and where samples are so few that one of the
normal ones holds it."""
_FIRST_TOO = 1 / 3
"""Of the samples with such a place, those whose first element stands out besides."""
_AHEAD = 1.5
"""Times as far as other elements that stand out; squares of it are within fp16 still."""
_LEAST_TURN = 1 / 512
_DISTURBED = 64
"""Samples at least, where there are so many."""
_OF_MIXTURE = 0.4
"""Mean square of a mixture, in units of its large samples'."""


class Burst(IntEnum):
    """What happens at a random place of a normal sample; its neighbours have the next, so that all are there.

    Everywhere else its values are alike: who compares parts of a sample finds no reason to look at all of it.
    """

    SCALED = 0
    """A short piece is many times larger."""
    SHIFTED = 1
    """A short piece lies far above or below the rest."""
    ELEMENT = 2
    """One element stands out."""
    NOWHERE = 3
    """It stays as it was drawn."""


@dataclass(frozen=True)
class Leading:
    """An input whose samples are the output's.

    Attributes:
        name: of the input.
        axis: of it, whose indices are samples.
        mapped: sample n decides what the outputs' first axes have at n, and nothing else.
    """

    name: str
    axis: int
    mapped: bool

    def samples_first(self, values: torch.Tensor) -> torch.Tensor:
        """A view of the input's values with samples along the first axis."""
        return values.movedim(self.axis, 0)

    def as_stored(self, values: torch.Tensor) -> torch.Tensor:
        """The inverse of `samples_first`, contiguous."""
        return values.movedim(0, self.axis).contiguous()


def leading_input(specs: Sequence[TensorSpec]) -> Leading | None:
    """The first floating-point input whose samples are those of the first output; None when there is none.

    Samples are indices of the first axis. Where no input has them there, they are those of another axis (a transposed
    matrix), or of an output whose first axis is of one index those of a later axis. For an output of one number it is
    the first input that has samples at all.
    """
    outputs = [spec.shape for spec in specs if spec.role is TensorRole.OUTPUT]
    output = outputs[0]
    inputs = [spec for spec in specs if spec.role is TensorRole.INPUT and _holds_infinities(spec) and spec.shape]
    mapped = all(shape[:1] == output[:1] for shape in outputs)
    for spec in inputs:
        if not output or (output[0] == spec.shape[0] and (len(spec.shape) > 1 or len(output) == 1)):
            return Leading(spec.name, 0, mapped=bool(output) and mapped)
    for spec in inputs:
        if output[0] in spec.shape[1:]:
            return Leading(spec.name, spec.shape.index(output[0], 1), mapped=mapped)
    for spec in inputs:
        if output[0] == 1 and len(spec.shape) > 1 and spec.shape[0] in output:
            return Leading(spec.name, 0, mapped=False)
    return None


def _holds_infinities(spec: TensorSpec) -> bool:
    """Whether it is of a floating-point format that has them: those of 8 bits have none, or few values beside."""
    return spec.dtype.is_floating_point and spec.dtype.bits > 8


def mask(values: torch.Tensor, how: int, generator: torch.Generator, stored: torch.dtype) -> torch.Tensor:
    """Put infinities in place of some values, as masks do.

    Of three rows along the last axis one begins masked, one is masked here and there, and every other third one is
    masked but for a few values, which then lie far below zero. At the least one row begins masked, and one lies far
    below zero.

    Args:
        values: float32.
        how: one of `MASKS`.
        generator: decides the places.
        stored: type that they will be stored in.
    """
    rows = _rows(values).clone()
    kind = torch.arange(rows.shape[0], device=values.device) % 6
    if how == MASKS[-1]:
        chosen = torch.randperm(rows.shape[0], generator=generator, device=values.device)
        kind.fill_(_UNMASKED)
        kind[chosen[:1]], kind[chosen[1:2]] = 0, _ALL_FAR_BELOW
    return _masked(rows, kind, how, generator, stored).reshape(values.shape)


def mask_samples(values: torch.Tensor, how: int, generator: torch.Generator, stored: torch.dtype) -> torch.Tensor:
    """As `mask`, but nothing stays as it is, a quarter lies far below zero but for one infinity, in random order.

    `how` is one of `MASKS_OF_MIXTURES`.
    """
    rows = _rows(values)
    kinds = torch.tensor([0, 1, 2, _ALL_FAR_BELOW][: 4 if rows.shape[-1] > 1 else 3], device=values.device)
    order = torch.randperm(rows.shape[0], generator=generator, device=values.device)
    return _masked(rows.clone(), kinds[order % len(kinds)], how, generator, stored).reshape(values.shape)


def _rows(values: torch.Tensor) -> torch.Tensor:
    return values.reshape(-1, values.shape[-1] if values.ndim else 1)


def _masked(
    rows: torch.Tensor, kind: torch.Tensor, how: int, generator: torch.Generator, stored: torch.dtype
) -> torch.Tensor:
    """Rows with infinities in their places.

    Args:
        rows: changed in place.
        kind: per row: begins masked (0, 3), masked here and there (1, 4), all but a few masked (2), as it was
            (`_UNMASKED`), far below zero (`_ALL_FAR_BELOW`) and masked at one place, or at the beginning.
        how: one of `MASKS`.
        generator: decides the places.
        stored: type that they will be stored in.
    """
    (height, width), device = rows.shape, rows.device
    column, chance = torch.arange(width, device=device), torch.rand(rows.shape, generator=generator, device=device)
    kept = torch.randint(width, (height, 1), generator=generator, device=device)
    kind = kind[:, None]
    lone = (kind == _ALL_FAR_BELOW) & (how != MASKS[-1])
    begins = (kind % 3 == 0) & (torch.where(lone, column == kept, column < kept))
    scattered = (kind % 3 == 1) & (chance < _SCATTERED) & (column != kept)
    nearly_all = (kind == 2) & (chance > 2 / width) & (column != kept)
    far = _FAR_BELOW.get(stored, _FAR_BELOW_ELSEWHERE)
    rows = torch.where((kind == 2) & ~nearly_all | (kind == _ALL_FAR_BELOW), rows + far, rows)
    rows = torch.where(begins | scattered | nearly_all, -torch.inf, rows)
    if how == MASKS[0]:
        rows = torch.where(scattered & (chance < _SCATTERED * _POSITIVE), torch.inf, rows)
    return rows


def mix(
    values: torch.Tensor,
    exponent: int,
    generator: torch.Generator,
    stored: torch.dtype,
    masks: int | None = None,
) -> torch.Tensor:
    """Give neighbouring samples a distribution of their own: normal, far above or below zero, large, tiny, sparse.

    Neighbours share one, so that a tensor that is rotated still has whole samples of each; the order is random. Most of
    the normal ones, and the tensor as a whole, have a short piece somewhere that decides their sums, moments and
    maxima (`Burst`, `burst`): who takes some of the elements for all of them misses it.

    Args:
        values: normal ones, float32.
        exponent: means are 2 to this power times the spread, large samples as many times larger.
        generator: decides the order, and the places of what is not zero.
        stored: type that they will be stored in.
        masks: how some samples are masked besides, see `mask_samples`; None: none are.
    """
    counts = _counts(values.shape[0], _SHARES if masks is None else _SHARES_WITH_MASKS)
    places = places_of(generator)
    mixed, factor = values.clone(memory_format=torch.contiguous_format), 2.0**exponent
    distance = factor * float(values.std())
    kinds, start, begins = list(counts), 0, {}
    for place in torch.randperm(len(kinds), generator=generator, device=values.device).tolist():
        begins[kinds[place]] = start
        part = mixed[start : start + counts[kinds[place]]]
        start += counts[kinds[place]]
        match kinds[place]:
            case "normal":
                _disturb(part, factor, generator, places)
            case "above":
                part += distance
            case "below":
                part -= distance
                _turn(part[len(part) // 2 :], places, all_lines=len(part) > 1)
            case "large":
                part *= factor
                _raise_one(part, _PEAK * distance, generator)
            case "tiny":
                part *= tiny_factor(stored)
            case "sparse":
                part *= torch.rand(part.shape, generator=generator, device=part.device) < _FEW
            case "masked" if masks is not None:
                part.copy_(mask_samples(part, masks, generator, stored))
    # Elsewhere a piece would take from a sample what it is for.
    few = counts["large"] == 0
    begin, count = (begins["normal"], counts["normal"]) if few else (begins["large"], counts["large"])
    region = slice(begin, begin + count)
    height, energy = rival(factor, mixed.numel(), places, _FEW_SHARE if few else None)
    burst(mixed[region], values[region], height, energy, places)
    return mixed


def _counts(samples: int, shares: dict[str, int]) -> dict[str, int]:
    """How many samples of each kind; of few, one of as many kinds as there are, the first before the others."""
    counts = {kind: share * samples // 16 for kind, share in shares.items()}
    missing = [kind for kind, count in counts.items() if not count and kind != "sparse"]
    for kind in [*missing, *shares][: samples - sum(counts.values())]:
        counts[kind] += 1
    return counts


def rival(factor: float, elements: int, places: Random, share: float | None = None) -> tuple[float, float]:
    """Factor and energy, as of `burst`, of a piece that decides sums over a whole mixture; the share is random."""
    chosen = places.uniform(*_SHARE) if share is None else share
    return _FARTHEST * factor, chosen * _OF_MIXTURE * factor**2 * elements


def tiny_factor(stored: torch.dtype) -> float:
    """What makes usual values tiny ones of a type."""
    return _TINY.get(stored, _TINY_ELSEWHERE)


def burst(into: torch.Tensor, values: torch.Tensor, factor: float, energy: float, places: Random) -> torch.Tensor:
    """Put a short piece of large values at a random place, in place.

    Args:
        into: contiguous, float32.
        values: usual ones, of the same shape.
        factor: the piece is so many times larger than these.
        energy: sum of squares of the piece, in units of their mean square.
        places: decides the place.
    """
    flat, given = into.view(-1), values.reshape(-1)
    start, stop = piece(flat.numel(), energy / factor**2, places)
    flat[start:stop] = factor * given[start:stop]
    return into


def _disturb(part: torch.Tensor, factor: float, generator: torch.Generator, places: Random) -> None:
    """Let a small random place decide what becomes of most samples, see `Burst`."""
    if not part.numel():
        return
    rows = _samples(part)
    spread, most = float(rows.std(correction=0)), _WIDEST * factor
    for number, row in enumerate(rows[:: max(rows.shape[0] // _DISTURBED, 1)]):
        # As short as can be two times of three: who looks at an eighth of the tiles sees most longer ones.
        height = most * min(_LEAST_FACTOR / most, 1.0) ** max(places.uniform(-2.0, 1.0), 0.0)
        kind = Burst(number % len(Burst))
        if kind is not Burst.NOWHERE:
            row.normal_(0.0, spread, generator=generator)
        start, stop = piece(row.numel(), places.uniform(0.25, 1.0) * row.numel() / height**2, places)
        match kind:
            case Burst.SCALED:
                row[start:stop] *= height
            case Burst.SHIFTED:
                row[start:stop] += spread * (height if start % 2 else -height)
            case Burst.ELEMENT:
                row[start] += spread * most
        # Whoever takes the first element for a usual one, and differences from it, cancels most digits then.
        if kind is not Burst.NOWHERE and places.random() < _FIRST_TOO:
            row[0] += spread * most * _AHEAD


def _turn(part: torch.Tensor, places: Random, *, all_lines: bool) -> None:
    """Let a short piece of samples far from zero lie on the other side of it: their sums change, too; in place.

    Unless it may meet `all_lines`, the piece is part of one line along the last axis, so that others along each axis
    stay below zero whole, where maxima that begin with zero show; a sample of one line stays as it is.
    """
    rows = _samples(part)
    width = part.shape[-1]
    if not all_lines and (width < 2 or rows.shape[1] == width):
        return
    for row in rows[:: max(rows.shape[0] // _DISTURBED, 1)]:
        wanted = row.numel() * _LEAST_TURN ** places.uniform(0.5, 1.0)
        line = row if all_lines else row.view(-1, width)[places.randrange(row.numel() // width)]
        start, stop = piece(line.numel(), wanted if all_lines else min(wanted, width - 1), places)
        line[start:stop].neg_()


def _samples(part: torch.Tensor) -> torch.Tensor:
    """A view with a row per sample; one row where a sample is one number."""
    return part.flatten(1) if part.ndim > 1 else part[None]


def places_of(generator: torch.Generator) -> Random:
    """Decides places on the host, the same for the same seed: who asks a GPU's generator waits for each answer."""
    return Random(generator.initial_seed())


def piece(count: int, wanted: float, places: Random) -> tuple[int, int]:
    """Begin and end of a piece of so many of `count` elements, at least one, at a random place."""
    length = min(max(round(wanted), 1), count)
    start = places.randint(0, count - length)
    return start, start + length


def _raise_one(part: torch.Tensor, height: float, generator: torch.Generator) -> None:
    """Raise one value of each row along the last axis, so that a maximum over part of the row is none."""
    rows = part.view(-1, part.shape[-1])
    place = torch.randint(rows.shape[1], (rows.shape[0],), generator=generator, device=rows.device)
    rows[torch.arange(rows.shape[0], device=rows.device), place] += height


def distances(values: torch.Tensor) -> torch.Tensor:
    """How far each sample lies from zero, in units of its spread; float32, one per index of the first axis.

    0 for one with infinities: what is defined for these takes no means (`correctness.infinities`).
    """
    rows = values.reshape(values.shape[0], -1)
    step = max(_CHUNK // max(rows.shape[1], 1), 1)
    found = []
    for part in rows.split(step):
        spread, mean = torch.std_mean(part.float(), dim=1, correction=0)
        found.append(torch.where((spread > 0) & mean.isfinite(), mean.abs() / spread, 0.0))
    return torch.cat(found)
