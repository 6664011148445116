"""Chooses how an input set is drawn: the first of its recipes by which the problem's result tells right from wrong.

A mixture gets masked samples where the problem defines what becomes of infinities and each sample decides its own part
of the outputs alone. The cheap size finds out; a larger one begins with what the cheap one ended with, so that it
seldom needs more than one reference.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace

from kernelblaster.evaluation.correctness.infinities import defines_infinities, spoils_nothing
from kernelblaster.evaluation.correctness.input_draws import Draw, draw, layers_of
from kernelblaster.evaluation.correctness.reference_output import ReferenceOutput, informative, solve
from kernelblaster.evaluation.correctness.steadiness import steady
from kernelblaster.evaluation.inputs.distributions import FAR_FROM_ZERO, MASKS_OF_MIXTURES, Distribution
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.leading import leading_input
from kernelblaster.evaluation.inputs.recipes import Recipe, going_on, recipes
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Problem, TensorRole, TensorSpec
from kernelblaster.problems.reference import load_reference, tensor_specs

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Chosen:
    """A draw, how it was made, and what must come out; None for a set that is not judged."""

    recipe: Recipe
    drawn: Draw
    expected: ReferenceOutput | None


def choose(key: InputKey, specs: Sequence[TensorSpec]) -> Chosen:
    """Draw the set of an unperturbed key, and compute its reference if it is judged.

    Args:
        key: whose first draw that is informative, or else the last, is taken.
        specs: tensors of its problem at its size.

    Raises ProblemError and DeviceError.
    """
    kitchen = _Kitchen(key, specs)
    companions = _companions(key.problem, specs)
    flags = any(spec.dtype is DType.BOOL for spec in companions)
    wanted = recipes(key.draws, key.precision, _layers(specs), companions=bool(companions), flags=flags)
    if not key.judged:
        return kitchen.unjudged(wanted[0])
    cheap = key.problem.cheap_workload
    mixed = key.draws[0] is Distribution.MIXED
    if not mixed or key.workload == cheap:
        chosen = kitchen.first_of(wanted)
        return kitchen.masked(chosen) if mixed else chosen
    small = choose(replace(key, workload=cheap), tensor_specs(key.problem, cheap, key.precision))
    return kitchen.first_of(going_on(wanted, small.recipe))


class _Kitchen:
    """Draws one key by different recipes."""

    def __init__(self, key: InputKey, specs: Sequence[TensorSpec]) -> None:
        self._key, self._specs = key, specs
        self._reference = load_reference(key.problem)
        self._leading = leading_input(specs)
        self._outputs = [spec for spec in specs if spec.role is TensorRole.OUTPUT]

    def unjudged(self, recipe: Recipe) -> Chosen:
        """Inputs alone."""
        return Chosen(recipe, draw(self._reference, self._key.workload, self._specs, recipe, self._key.seed), None)

    def first_of(self, wanted: Sequence[Recipe]) -> Chosen:
        """By the first recipe that tells something, or else the last."""
        for recipe in wanted[:-1]:
            chosen = self._tried(recipe)
            if chosen is not None:
                return chosen
        return self._made(wanted[-1])[0]

    def masked(self, chosen: Chosen) -> Chosen:
        """A mixture with the hardest masks that the problem defines, if it defines any."""
        if chosen.recipe.distribution is not Distribution.MIXED or self._leading is None or not self._leading.mapped:
            return chosen
        *harder, mildest = MASKS_OF_MIXTURES
        found = self._tried(replace(chosen.recipe, masks=mildest))
        if found is None:
            return chosen
        for masks in harder:
            better = self._tried(replace(chosen.recipe, masks=masks))
            if better is not None:
                return better
        return found

    def _tried(self, recipe: Recipe) -> Chosen | None:
        """None where the result tells nothing, or is not defined."""
        chosen, expected = self._made(recipe)
        if (
            informative(expected, recipe.distribution, layers=_layers(self._specs), infinite=recipe.infinite)
            and (not recipe.infinite or self._defines(chosen.drawn, recipe, expected))
            and (not self._may_be_luck(recipe) or self._steady(chosen.drawn, recipe, expected))
        ):
            return chosen
        _LOG.debug("%s at %s: %s tells nothing", self._key.problem.slug, self._key.workload, recipe)
        return None

    def _may_be_luck(self, recipe: Recipe) -> bool:
        """Whether results may hang on the last digits of sums: large ones that a layer gives, products of inputs."""
        behind_layers = _layers(self._specs) > 0
        return recipe.distribution in ((Distribution.LARGE, Distribution.COARSE) if behind_layers else FAR_FROM_ZERO)

    def _steady(self, drawn: Draw, recipe: Recipe, expected: ReferenceOutput) -> bool:
        return steady(drawn, expected, self._key.precision, recipe.distribution)

    def _defines(self, drawn: Draw, recipe: Recipe, expected: ReferenceOutput) -> bool:
        if self._leading is None:
            return False
        if recipe.distribution is Distribution.MIXED and self._key.workload != self._key.problem.cheap_workload:
            return spoils_nothing(drawn, self._leading, expected)
        return defines_infinities(drawn, self._leading, expected, self._outputs)

    def _made(self, recipe: Recipe) -> tuple[Chosen, ReferenceOutput]:
        drawn = draw(self._reference, self._key.workload, self._specs, recipe, self._key.seed)
        expected = solve(drawn, self._outputs, self._key.precision, recipe.distribution)
        return Chosen(recipe, drawn, expected), expected


def _companions(problem: Problem, specs: Sequence[TensorSpec]) -> list[TensorSpec]:
    """Inputs that may be hard beside the leading one, or where none leads."""
    leading = leading_input(specs)
    inputs = [spec for spec in specs if spec.role is TensorRole.INPUT and spec.name not in problem.ranges]
    return [spec for spec in inputs if leading is None or spec.name != leading.name]


def _layers(specs: Sequence[TensorSpec]) -> int:
    inputs, weights = (
        [spec.shape for spec in specs if spec.role is role] for role in (TensorRole.INPUT, TensorRole.WEIGHT)
    )
    return layers_of(inputs, weights)
