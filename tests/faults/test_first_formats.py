"""Runs that the first release left, finished or on the way: opened, continued, rendered and merged.

The archive holds directories of one search as that release wrote them: `finished`; `killed` after two thirds of its
events; `capped`, ended by a cap on tokens; and `waiting`, the same problem by batch exchange, twice answered and
stopped with a third generation of questions.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import stand_ins
from fault_runs import Bench, Run, differences
from fault_starts import EXPERIMENT, RUN, Scenario, json_lines

from kernelblaster.errors import ExitCode
from kernelblaster.knowledge.experience import FIRST_RELEASE, Experience, stored_transitions
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.records.journal import read_events
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.summary import RunSummary
from kernelblaster.report.build import write_report

ARCHIVE = Path(__file__).parents[1] / "fixtures" / "first_formats" / "runs.tar.xz"
ANSWER = partial(stand_ins.answer, chains=True)
SEARCH = Scenario(1, ("--steps=3",), ruled=False)
BY_FILES = Scenario(1, ("--steps=2",), model="batch_exchange", ruled=False, rollouts=2)


def unpack(name: str, directory: Path) -> Path:
    """One directory of the archive, at `directory`."""
    with tarfile.open(ARCHIVE) as archive:
        for member in archive.getmembers():
            if member.name.startswith(f"{name}/"):
                member.name = member.name.removeprefix(f"{name}/")
                archive.extract(member, directory, filter="data")
    return directory


@contextmanager
def left(workspace: Bench, scenario: Scenario, name: str, directory: Path) -> Iterator[Run]:
    """A run that the first release has left unfinished, as if a start had just died."""
    with workspace.open(scenario, directory, ANSWER) as run:
        unpack(name, directory)
        run.note_death()
        yield run


@pytest.fixture(scope="module")
def finished(workspace: Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    directory = tmp_path_factory.mktemp("finished") / "run"
    with workspace.open(SEARCH, directory, ANSWER) as run:
        unpack("finished", directory)
    return run


@pytest.mark.parametrize("name", ["killed", "capped"])
def test_a_run_that_stopped_on_the_way_comes_to_the_same_end(
    workspace: Bench, finished: Run, tmp_path: Path, name: str
) -> None:
    with left(workspace, SEARCH, name, tmp_path / name) as run:
        (journal,) = run.run.glob("level1/*/events.jsonl")
        before = read_events(journal)
        asked = len(json_lines(run.run / "ledger.jsonl"))
        assert run.start() == ExitCode.OK, run.errors
        run.check_nothing_repeated()
        run.check_books()
    assert not _changes(finished, run)
    after = read_events(journal)
    assert after[: len(before)] == before
    assert len({event.identity for event in after}) == len(after)
    assert len(json_lines(run.run / "ledger.jsonl")) > asked


def test_a_run_that_waits_for_replies_goes_on_with_them(workspace: Bench, tmp_path: Path) -> None:
    with left(workspace, BY_FILES, "waiting", tmp_path / "waiting") as run:
        run.finish()
        run.check_books()
    assert sorted(run.run.glob("level1/*/outcome.json"))


def test_a_finished_run_is_shown_and_not_searched_again(workspace: Bench, finished: Run, tmp_path: Path) -> None:
    with workspace.open(SEARCH, tmp_path / "again") as run:
        unpack("finished", run.directory)
        assert run.start() == ExitCode.OK
    assert not _changes(finished, run)
    assert run.evaluated() == finished.evaluated()


def test_a_finished_run_renders(tmp_path: Path) -> None:
    directory = unpack("finished", tmp_path)
    layout = RunLayout(experiment=directory / EXPERIMENT, run=directory / RUN)
    summary = RunSummary.model_validate_json(layout.summary.read_bytes())
    page = write_report(summary, layout).read_text()
    for transition in stored_transitions(layout.experiment).query():
        assert transition.technique in page


def test_what_was_learned_is_opened_and_merged_once(tmp_path: Path) -> None:
    paths = [unpack(name, tmp_path / name) / EXPERIMENT for name in ("finished", "killed")]
    counts = [stored_transitions(path).count() for path in paths]
    assert all(counts)
    files = [path / "optimization_database.json" for path in paths]
    experience = Experience(KnowledgeStore(files[0]))
    assert experience.transitions.count() == counts[0]
    for _ in range(2):
        experience.merge(files[1:])
    assert not experience.document().statistics  # of that format they are dropped: its sums name no parents
    for transition in stored_transitions(paths[0]).query():
        assert experience.record(transition)
        assert not experience.record(transition)
    assert KnowledgeStore(experience.export()).load().document == experience.document()
    assert (paths[0] / FIRST_RELEASE).exists()


def _changes(before: Run, after: Run) -> list[str]:
    """How two runs differ, but for what the first release did not know or says otherwise."""
    newer = re.compile(
        r"/knowledge/(format|statistics|runs|cores|lessons/\d+/counts)\b|.*/attainable_us: None is now"
        r"|/transitions/\d+/(done|headroom|state_confidence):"
    )
    found = differences(_without_lessons(before.result()), _without_lessons(after.result()))
    return [line for line in found if not newer.match(line)]


def _without_lessons(result: dict[str, Any]) -> dict[str, Any]:
    """What a run leaves, but for questions after lessons of measured pairs, which the first release did not ask."""
    asked = [one for one in result["asked"] if not one[0].endswith("/lesson")]
    files = {
        name: [path for path in found if not path.endswith("/lesson.json")] if isinstance(found, list) else found
        for name, found in result["files"].items()
    }
    return {**result, "asked": asked, "files": files}
