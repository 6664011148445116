"""How often is an honest kernel refused for its roundings? Plain fp32 arithmetic in another order, judged at random.

    python benchmarks/honest_refusals.py --json FILE [--only PATTERN] [--seeds N] [--precisions fp16,bf16,fp32]
    python benchmarks/honest_refusals.py --render FILE

No kernel runs: PyTorch computes on the CPU what one would, in fp32, each sum by as many threads as
`evaluation/correctness/long_sums.py` takes for the plainest kernel, every thread adding one term after the other; the
result is rounded once. Scans add one term after the other. It is judged as an output of the timed size is: by the input
set of that size and by perturbations of it, each with its reference. Sizes are reduced, and threads alike, so that a
thread adds as many terms as at size medium. `--render` prints the table of docs/methods.md. Rows that FILE has are not
judged again.
"""

from __future__ import annotations

import argparse
import fnmatch
import itertools
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import torch
from pydantic import BaseModel
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

from kernelblaster.evaluation.correctness import long_sums
from kernelblaster.evaluation.correctness.compare import compare_output
from kernelblaster.evaluation.correctness.error_scale import Losses
from kernelblaster.evaluation.correctness.input_draws import Draw, perturb
from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.correctness.reference_output import ReferenceTensor
from kernelblaster.evaluation.inputs.distributions import accumulation
from kernelblaster.evaluation.inputs.plan import plan_inputs
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, write_tensor
from kernelblaster.paths import data_dir
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.problems.reference import load_reference, run_model, tensor_specs
from kernelblaster.problems.shape_only import shapes_only

TAGS = frozenset({"elementwise", "loss", "norm", "pool", "reduction", "scan", "softmax"})
FACTOR, POISON, PERTURBATIONS = 2.0, 0xFF, 1
ELEMENTS = 300_000
"""Of all tensors of a reduced problem, about. Normalisations have more: else few threads would share their sums."""
LEAST_EXTENT = 16
EXTENTS = {
    "033": {"batch_size": 7, "features": 16, "dim1": 128, "dim2": 128},
    "034": {"batch_size": 8, "features": 8, "dim1": 192, "dim2": 192},
    "035": {"batch_size": 8, "features": 8, "num_groups": 1, "dim1": 181, "dim2": 181},
    "040": {"batch_size": 16, "features": 32, "dim1": 96, "dim2": 96},
}
LEFT_OUT = "026"
"""PyTorch's GELU in fp32 gives NaN for infinity on CPUs, as no kernel does."""
MEDIUM = StandardWorkload.MEDIUM
_ATEN, _PRIMS = torch.ops.aten, torch.ops.prims
_MADE_OF_SUMS = frozenset(
    {
        _ATEN.native_layer_norm,
        _ATEN.native_group_norm,
        _ATEN.native_batch_norm,
        _ATEN._native_batch_norm_legit,
        _ATEN._softmax,
        _ATEN._log_softmax,
        _ATEN.mse_loss,
        _ATEN.smooth_l1_loss,
        _ATEN.huber_loss,
        _ATEN.nll_loss_forward,
        _ATEN.linalg_vector_norm,
        _ATEN.norm,
        _ATEN.var,
        _ATEN.var_mean,
        _ATEN.std,
        _ATEN.std_mean,
        _ATEN.mean,
        _ATEN.logsumexp,
    }
)


_SCANS: dict[object, Callable[..., torch.Tensor]] = {_ATEN.cumsum: torch.add, _ATEN.cumprod: torch.mul}


class Refusals(BaseModel):
    """What became of one problem's honest results in one precision.

    Attributes:
        problem: `040_LayerNorm`.
        precision: of its tensors.
        reduced: by what its longest sum is shorter than at size medium.
        judged: results.
        refused: of them, by the judge as it is.
        without_drift: of them, if roundings of one sign were granted nothing.
        worst: largest error over its budget.
        worst_without_drift: the same, without.
    """

    problem: str
    precision: Precision
    reduced: float
    judged: int
    refused: int
    without_drift: int
    worst: float
    worst_without_drift: float


class Study(BaseModel):
    """Everything that was judged, and how."""

    torch: str
    seeds: int
    rows: list[Refusals]


