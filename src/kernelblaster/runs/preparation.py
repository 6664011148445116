"""What has to hold before a run searches, and what its directory is made to hold: taken over, set aside, recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.config import RunConfig
from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.errors import UsageError
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.models.batch_exchange import ExchangeFolder
from kernelblaster.problems.families import family_of
from kernelblaster.problems.problem import Problem
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.run_record import RunRecord, read_record
from kernelblaster.records.searches import check_search
from kernelblaster.runs.execute import finished_outcome
from kernelblaster.runs.references import require_usable_reference
from kernelblaster.runs.setting_aside import set_aside
from kernelblaster.storage.atomic import sweep_partial_files, write_atomically


def check_problems(problems: Sequence[Problem], tell: Callable[[str], object]) -> None:
    """Refuse what would otherwise end a run after hours, or make a kernel of zeros correct.

    Raises ProblemError for a problem that no prompt can tell of, and for one whose reference is random;
    MachineError where this host has not the memory to run it.
    """
    for number, problem in enumerate(problems, start=1):
        if not problem.weakly_verified:
            tell(f"looking at {problem.title} ({number} of {len(problems)})")
            require_usable_reference(problem)
            family_of(problem.reference_path)
            launcher_declaration(problem.driver_path.read_text(encoding="utf-8"))


@contextmanager
def sole_use(layout: RunLayout) -> Iterator[None]:
    """Hold the directory of a run. Raises UsageError when another process works in it."""
    layout.run.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(layout.lock, timeout=0):
            sweep_partial_files(layout.run)
            yield
    except Timeout:
        raise UsageError(
            f"another process is working in {layout.run}", hint="wait for it, or use another --experiment"
        ) from None


def begin(
    record: RunRecord, layout: RunLayout, problems: Sequence[Problem], exchange: Path, *, resume: bool, retry: bool
) -> RunRecord:
    """Take over or set aside what earlier starts left, and write `run.json`. Raises UsageError.

    The run keeps its name over all its starts.

    Args:
        record: of this start.
        layout: where the run lies.
        problems: what it searches.
        exchange: folder of a batch exchange, if there is one: what is moved aside is asked anew.
        resume: continue what an earlier start left; otherwise that is moved aside.
        retry: move aside the searches that found nothing.
    """
    stale: list[Path] = [] if resume else directories(layout, problems)
    if layout.record.exists():
        earlier = read_record(layout.record)
        if not earlier.comparable(record):
            if resume:
                raise UsageError(
                    f"{layout.run} holds results of {earlier.conditions}; now it would be {record.conditions}",
                    hint="use another --experiment, or --no-resume to set those results aside",
                )
            stale = layout.problems()
        record = record.model_copy(update={"run": earlier.run})
    folder, model = ExchangeFolder(exchange, silent=True), record.config.model.name
    set_aside(stale, folder, model)
    if retry:
        set_aside(_fruitless(layout, problems), folder, model)
    for problem in problems:
        check_search(layout.problem(problem), problem)
    write_atomically(
        layout.record, record.model_dump_json(indent=1, exclude={"config": {"model": {"api_key", "base_url"}}})
    )
    return record


def prepare_experience(config: RunConfig, layout: RunLayout, start: Path) -> Experience:
    """What the experiment has learned; it begins from the document at `start`. Raises KnowledgeError.

    A knowledge base given later is merged in; statistics are kept by run, so merging it again changes nothing.
    """
    store = KnowledgeStore(layout.knowledge_base)
    given = config.knowledge_base
    created = store.create(start)
    experience = Experience(store)
    if given is not None and not created and given.resolve() != layout.knowledge_base.resolve():
        experience.merge([given])
    return experience


def directories(layout: RunLayout, problems: Iterable[Problem]) -> list[Path]:
    """Where the search of each problem lies."""
    return [layout.problem(problem) for problem in problems]


def left_to_search(layout: RunLayout, problems: Iterable[Problem], *, resume: bool, retry: bool) -> tuple[Problem, ...]:
    """Those that no earlier start has finished for good. Raises UsageError for a damaged outcome."""
    again = retry or not resume
    return tuple(one for one in problems if again or finished_outcome(layout.problem(one)) is None)


def finished_before(layout: RunLayout, problems: Iterable[Problem]) -> int:
    """How many problems earlier starts have finished for good. Raises UsageError for a damaged outcome."""
    return sum(finished_outcome(directory) is not None for directory in directories(layout, problems))


def _fruitless(layout: RunLayout, problems: Sequence[Problem]) -> list[Path]:
    """Where a problem failed or nothing was found."""
    kept = (OutcomeStatus.IMPROVED, OutcomeStatus.BUDGET, OutcomeStatus.WAITING)
    outcomes = {directory: finished_outcome(directory) for directory in directories(layout, problems)}
    return [directory for directory, outcome in outcomes.items() if outcome is not None and outcome.status not in kept]
