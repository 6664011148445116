"""What an evaluation says against something that its judge did not time it with, or did not look for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kernelblaster.cuda_source.features import Feature, source_features
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.against_pytorch import known_times
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.evaluation.timing.pytorch_times import ModeTime, read_times
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.knowledge.credit import executed
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.training.rows import PromptRow


def eager_times(
    problems: Iterable[Problem], facts: DeviceFacts, precision: Precision, workload: str, file: Path | None
) -> dict[str, ModeTime]:
    """PyTorch's eager time of each problem, by its id.

    Args:
        problems: to look up.
        facts: of the GPU.
        precision: of candidates; a problem that has its own is looked up in that.
        workload: size that is timed.
        file: of times on this GPU; those that ship if None.

    Raises UsageError where one is missing, or where times are modelled.
    """
    if facts.kind is not DeviceKind.CUDA:
        raise UsageError(
            "PyTorch has no time on an emulated GPU: measured and modelled times are not compared",
            hint="take another baseline: --set train.baseline=start, or parent",
        )
    own = None if file is None else read_times([file])
    found, missing = {}, []
    for problem in problems:
        times = known_times(problem, facts, precision, workload, own)
        eager = None if times is None else times.times.get(TorchMode.EAGER)
        if eager is None:
            missing.append(str(problem.id))
        else:
            found[str(problem.id)] = eager
    if missing:
        raise UsageError(
            f"PyTorch was not timed on {facts.name} at size {workload}: {', '.join(missing[:5])}"
            f"{f' and {len(missing) - 5} more' if len(missing) > 5 else ''}",
            hint="time it with `kernelblaster problems baseline` and name the file: --set train.pytorch_times=FILE",
        )
    return found


def lacks_signs(row: PromptRow, source: str, evaluation: Evaluation) -> bool:
    """Whether a kernel shows nothing of the technique that its prompt asked for, where that has signs.

    A parent that shows them already lacks nothing; counters, where there are some, refute what was written and never
    executed.
    """
    signs = {Feature(name) for name in row.signs.split()}
    totals = evaluation.profile.totals if evaluation.profile is not None else {}
    shown = executed(source_features(source), totals) | source_features(row.parent)
    return bool(signs) and not signs <= shown
