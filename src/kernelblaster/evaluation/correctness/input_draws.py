"""Draws the inputs and weights of one input set, and perturbs them as timed calls do.

All torch work of the judge goes through one lock (`problems.reference.TORCH`), because seeds, default type and numeric
flags are global to torch.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

import torch

from kernelblaster.devices.base import PerturbationKind
from kernelblaster.errors import DeviceMemoryFull
from kernelblaster.evaluation.inputs.companions import accompany
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.drawing import (
    add_outlier,
    coarse,
    permitted_perturbation,
    randomize_constants,
    transform,
)
from kernelblaster.evaluation.inputs.integers import FLAGS, rearranged, transform_integers
from kernelblaster.evaluation.inputs.leading import Leading, burst, leading_input, mask, mix, places_of
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation, mirror_of
from kernelblaster.evaluation.inputs.recipes import Recipe
from kernelblaster.evaluation.inputs.tensors import (
    TORCH_DTYPES,
    borrowed_memory,
    drawing_threads,
    load_tensor,
)
from kernelblaster.problems.problem import TensorRole, TensorSpec
from kernelblaster.problems.reference import TORCH, weights_of

if TYPE_CHECKING:
    from pathlib import Path

    from kernelblaster.evaluation.inputs.keys import InputKey
    from kernelblaster.problems.problem import Problem
    from kernelblaster.problems.reference import Reference

DEEP_NETWORK = 16
"""Layers beyond which coarse weights keep their layer's size, or they would amplify a rounding in each; and beyond
which two results of PyTorch say little of what roundings cost."""


@dataclass(frozen=True)
class Draw:
    """Input tensors and weights of one input set, quantised as they are stored, on one device, and their module.

    Attributes:
        mixed: the input whose samples have distributions of their own; None where none has.
    """

    problem: Problem
    module: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    weights: dict[str, torch.Tensor]
    mixed: Leading | None = None

    @property
    def layers(self) -> int:
        """See `layers_of`."""
        inputs, weights = ([tensor.shape for tensor in some.values()] for some in (self.inputs, self.weights))
        return layers_of(inputs, weights)


def layers_of(inputs: Collection[tuple[int, ...]], weights: Iterable[tuple[int, ...]]) -> int:
    """Matrices among the weights, by all shapes; a scale or a shift of every element of a sample is none."""
    return sum(len(weight) > 1 and all(shape[-len(weight) :] != weight for shape in inputs) for weight in weights)


def draw(reference: Reference, workload: str, specs: Sequence[TensorSpec], recipe: Recipe, seed: int) -> Draw:
    """Draw input tensors and weights by a recipe from a seed, and quantise them as `specs` says.

    Large ones are drawn on a GPU: a host's one generator takes seconds for what it draws in milliseconds. A seed gives
    the same values on devices of one kind. Where a GPU's memory does not suffice, the host draws.

    Raises ProblemError.
    """
    asked = (reference, workload, specs, recipe, seed)
    with TORCH:
        with suppress(DeviceMemoryFull), borrowed_memory(_elements(specs)) as device:
            return _draw_on(device, *asked)
        return _draw_on(torch.device("cpu"), *asked)


def _elements(specs: Sequence[TensorSpec]) -> int:
    return sum(spec.elements for spec in specs)


def _draw_on(
    device: torch.device,
    reference: Reference,
    workload: str,
    specs: Sequence[TensorSpec],
    recipe: Recipe,
    seed: int,
) -> Draw:
    distribution, exponent = recipe.distribution, recipe.exponent
    stored = {spec.name: TORCH_DTYPES[spec.dtype] for spec in specs}
    with _seeded(seed, device, specs):
        module = reference.model(workload)
        generator = torch.Generator(device).manual_seed(seed)
        inputs = {
            name: _drawn_as(reference.problem, name, tensor.to(device), recipe, generator).to(stored[name])
            for name, tensor in reference.tensors(workload).items()
        }
        leading = _special_input(reference.problem, specs, inputs, distribution)
        if leading is not None:
            values = leading.samples_first(inputs[leading.name].float())
            if distribution is Distribution.MASKED:
                values = mask(values, exponent, generator, stored[leading.name])
            else:
                values = mix(values, exponent, generator, stored[leading.name], recipe.masks)
            inputs[leading.name] = leading.as_stored(values).to(stored[leading.name])
        if recipe.accompanied:
            _accompany(reference.problem, specs, inputs, leading, exponent, generator)
        elif leading is None and distribution in (Distribution.MIXED, Distribution.BURST):
            _burst(reference.problem, inputs, exponent, places_of(generator))
        weights = {
            name: (randomize_constants(tensor.to(device), generator) if tensor.is_floating_point() else tensor).to(
                device, stored[name], copy=True
            )
            for name, tensor in weights_of(module).items()
        }
        add_outlier(weights, distribution)
        if distribution is Distribution.COARSE:
            shapes = ([tensor.shape for tensor in some.values()] for some in (inputs, weights))
            deep = layers_of(*shapes) > DEEP_NETWORK
            weights = {name: _coarse(value, scaled=deep) for name, value in weights.items()}
    mixed = leading if distribution is Distribution.MIXED else None
    return Draw(reference.problem, module, inputs, weights, mixed)


@contextmanager
def _seeded(seed: int, device: torch.device, specs: Sequence[TensorSpec]) -> Iterator[None]:
    """Torch's global generators begin at a seed, and new tensors lie on a device. The caller holds `TORCH`."""
    elements = max(spec.elements for spec in specs)
    forked = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices=forked), torch.no_grad(), device, drawing_threads(elements):
        torch.manual_seed(seed)
        yield


