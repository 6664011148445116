"""Problems, kernels and evaluations of ours, in the formats of FlashInfer-Bench and SOL-ExecBench."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernelblaster.agent.files import ProblemFiles
from kernelblaster.api.evaluating import KernelSource, read_kernel
from kernelblaster.api.problems import ProblemName, load_problem
from kernelblaster.api.runs import read_run
from kernelblaster.config import RunConfig
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.problems.interchange.bundle import ExchangeFormat, ProblemBundle
from kernelblaster.problems.interchange.exported import (
    bundle_of,
    has_own_start,
    solution_of,
    with_results,
    workload_of_size,
)
from kernelblaster.problems.interchange.flashinfer import write_trace_set
from kernelblaster.problems.interchange.kept import is_imported, read_kept
from kernelblaster.problems.interchange.problem_files import INIT
from kernelblaster.problems.interchange.sol import write_problem_directory
from kernelblaster.problems.interchange.trace import Trace
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.solution import Solution
from kernelblaster.problems.start import read_start
from kernelblaster.records.traces import trace_of
from kernelblaster.runs.evaluations import find_searched

_ANY_HARDWARE = "NVIDIA"


@dataclass(frozen=True)
class KernelRecord:
    """A kernel to export, with what is known of it.

    Attributes:
        source: its text, or the file that holds it.
        evaluations: of it, each with the Unix time at which it ended.
    """

    source: KernelSource
    evaluations: tuple[tuple[Evaluation, float], ...] = ()


@dataclass
class ExportReport:
    """What was written.

    Attributes:
        definitions: names of definitions.
        solutions, traces: how many, those that were imported before included.
        notes: evaluations that were left out, and why.
    """

    definitions: list[str] = field(default_factory=list)
    solutions: int = 0
    traces: int = 0
    notes: list[str] = field(default_factory=list)


def export_problem(
    problem: ProblemName,
    directory: Path,
    *,
    form: ExchangeFormat | str,
    precision: Precision | str = Precision.FP16,
    kernels: Sequence[KernelRecord] = (),
    modelled_times: bool = False,
) -> ExportReport:
    """Write a problem, and kernels with their evaluations, as a data set of another tool.

    A problem that was imported is given back as it came, with these kernels added.

    Args:
        problem: its name, its directory, or itself.
        directory: of the data set; made if it is missing, added to if it is there.
        form: `flashinfer` or `sol`.
        precision: element type of floating-point tensors that pin none.
        kernels: the starting kernel is exported without being named here, unless an import made it.
        modelled_times: export times of the emulated device, under hardware that is marked as emulated.

    Raises:
        UsageError: the problem is not known.
        ProblemError: its reference cannot be run.
    """
    report, form = ExportReport(), ExchangeFormat(form)
    if not kernels and not isinstance(problem, Problem) and is_imported(Path(problem)):
        place = Path(problem)
        if not (place / INIT).is_file():  # still to be written: no problem yet, and all there is to export
            _write(read_kept(place), directory, form, report)
            return report
    found = load_problem(problem)
    start = [KernelRecord(read_start(found))] if has_own_start(found) else []
    _export(found, directory, form, Precision(precision), [*start, *kernels], report, modelled_times=modelled_times)
    return report


def export_run(
    run: Path,
    directory: Path,
    *,
    form: ExchangeFormat | str,
    dataset_dir: Path | None = None,
    modelled_times: bool = False,
) -> ExportReport:
    """Write the problems of a run, every kernel it judged, and every evaluation. Arguments as of `export_problem`.

    Args:
        run: directory of the run.
        dataset_dir: where its problems are now; where they were if None.

    Raises:
        UsageError: there is no run, or its problems have changed.
        ProblemError: a reference cannot be run.
    """
    stored, report = read_run(run), ExportReport()
    config: RunConfig = stored.record.config
    for search in stored.searches:
        problem = find_searched(search.directory, config, dataset_dir)
        kernels = list(_judged(ProblemFiles(search.directory)))
        _export(
            problem, directory, ExchangeFormat(form), config.precision, kernels, report, modelled_times=modelled_times
        )
    return report


def _judged(files: ProblemFiles) -> Iterator[KernelRecord]:
    """Every kernel that a search has judged, with its evaluations, the earliest first."""
    found: dict[str, list[tuple[Evaluation, float]]] = {}
    for name, at in files.evaluation_times():
        evaluation = files.find_evaluation(name)
        if evaluation is not None:
            found.setdefault(evaluation.source_sha256, []).append((evaluation, at))
    for sha256, evaluations in found.items():
        if files.candidate_path(sha256).is_file():
            yield KernelRecord(files.candidate(sha256), tuple(evaluations))


def _export(
    problem: Problem,
    directory: Path,
    form: ExchangeFormat,
    precision: Precision,
    kernels: Iterable[KernelRecord],
    report: ExportReport,
    *,
    modelled_times: bool,
) -> None:
    bundle = bundle_of(problem, precision, form)
    solutions: dict[str, Solution] = {}
    traces: list[Trace] = []
    for kernel in kernels:
        source = read_kernel(kernel.source)
        hardware = kernel.evaluations[0][0].device_name if kernel.evaluations else _ANY_HARDWARE
        solution = _there_already(bundle, source) or solution_of(problem, bundle, source, precision, form, hardware)
        solutions.setdefault(solution.name, solution)
        for evaluation, at in kernel.evaluations:
            traced = _trace(evaluation, at, bundle, solution.name, report, modelled_times=modelled_times)
            if traced is not None and _is_complete(traced, form, report):
                traces.append(traced)
    whole = with_results(bundle, list(solutions.values()), traces)
    _write(whole, directory, form, report)


def _write(bundle: ProblemBundle, directory: Path, form: ExchangeFormat, report: ExportReport) -> None:
    write = write_trace_set if form is ExchangeFormat.FLASHINFER else write_problem_directory
    write(bundle, directory)
    report.definitions.append(bundle.definition.name)
    report.solutions += len(bundle.solutions)
    report.traces += len(bundle.traces)


def _there_already(bundle: ProblemBundle, source: str) -> Solution | None:
    """The imported solution that is this kernel, if there is one."""
    digest = source_digest(source)
    return next(
        (one for one in bundle.solutions if any(source_digest(file.content) == digest for file in one.sources)), None
    )


def _trace(
    evaluation: Evaluation,
    at: float,
    bundle: ProblemBundle,
    solution: str,
    report: ExportReport,
    *,
    modelled_times: bool,
) -> Trace | None:
    name = workload_of_size(bundle, evaluation.workload)
    workload = bundle.workload(name) if name is not None else None
    if workload is None:
        report.notes.append(f"{solution} at size {evaluation.workload}: no workload is that size")
        return None
    traced = trace_of(evaluation, workload, bundle.definition.name, solution, at, modelled_times=modelled_times)
    if traced is None:
        report.notes.append(f"{solution}: {evaluation.verdict}, which says nothing of the kernel")
    return traced


def _is_complete(trace: Trace, form: ExchangeFormat, report: ExportReport) -> bool:
    """Whether a format takes a trace: FlashInfer-Bench reads no pass without a time."""
    evaluation = trace.evaluation
    timed = evaluation is None or evaluation.status != "PASSED" or evaluation.performance is not None
    if not timed and form is ExchangeFormat.FLASHINFER:
        report.notes.append(f"{trace.solution}: it passed on the emulated device, whose times are not exported unasked")
        return False
    return True
