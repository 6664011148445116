"""Runs that are on disk: read them, build their page again, measure their kernels again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from kernelblaster.agent.events import Event
from kernelblaster.agent.outcome import ProblemOutcome
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.experience import stored_transitions
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.problems.start import read_start
from kernelblaster.records.journal import read_events
from kernelblaster.records.layout import ASIDE, FINAL_KERNEL, JOURNAL, OUTCOME, RunLayout
from kernelblaster.records.run_record import RunRecord, read_record
from kernelblaster.records.searches import find_search
from kernelblaster.records.summary import RunSummary, read_summary
from kernelblaster.records.whole_run import recall
from kernelblaster.replay.buffer import Query
from kernelblaster.replay.transition import Transition


@dataclass(frozen=True)
class StoredSearch:
    """The search of one problem, as a run of the experiment in `experiment` left it in `directory`."""

    directory: Path
    experiment: Path

    @property
    def name(self) -> str:
        """`level1/023_Softmax`."""
        return f"{self.directory.parent.name}/{self.directory.name}"

    @property
    def outcome(self) -> ProblemOutcome | None:
        """The outcome; None while the search is not finished. Raises ValidationError for a damaged file."""
        path = self.directory / OUTCOME
        return ProblemOutcome.model_validate_json(path.read_bytes()) if path.exists() else None

    @property
    def events(self) -> list[Event]:
        """What happened, in order. After a kill an event may be there twice, under the same slot."""
        path = self.directory / JOURNAL
        return read_events(path) if path.exists() else []

    @property
    def transitions(self) -> list[Transition]:
        """Every step: state, technique, verdict and speed-up."""
        search = find_search(self.directory)
        return stored_transitions(self.experiment).query(Query(run=search.name)) if search is not None else []

    @property
    def final_kernel(self) -> str | None:
        """Source of the kernel that it found; None when nothing beat the start."""
        path = self.directory / FINAL_KERNEL
        return path.read_text(encoding="utf-8") if path.exists() else None


@dataclass(frozen=True)
class StoredRun:
    """A run as its directory holds it.

    Attributes:
        layout: where its files lie.
        record: what its latest start was given: configuration, device, versions.
    """

    layout: RunLayout
    record: RunRecord

    @property
    def summary(self) -> RunSummary | None:
        """The summary; None when no start has ended. Raises UsageError when the file is damaged."""
        return read_summary(self.layout.summary) if self.layout.summary.exists() else None

    @cached_property
    def searches(self) -> list[StoredSearch]:
        """The search of each problem, those set aside left out."""
        return [StoredSearch(directory, self.layout.experiment) for directory in self.layout.problems()]

    @property
    def knowledge(self) -> KnowledgeBase:
        """What the experiment knows now. Raises KnowledgeError."""
        return KnowledgeStore(self.layout.knowledge_base, owned=False).load()


def read_run(directory: Path) -> StoredRun:
    """The run in a directory, finished or not. Raises UsageError when there is none."""
    layout = _layout(directory)
    return StoredRun(layout=layout, record=read_record(layout.record))


def build_report(directory: Path) -> Path:
    """Build `report.html` of a run from its files, whether it has ended or not; returns its path. Raises UsageError."""
    from kernelblaster.report.build import write_report

    layout = _layout(directory)
    return write_report(recall(layout), layout)


def compare_runs(directories: Sequence[Path], output: Path | None = None) -> Path:
    """Build one page that compares runs, `comparison.html` in the present directory unless told; returns its path.

    Runs have the name of their experiment and model, or as much of their path as tells them apart. Raises UsageError
    for fewer than two runs, a directory without a run, and runs on different devices.
    """
    from kernelblaster.report.build import COMPARISON, write_comparison
    from kernelblaster.report.comparison import RunToCompare

    layouts = [_layout(directory) for directory in directories]
    if len({layout.run for layout in layouts}) < 2:
        raise UsageError("a comparison needs two runs or more", hint="name the directories that hold run.json")
    labels = _labels([layout.run for layout in layouts])
    runs = [
        RunToCompare(label, recall(layout), read_record(layout.record))
        for label, layout in zip(labels, layouts, strict=True)
    ]
    return write_comparison(runs, output or Path(COMPARISON))


def _labels(directories: Sequence[Path]) -> list[str]:
    """Of each path the parts between those that all share at its beginning and at its end."""
    paths = [directory.parts for directory in directories]
    start, most = 0, min(map(len, paths))
    while start < most - 1 and len({parts[start] for parts in paths}) == 1:
        start += 1
    end = 0
    while start + end < most - 1 and len({parts[-1 - end] for parts in paths}) == 1:
        end += 1
    return ["/".join(parts[start : len(parts) - end]) for parts in paths]


def reprofile(
    directory: Path,
    *,
    device: str = "auto",
    size: str | None = None,
    dataset_dir: Path | None = None,
    on_stage: Callable[[str], object] | None = None,
) -> dict[Path, Evaluation]:
    """Evaluate every final kernel of a run against its start once more, with counters.

    Args:
        directory: of the run.
        device: where; see `RunConfig.device`.
        size: that is timed; the run's own if None.
        dataset_dir: where the problems are now; where they were if None.
        on_stage: told what takes time.

    Raises UsageError when the run has no final kernel, or its problems have changed; DeviceError.
    """
    from kernelblaster.runs.evaluations import find_searched, open_evaluator

    record = read_record(directory / "run.json")
    config = record.config.model_copy(update={"device": device, "size": size or record.config.size})
    finals = [path for path in sorted(directory.glob(f"level*/*/{FINAL_KERNEL}")) if ASIDE not in path.parent.name]
    if not finals:
        raise UsageError(f"{directory} holds no {FINAL_KERNEL}", hint="nothing beat the start there; search again")
    evaluations = {}
    with open_evaluator(config, on_stage or (lambda stage: None), usual=record.workload) as evaluator:
        for path in finals:
            problem = find_searched(path.parent, config, dataset_dir)
            start = read_start(problem)
            evaluations[path] = evaluator.evaluate(problem, path.read_text(encoding="utf-8"), baseline=start)
    return evaluations


def _layout(directory: Path) -> RunLayout:
    return RunLayout(experiment=directory.resolve().parent, run=directory.resolve())