def _special_input(
    problem: Problem, specs: Sequence[TensorSpec], inputs: Mapping[str, torch.Tensor], distribution: Distribution
) -> Leading | None:
    """The input that alone gets masks or a mixture; None where none may."""
    leading = leading_input(specs) if distribution in (Distribution.MASKED, Distribution.MIXED) else None
    return leading if leading is not None and may_change(problem, leading.name, inputs[leading.name]) else None


def may_change(problem: Problem, name: str, tensor: torch.Tensor) -> bool:
    """Whether an input holds numbers without structure, each of which may be another."""
    return tensor.is_floating_point() and permitted_perturbation(problem, name, tensor) is PerturbationKind.SHIFT


def _accompany(
    problem: Problem,
    specs: Sequence[TensorSpec],
    inputs: dict[str, torch.Tensor],
    leading: Leading | None,
    exponent: int,
    generator: torch.Generator,
) -> None:
    """Each input beside the leading one that may change becomes hard."""
    places = places_of(generator)
    one_number = not next(spec.shape for spec in specs if spec.role is TensorRole.OUTPUT)
    for name, tensor in inputs.items():
        if (leading is None or name != leading.name) and may_change(problem, name, tensor):
            hard = accompany(tensor.float(), exponent, generator, places, tensor.dtype, one_number=one_number)
            inputs[name] = hard.to(tensor.dtype)


def _burst(problem: Problem, inputs: dict[str, torch.Tensor], exponent: int, places: Random) -> None:
    """Each input that may change gets a piece that decides sums over it, larger by 2 to the `exponent`."""
    for name, tensor in inputs.items():
        if may_change(problem, name, tensor):
            values = tensor.float().contiguous()
            inputs[name] = burst(values.clone(), values, 2.0**exponent, values.numel(), places).to(tensor.dtype)


def _drawn_as(
    problem: Problem,
    name: str,
    tensor: torch.Tensor,
    recipe: Recipe,
    generator: torch.Generator,
) -> torch.Tensor:
    """An input of the wanted distribution; as it is declared where the problem keeps it.

    Integers without bounds, and flags, change beside a mixture alone, and not what is ordered.
    """
    if name in problem.kept:
        return tensor
    if tensor.is_floating_point():
        return transform(tensor, recipe.distribution, recipe.exponent, generator)
    bounds = problem.ranges.get(name)
    if bounds is not None:
        return transform_integers(tensor, bounds, recipe.distribution, generator)
    if not recipe.accompanied or permitted_perturbation(problem, name, tensor) is not PerturbationKind.ROTATE:
        return tensor
    if tensor.dtype is torch.bool:
        return transform_integers(tensor, FLAGS, recipe.distribution, generator)
    return rearranged(tensor, generator)


def _coarse(weight: torch.Tensor, *, scaled: bool) -> torch.Tensor:
    """A coarse weight of the same type; torch has no arithmetic for formats of 8 bits.

    A matrix that is `scaled` is a power of two near its mean size, so that its layer keeps the size of what passes.
    """
    if not weight.is_floating_point():
        return weight
    values = weight if weight.element_size() > 1 else weight.float()
    mean = float(values.float().abs().mean()) if scaled and values.ndim > 1 else 0.0
    size = 2.0 ** round(math.log2(mean)) if mean else 1.0
    return (coarse(values) * size).to(weight.dtype)


def perturb(
    reference: Reference,
    key: InputKey,
    specs: Sequence[TensorSpec],
    files: Mapping[str, Path],
    perturbation_kinds: Mapping[str, PerturbationKind],
    mixed: Leading | None = None,
) -> Draw:
    """The draw of `key` unperturbed, read from its files onto the compute device, and then perturbed; `mixed` as of it.

    Raises ProblemError, DeviceMemoryFull.
    """
    with TORCH, borrowed_memory(_elements(specs)) as device, _seeded(key.seed, device, specs):
        module = reference.model(key.workload)
        values = {
            spec.name: apply_perturbation(
                load_tensor(files[spec.name], spec, device).reshape(spec.shape),
                perturbation_kinds[spec.name],
                index,
                key.perturbation,
                mirror_of(key.problem, spec.name),
            )
            for index, spec in enumerate(specs)
            if spec.role is not TensorRole.OUTPUT
        }
    roles = {spec.name: spec.role for spec in specs}
    inputs = {name: value for name, value in values.items() if roles[name] is TensorRole.INPUT}
    weights = {name: value for name, value in values.items() if roles[name] is TensorRole.WEIGHT}
    return Draw(reference.problem, module, inputs, weights, mixed)