class SerialSums(TorchDispatchMode):
    """While it is entered, sums are taken by few threads, each of which adds serially in fp32; scans by one per row."""

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        named, operation = kwargs or {}, func.overloadpacket
        if operation in (_ATEN.sum, _PRIMS.sum, _PRIMS.var) and isinstance(args[0], torch.Tensor):
            values = args[0]
            wanted = args[1] if len(args) > 1 else named.get("dim")
            axes = [wanted] if isinstance(wanted, int) else list(wanted or range(values.ndim))  # type: ignore[call-overload]
            axes = [axis % values.ndim for axis in axes]
            if operation is _PRIMS.var:
                return self._variance(values, axes, float(named.get("correction") or 0))  # type: ignore[arg-type]
            total = self._sum(values, axes)
            kept = operation is _ATEN.sum and (args[2] if len(args) > 2 else named.get("keepdim"))
            return _with_axes(total, axes) if kept else total
        if operation in _SCANS:
            return _scan(_SCANS[operation], *args, **named)  # type: ignore[arg-type]
        if operation in _MADE_OF_SUMS and func in decomposition_table:
            with self:
                return decomposition_table[func](*args, **named)
        return func(*args, **named)

    def _variance(self, values: torch.Tensor, axes: list[int], correction: float) -> torch.Tensor:
        count = math.prod(values.shape[axis] for axis in axes)
        mean = self._sum(values, axes) / count
        return self._sum((values - _with_axes(mean, axes)).square(), axes) / (count - correction)

    def _sum(self, values: torch.Tensor, axes: list[int]) -> torch.Tensor:
        kept = [axis for axis in range(values.ndim) if axis not in axes]
        ordered = values.permute(kept + axes)
        rows = ordered.reshape(math.prod(ordered.shape[: len(kept)]), -1)
        lanes = long_sums.LANES if rows.shape[0] > 1 else long_sums.LANES_OF_ONE
        lanes = min(max(round(lanes), 1), rows.shape[1])
        total = torch.zeros(rows.shape[0], lanes, dtype=values.dtype)
        for part in rows.split(lanes, dim=1):
            total[:, : part.shape[1]] += part
        return total.sum(1).reshape(ordered.shape[: len(kept)])


def _scan(
    step: Callable[..., torch.Tensor], values: torch.Tensor, dim: int, *, dtype: torch.dtype | None = None
) -> torch.Tensor:
    """Prefixes in the type of the values, one after the other: on a CPU, PyTorch's own are taken in fp64."""
    rows = values.to(dtype).movedim(dim, 0).contiguous()
    for before, now in itertools.pairwise(rows):
        step(before, now, out=now)
    return rows.movedim(0, dim)


def _with_axes(values: torch.Tensor, axes: Sequence[int]) -> torch.Tensor:
    for axis in sorted(axes):
        values = values.unsqueeze(axis)
    return values


def longest_sum(problem: Problem) -> int:
    """Terms of the longest sum at size medium."""
    reference, longest = load_reference(problem), long_sums.LongestSum()
    with shapes_only():
        model, inputs = reference.model(MEDIUM), reference.tensors(MEDIUM)
        with longest:
            run_model(problem, model, inputs)
    return longest.terms


def reduced(problem: Problem, precision: Precision) -> Problem:
    """The problem with a smaller size medium: fewer sums while that suffices, then shorter ones."""
    if (number := problem.directory.name[:3]) in EXTENTS:
        return _with(problem, EXTENTS[number])
    longest = longest_sum(problem)
    for shorten in (False, True):
        while (now := _elements(problem, precision)) > ELEMENTS:
            smaller = _halved(problem, now, precision, None if shorten else longest)
            if smaller is None:
                break
            problem = smaller
    return problem


