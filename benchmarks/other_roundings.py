"""How often is an honest kernel refused whose products are summed otherwise than PyTorch's? Judged at size small.

    python benchmarks/other_roundings.py --json FILE [--only PATTERN] [--seeds N] [--precisions fp16,bf16] [--minutes M]
    python benchmarks/other_roundings.py --render FILE

No kernel runs: PyTorch computes on the CPU what the judge's plain result is made of, in the run's precision, and each
product is off at random by about what fp32 loses when it is summed in another order, before it is rounded as PyTorch
rounds it, but for those of which fp32 rounds no sum. Each input set that a candidate must pass at the declared small
size is judged so. Rows that FILE has are not judged again. `--render` prints a table.
"""

from __future__ import annotations

import fnmatch
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from honest_refusals import options, over_budget
from pydantic import BaseModel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from kernelblaster import list_problems
from kernelblaster.evaluation.correctness.input_draws import perturb
from kernelblaster.evaluation.correctness.input_store import InputSet, InputStore
from kernelblaster.evaluation.correctness.reference_runs import numerics, run
from kernelblaster.evaluation.correctness.widening import PRODUCTS, Widened
from kernelblaster.evaluation.inputs.plan import plan_inputs
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, storage_dtype, write_tensor
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.problems.reference import TORCH, load_reference
from kernelblaster.storage.atomic import write_atomically

SETS = 10
RESULTS = 2
"""Honest results of each input set."""
FIRST_SEED = 1000
"""Of what products are moved by."""
OFF = 4 * torch.finfo(torch.float32).eps
"""Of a product, before it is rounded: relative to the root mean square of its row or sample."""
CPU = torch.device("cpu")


class OtherRoundings(BaseModel):
    """What became of one problem's honest results in one precision.

    Attributes:
        problem: `level1/040`.
        precision: of its tensors.
        judged: results, by distribution.
        refused: of them.
        worst: largest error over its budget.
    """

    problem: str
    precision: Precision
    judged: dict[str, int]
    refused: dict[str, int]
    worst: float


class Study(BaseModel):
    """Everything that was judged, and how."""

    torch: str
    seeds: int
    rows: list[OtherRoundings]


class SummedOtherwise(TorchDispatchMode):
    """While it is entered, products are taken in float32, moved at random by `OFF`, and rounded to their type.

    Not those that float32 has exactly, as of coarse values: no order of their terms gives others.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._random = torch.Generator(CPU).manual_seed(seed)

    def __torch_dispatch__(
        self,
        func: torch._ops.OpOverload,
        types: Sequence[type],
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        given = (args, kwargs or {})
        if func.overloadpacket not in PRODUCTS:
            return func(*given[0], **given[1])
        dtype = next(one.dtype for one in tree_leaves(given) if isinstance(one, torch.Tensor))
        narrow, wide = (tree_map_only(torch.Tensor, cast, given) for cast in (torch.Tensor.float, torch.Tensor.double))
        result, exact = func(*narrow[0], **narrow[1]), func(*wide[0], **wide[1])
        assert isinstance(result, torch.Tensor)
        assert isinstance(exact, torch.Tensor)
        if torch.equal(result.double(), exact):
            return result.to(dtype)
        noise = torch.randn(result.shape, generator=self._random)
        rest = tuple(range(1, result.ndim))
        scale = result.square().mean(rest, keepdim=True).sqrt().nan_to_num(posinf=0.0)
        return (result + OFF * scale * noise).to(dtype)


def honest_results(problem: Problem, given: InputSet, precision: Precision) -> Iterator[tuple[torch.Tensor, ...]]:
    """The outputs of kernels that sum products otherwise, in the run's precision."""
    dtype = storage_dtype(precision)
    kinds = given.perturbation_kinds
    drawn = perturb(load_reference(problem), given.key, given.specs, given.files, kinds, given.mixed)
    for seed in range(FIRST_SEED, FIRST_SEED + RESULTS):
        with TORCH, torch.no_grad(), numerics(), Widened(dtype), SummedOtherwise(seed):
            yield run(drawn, dtype, CPU)


