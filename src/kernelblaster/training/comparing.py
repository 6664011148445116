"""What an evaluation says against something that its judge did not time it with, or did not look for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from kernelblaster.cuda_source.features import Feature, source_features
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Comparison, Evaluation, Timing
from kernelblaster.evaluation.timing.pytorch_times import ModeTime, PytorchTimes, read_times, times_on
from kernelblaster.evaluation.timing.statistics import Interval, decide
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.knowledge.credit import executed
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import reference_digest
from kernelblaster.training.rows import PromptRow


def against_pytorch(evaluation: Evaluation, pytorch: ModeTime | None) -> Evaluation:
    """The evaluation with PyTorch as its baseline; without a comparison where PyTorch was not timed.

    Both are times of the whole call with a cold L2 whose launch is hidden, sampled in different processes: the interval
    of their ratio is that of the two intervals' ends, which is wider than a paired one.
    """
    timed = evaluation.timing if evaluation.correct else None
    if pytorch is None or timed is None:
        return evaluation.model_copy(update={"comparison": None})
    low, high = pytorch.low_us / timed.high_us, pytorch.high_us / timed.low_us
    threshold = 0.01 if evaluation.comparison is None else evaluation.comparison.threshold
    speedup = Interval(pytorch.us / timed.median_us, low, high)
    baseline = Timing(
        median_us=pytorch.us, low_us=pytorch.low_us, high_us=pytorch.high_us, iqr_us=pytorch.high_us - pytorch.low_us,
        samples=pytorch.samples, floor_us=timed.floor_us, floor_fraction=None, modelled=False,
    )  # fmt: skip
    comparison = Comparison(
        speedup=speedup.estimate, low=low, high=high, decision=decide(speedup, threshold), threshold=threshold,
        baseline=baseline, candidate=timed,
    )  # fmt: skip
    return evaluation.model_copy(update={"comparison": comparison})


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
    own = {} if file is None else read_times([file])
    found, missing = {}, []
    for problem in problems:
        times = _times(problem, facts, problem.precision_for(precision), workload, own if file else None)
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


def _times(
    problem: Problem,
    facts: DeviceFacts,
    precision: Precision,
    workload: str,
    own: Mapping[tuple[str, str, Precision, str], PytorchTimes] | None,
) -> PytorchTimes | None:
    if own is None:
        return times_on(facts, problem, precision, workload)
    found = own.get((facts.name, str(problem.id), precision, workload))
    return found if found is not None and found.digest == reference_digest(problem) else None


def lacks_signs(row: PromptRow, source: str, evaluation: Evaluation) -> bool:
    """Whether a kernel shows nothing of the technique that its prompt asked for, where that has signs.

    A parent that shows them already lacks nothing; counters, where there are some, refute what was written and never
    executed.
    """
    signs = {Feature(name) for name in row.signs.split()}
    totals = evaluation.profile.totals if evaluation.profile is not None else {}
    shown = executed(source_features(source), totals) | source_features(row.parent)
    return bool(signs) and not signs <= shown
