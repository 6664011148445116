"""Would the judge itself pass a kernel that leaves out the work? The second half of a problem's audit.

`problems.audit` looks at the reference in float64. Here stand-ins for kernels are held against the input sets and the
error budget of one precision, as candidates are: zeros, the mean, a copy of an input, the result of other inputs, the
reference with one input or weight left out, and without what `problems.shortcuts` names: a bound or branch of an
activation, half of a tensor, the signs of an input. What every input set passes is a fault of the problem.

At the cheap size the sets are all that a candidate must pass there; at another it is the one that is timed, which alone
stands between a kernel and a shortcut that it takes at that size only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.inputs.distributions import accumulation
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.plan import ORDER, plan_inputs
from kernelblaster.problems.problem import Precision, Problem, TensorRole
from kernelblaster.problems.reference import load_reference

if TYPE_CHECKING:
    import torch

    from kernelblaster.evaluation.correctness.input_draws import Draw
    from kernelblaster.evaluation.correctness.reference_output import ReferenceTensor
    from kernelblaster.problems.shortcuts import Shortcut

StandIn = Callable[[InputSet], Sequence["torch.Tensor"]]
"""What it leaves in each output: a tensor of as many elements, or one for all."""
_SEED, _OTHER_SEED = 20_260_803, 20_260_804
_FACTOR = 2.0
"""c of the error budget, as `EvaluationConfig` has it."""


def admission_faults(
    problem: Problem,
    precision: Precision,
    inputs: InputStore,
    workload: str | None = None,
    shortcuts: Sequence[Shortcut] = (),
) -> list[str]:
    """Stand-ins for kernels that the judge would pass, one line each.

    Args:
        problem: what is audited.
        precision: of the stand-ins.
        inputs: draws the sets.
        workload: at which size; the cheap one if None.
        shortcuts: what kernels might leave out, see `problems.shortcuts`.

    Raises ProblemError and DeviceError.
    """
    keys, others = (_keys(problem, precision, workload, seed) for seed in (_SEED, _OTHER_SEED))
    stale = _stale(dict(zip(keys, others, strict=True)), inputs)
    stand_ins = {
        **_constants(keys[0], inputs),
        "the result of other inputs": stale,
        **{f"a kernel without {shortcut}": _taking(shortcut) for shortcut in shortcuts},
    }
    return [
        f"{name} passes in {precision}"
        for name, stand_in in stand_ins.items()
        if all(_passes(stand_in, key, inputs) for key in keys)
    ]


class _Crashes(Exception):
    """A stand-in does not get through on some inputs."""


def _keys(problem: Problem, precision: Precision, workload: str | None, seed: int) -> tuple[InputKey, ...]:
    if workload in (None, problem.cheap_workload):
        return plan_inputs(problem, precision, problem.cheap_workload, len(ORDER), seed).small
    return (plan_inputs(problem, precision, workload, len(ORDER), seed).timed,)


def _passes(stand_in: StandIn, key: InputKey, inputs: InputStore) -> bool:
    """Whether every output that a stand-in leaves is within budget."""
    from kernelblaster.evaluation.correctness.compare import would_be_refused

    with inputs.use(key) as drawn:
        loss = accumulation(drawn.distribution)
        try:
            left = stand_in(drawn)
        except _Crashes:
            return False
        for expected, got in zip(drawn.expected.tensors, left, strict=True):
            if would_be_refused(expected, _stored(got, expected), _FACTOR, loss):
                return False
        return True


def _stored(got: torch.Tensor, expected: ReferenceTensor) -> torch.Tensor:
    """What a stand-in gives, as a launcher would have stored it; in the reference's shape and type."""
    from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES

    shape, dtype = expected.values.shape, expected.values.dtype
    whole = got.expand(shape) if got.numel() == 1 else got.reshape(shape)
    return whole.to(TORCH_DTYPES[expected.spec.dtype]).to(dtype)


def _constants(key: InputKey, inputs: InputStore) -> dict[str, StandIn]:
    """Zeros, the mean, copies, and the reference without one tensor; names are the same for every set."""
    import torch

    found: dict[str, StandIn] = {
        "a kernel that gives zeros": lambda drawn: [torch.zeros(()) for _ in drawn.outputs],
    }
    with inputs.use(key) as drawn:
        if any(spec.elements > 1 for spec in drawn.outputs):
            found["a kernel that gives the mean"] = lambda drawn: [
                tensor.values.double().mean() for tensor in drawn.expected.tensors
            ]
        for spec in drawn.specs:
            if spec.role is TensorRole.OUTPUT:
                continue
            found[f"a kernel that ignores {spec.name}"] = _without(spec.name)
            if spec.role is TensorRole.INPUT and all(spec.elements == output.elements for output in drawn.outputs):
                found[f"a copy of {spec.name}"] = _copy(spec.name)
    return found


def _copy(name: str) -> StandIn:
    return lambda drawn: [_tensors(drawn).inputs[name].double().cpu() for _ in drawn.outputs]


def _without(name: str) -> StandIn:
    """The reference with zeros in the place of a tensor."""

    def stand_in(drawn: InputSet) -> Sequence[torch.Tensor]:
        from kernelblaster.evaluation.correctness.reference_output import exact_result

        given = _tensors(drawn)
        table = given.inputs if name in given.inputs else given.weights
        table[name] = table[name].new_zeros(table[name].shape)
        return exact_result(given, drawn.outputs)

    return stand_in


def _taking(shortcut: Shortcut) -> StandIn:
    """The reference with a shortcut."""

    def stand_in(drawn: InputSet) -> Sequence[torch.Tensor]:
        from kernelblaster.evaluation.correctness.reference_output import exact_result
        from kernelblaster.problems.branches import Branch, without
        from kernelblaster.problems.shortcuts import left_out

        given = _tensors(drawn)
        if isinstance(shortcut, Branch):
            try:
                with without(shortcut):
                    return exact_result(given, drawn.outputs)
            except IndexError as error:  # the bound of an index: a kernel without it reads beyond a tensor
                raise _Crashes from error
        shorter = replace(given, inputs=left_out(shortcut, given.inputs), weights=left_out(shortcut, given.weights))
        return exact_result(shorter, drawn.outputs)

    return stand_in


def _stale(others: dict[InputKey, InputKey], inputs: InputStore) -> StandIn:
    """The reference of another draw of the same distribution."""

    def stand_in(drawn: InputSet) -> Sequence[torch.Tensor]:
        with inputs.use(others[drawn.key]) as other:
            return [tensor.values for tensor in other.expected.tensors]

    return stand_in


def _tensors(drawn: InputSet) -> Draw:
    from kernelblaster.evaluation.correctness.input_draws import perturb

    return perturb(load_reference(drawn.key.problem), drawn.key, drawn.specs, drawn.files, drawn.perturbation_kinds)