def _halved(problem: Problem, elements: int, precision: Precision, longest: int | None) -> Problem | None:
    """The problem with the largest extent halved that leaves the longest sum as it is, where that is asked for."""
    extents = problem.workloads[MEDIUM]
    for name in sorted(extents, key=lambda name: -extents[name]):
        if extents[name] <= (LEAST_EXTENT if longest else 4 * LEAST_EXTENT):
            continue
        smaller = _with(problem, {name: extents[name] // 2})
        if _elements(smaller, precision) < elements and longest in (None, longest_sum(smaller)):
            return smaller
    return None


def _with(problem: Problem, extents: dict[str, int]) -> Problem:
    return replace(problem, workloads={**problem.workloads, MEDIUM: {**problem.workloads[MEDIUM], **extents}})


def _elements(problem: Problem, precision: Precision) -> int:
    return sum(spec.elements for spec in tensor_specs(problem, MEDIUM, precision))


def honest_results(problem: Problem, drawn: Draw) -> tuple[torch.Tensor, ...]:
    """What the plainest fp32 kernel gives, before it is stored."""

    def wide(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_floating_point():
            return tensor.float()
        return tensor if tensor.dtype is torch.bool else tensor.long()

    module = drawn.module.float()
    weights = {name: wide(weight) for name, weight in drawn.weights.items()}
    module.load_state_dict({**module.state_dict(), **weights})
    inputs = {name: wide(value) for name, value in drawn.inputs.items()}
    with torch.no_grad(), SerialSums():  # type: ignore[no-untyped-call]
        return run_model(problem, module, inputs)


def _without_drift(expected: ReferenceTensor) -> ReferenceTensor:
    scale = expected.scale
    if scale is None or scale.parts.losses is None:
        return expected
    losses = Losses(scale.parts.losses.random, torch.zeros_like(scale.parts.losses.drift))
    return replace(expected, scale=replace(scale, parts=replace(scale.parts, losses=losses)))


def over_budget(output: Path, expected: ReferenceTensor, judged: InputSet) -> float:
    """Largest error of a stored output over its budget; more than 1 is refused."""
    loss, finite = accumulation(judged.distribution), not judged.infinite
    return compare_output(output, expected, FACTOR, loss, POISON, judge_nan=finite).ratio


def ratios(problem: Problem, precision: Precision, seeds: int) -> Iterator[tuple[float, float]]:
    """Error over budget of each honest result, as the judge is and without drift; more than 1 is refused."""
    with tempfile.TemporaryDirectory() as directory, InputStore(Path(directory)) as store:
        path = Path(directory) / "output.bin"
        for seed in range(seeds):
            key = plan_inputs(problem, precision, MEDIUM, 10, seed).timed
            for place in range(PERTURBATIONS + 1):
                number = 0 if place == 0 else Random(f"{seed}/{place}").getrandbits(63)
                with store.use(key) as base, store.use(replace(key, perturbation=number)) as judged:
                    given = (base.specs, base.files, base.perturbation_kinds, base.mixed)
                    drawn = perturb(load_reference(problem), judged.key, *given)
                    for result, expected in zip(honest_results(problem, drawn), judged.expected.tensors, strict=True):
                        write_tensor(path, result.to(TORCH_DTYPES[expected.spec.dtype]))
                        yield over_budget(path, expected, judged), over_budget(path, _without_drift(expected), judged)


def judge(problem: Problem, precision: Precision, seeds: int) -> Refusals:
    """All results of one problem in one precision."""
    smaller = reduced(problem, precision)
    reduction = longest_sum(problem) / longest_sum(smaller)
    kept = long_sums.LANES, long_sums.LANES_OF_ONE
    long_sums.LANES, long_sums.LANES_OF_ONE = (lanes / reduction for lanes in kept)
    try:
        found = list(ratios(smaller, precision, seeds))
    finally:
        long_sums.LANES, long_sums.LANES_OF_ONE = kept
    now, without = zip(*found, strict=True)
    return Refusals(
        problem=problem.directory.name,
        precision=precision,
        reduced=reduction,
        judged=len(found),
        refused=sum(not ratio <= 1 for ratio in now),
        without_drift=sum(not ratio <= 1 for ratio in without),
        worst=max(now),
        worst_without_drift=max(without),
    )


def render(study: Study) -> Iterator[str]:
    """The table: a line per precision, and one per problem of which any result was refused."""
    yield "| problems | precision | results | refused | without drift | largest error / budget | without drift |"
    yield "|---|---|---|---|---|---|---|"
    for precision in dict.fromkeys(row.precision for row in study.rows):
        rows = [row for row in study.rows if row.precision is precision]
        yield _line(f"all {len(rows)}", rows)
        yield from (_line(row.problem, [row]) for row in rows if row.refused or row.without_drift)


def _line(name: str, rows: Sequence[Refusals]) -> str:
    cells = (
        name,
        rows[0].precision,
        sum(row.judged for row in rows),
        sum(row.refused for row in rows),
        sum(row.without_drift for row in rows),
        f"{max(row.worst for row in rows):.2f}",
        f"{max(row.worst_without_drift for row in rows):.2f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def options(description: str | None, *, seeds: int, precisions: str) -> argparse.ArgumentParser:
    """What a study of refusals is asked for on the command line."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--render", type=Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--seeds", type=int, default=seeds)
    parser.add_argument("--precisions", default=precisions)
    return parser


def main() -> None:
    """Command line."""
    asked = options(__doc__, seeds=20, precisions="fp16,bf16,fp32").parse_args()
    if asked.render is not None:
        print("\n".join(render(Study.model_validate_json(asked.render.read_text(encoding="utf-8")))))
        return
    if asked.json is None:
        sys.exit("--json FILE or --render FILE is needed")
    study = Study(torch=torch.__version__, seeds=asked.seeds, rows=[])
    if asked.json.is_file():
        study = Study.model_validate_json(asked.json.read_text(encoding="utf-8"))
    known = {(row.problem, row.precision) for row in study.rows}
    for directory in sorted((data_dir() / "kernelbench-cuda" / "level1").iterdir()):
        problem = load_problem(directory)
        judged = bool(TAGS & {tag.value for tag in problem.tags}) and not directory.name.startswith(LEFT_OUT)
        if not judged or not fnmatch.fnmatch(directory.name, asked.only):
            continue
        for precision in map(Precision, asked.precisions.split(",")):
            if (directory.name, precision) not in known:
                study.rows.append(judge(problem, precision, study.seeds))
                print(study.rows[-1], flush=True)
                asked.json.write_text(study.model_dump_json(indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