def _largest_over_budget(path: Path, result: Sequence[torch.Tensor], given: InputSet) -> float:
    """Of all floating-point outputs, each of which is stored at `path` in turn; infinite where it is not a number."""
    found = [0.0]
    for output, expected in zip(result, given.expected.tensors, strict=True):
        if expected.scale is not None:
            write_tensor(path, output.to(TORCH_DTYPES[expected.spec.dtype]))
            found.append(over_budget(path, expected, given))
    return math.inf if any(map(math.isnan, found)) else max(found)


def judge(problem: Problem, precision: Precision, seeds: int) -> OtherRoundings:
    """All results of one problem in one precision."""
    judged, refused, worst = dict[str, int](), dict[str, int](), 0.0
    with tempfile.TemporaryDirectory() as directory, InputStore(Path(directory)) as store:
        path = Path(directory) / "output.bin"
        for seed in range(seeds):
            for key in plan_inputs(problem, precision, StandardWorkload.SMALL, SETS, seed).small:
                with store.use(key) as given:
                    distribution = str(given.distribution)
                    for result in honest_results(problem, given, precision):
                        ratio = _largest_over_budget(path, result, given)
                        judged[distribution] = judged.get(distribution, 0) + 1
                        refused[distribution] = refused.get(distribution, 0) + (not ratio <= 1)
                        worst = max(worst, ratio)
    return OtherRoundings(
        problem=str(problem.id), precision=precision, judged=judged, refused=refused, worst=round(worst, 3)
    )


def render(study: Study) -> Iterator[str]:
    """A line per precision, and one per problem of which any result was refused, the most first."""
    yield "| problems | precision | results | refused | of which | largest error / budget |"
    yield "|---|---|---:|---:|---|---:|"
    for precision in dict.fromkeys(row.precision for row in study.rows):
        rows = [row for row in study.rows if row.precision is precision]
        yield _line(f"all {len(rows)}", rows)
        told = [row for row in rows if sum(row.refused.values())]
        yield from (_line(row.problem, [row]) for row in sorted(told, key=lambda row: -sum(row.refused.values())))


def _line(name: str, rows: list[OtherRoundings]) -> str:
    refused = dict[str, int]()
    for row in rows:
        for distribution, count in row.refused.items():
            if count:
                refused[distribution] = refused.get(distribution, 0) + count
    which = ", ".join(f"{distribution} {count}" for distribution, count in refused.items())
    judged = sum(sum(row.judged.values()) for row in rows)
    worst = max(row.worst for row in rows)
    return f"| {name} | {rows[0].precision} | {judged} | {sum(refused.values())} | {which} | {worst:.2f} |"


def main() -> None:
    """Command line."""
    parser = options(__doc__, seeds=2, precisions="fp16,bf16")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no problem later than this")
    asked = parser.parse_args()
    if asked.render is not None:
        print("\n".join(render(Study.model_validate_json(asked.render.read_text(encoding="utf-8")))))
        return
    if asked.json is None:
        sys.exit("--json FILE or --render FILE is needed")
    study = Study(torch=torch.__version__, seeds=asked.seeds, rows=[])
    if asked.json.exists():
        study = Study.model_validate_json(asked.json.read_text(encoding="utf-8"))
    known, began = {(row.problem, row.precision) for row in study.rows}, time.monotonic()
    for problem in list_problems():
        for precision in map(Precision, asked.precisions.split(",")):
            if (str(problem.id), precision) in known or not fnmatch.fnmatch(str(problem.id), asked.only):
                continue
            if time.monotonic() - began > 60 * asked.minutes:
                return
            study.rows.append(judge(problem, precision, study.seeds))
            write_atomically(asked.json, study.model_dump_json(indent=1) + "\n")
            print(_line(study.rows[-1].problem, study.rows[-1:]), flush=True)


if __name__ == "__main__":
    main()
