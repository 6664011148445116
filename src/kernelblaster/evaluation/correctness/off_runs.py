"""Runs of a reference whose arithmetic is off as a kernel's may be: they show which results hang on a rounding."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import torch

from kernelblaster.evaluation.correctness.discrete_choices import Choices
from kernelblaster.evaluation.correctness.other_choices import OtherChoices, VaryingValues
from kernelblaster.evaluation.correctness.rounding_ties import RoundingTies, Varying
from kernelblaster.evaluation.correctness.widening import Float32Arithmetic

_SEEDS, _SEEDS_OF_JUMPS = 4, 24
"""Two runs each. The more are where more than two are equal, of which the two sides show two: n runs miss one of m with
a probability of (1 - 1/m)^n, which of three is 4 % for eight runs and 10^-8 for 48."""
_MOST_JUMPS = 1 / 8
"""Of an output's elements, up to which the more are worth their time."""

Results = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class OffRuns:
    """Runs a reference with arithmetic that is off.

    Attributes:
        run: computes all outputs in a type.
        storage: what products may be stored in.
        device: where it runs.
    """

    run: Callable[[torch.dtype], Results]
    storage: torch.dtype
    device: torch.device

    def ties(self, expected: Mapping[int, torch.Tensor], undeclared: Collection[int]) -> dict[int, RoundingTies]:
        """What outputs of whole numbers or flags may be where they hang on roundings.

        Args:
            expected: these outputs, by their place among all; on the CPU, as they are stored.
            undeclared: those of which nothing says what they point into.
        """
        varying = {place: Varying(values) for place, values in expected.items()}
        self._show(varying, range(_SEEDS))
        if any(each.runs for each in varying.values()):
            _add(varying, self.run(torch.float32))
        found = {place: each.ties() for place, each in varying.items()}
        more = {at: varying[at] for at in undeclared if 0 < found[at].jumps <= _MOST_JUMPS * found[at].elements}
        if more:
            self._show(more, range(_SEEDS, _SEEDS_OF_JUMPS))
        return found | {place: each.ties() for place, each in more.items()}

    def choices(self, expected: Mapping[int, torch.Tensor]) -> dict[int, OtherChoices]:
        """What floating-point outputs may be where they hang on choices among what is equal up to rounding.

        Arithmetic that is off chooses; what comes of its choices is computed in float64.

        Args:
            expected: these outputs, by their place among all.
        """
        varying = {place: VaryingValues(values) for place, values in expected.items()}
        with Choices() as own:
            self.run(torch.float64)
        with Choices() as plain:
            self.run(torch.float32)
        self._choose_again(varying, own, itertools.chain([plain], self._made(range(_SEEDS))))
        found = [each.choices() for each in varying.values()]
        if any(each.have_several and each.are_few for each in found):
            self._choose_again(varying, own, self._made(range(_SEEDS, _SEEDS_OF_JUMPS)))
        return {place: each.choices() for place, each in varying.items()}

    def _choose_again(self, varying: Mapping[int, VaryingValues], own: Choices, others: Iterable[Choices]) -> None:
        """Add what comes of the choices of others where they differ from the reference's own."""
        for made in others:
            if own.same_as(made):
                continue
            with Choices(made.found) as again:
                results = self.run(torch.float64)
            if not again.astray:
                _add(varying, results)

    def _made(self, seeds: Iterable[int]) -> Iterator[Choices]:
        """What runs with arithmetic that is off choose, two for each seed."""
        for seed, side in itertools.product(seeds, (1, -1)):
            ties = torch.Generator(self.device).manual_seed(seed)
            with Float32Arithmetic(self.storage, self.device, seed, side), Choices(random=ties, side=side) as made:
                self.run(torch.float64)
            yield made

    def _show(self, varying: Mapping[int, Varying], seeds: Iterable[int]) -> None:
        for results in self._off(seeds):
            _add(varying, results)

    def _off(self, seeds: Iterable[int]) -> Iterator[Results]:
        """Results of two runs for each seed; none where nothing is rounded."""
        for seed, side in itertools.product(seeds, (1, -1)):
            with Float32Arithmetic(self.storage, self.device, seed, side) as arithmetic:
                results = self.run(torch.float64)
            if not arithmetic.moved:
                return
            yield results


def _add(varying: Mapping[int, Varying] | Mapping[int, VaryingValues], results: Results) -> None:
    for place, each in varying.items():
        each.add(results[place])
