"""Whole runs that were disturbed: what they may not have repeated or lost, and how they compare with sound ones."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import stand_ins
from fault_starts import (
    EXPERIMENT,
    KNOWN,
    MOST_STARTS,
    RUN,
    Answer,
    Disk,
    Fault,
    Scenario,
    Server,
    Zygote,
    answer_exchange,
    events_below,
    json_lines,
    serve,
)

from kernelblaster.agent.outcome import ProblemOutcome
from kernelblaster.errors import ExitCode
from kernelblaster.knowledge.experience import stored_transitions
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.records.layout import RunLayout


@dataclass
class Death:
    """What had been finished when a start died, and how much had been asked until then."""

    evaluations: set[str]
    evaluated: int
    slots: set[str]
    """With a reply that is kept."""
    calls: int
    """In the ledger."""


class Run:
    """One directory in which a scenario is started until it ends."""

    def __init__(
        self, scenario: Scenario, directory: Path, zygote: Zygote | None = None, server: Server | None = None
    ) -> None:
        self.scenario = scenario
        self.directory = directory
        self.codes: list[int] = []
        self.deaths: list[Death] = []
        self.last_words = ""
        """Standard error of the latest start that did not end well."""
        self._zygote = zygote
        self._server = server
        directory.mkdir(parents=True)
        stand_ins.make_dataset(directory / "dataset", scenario.problems)
        if scenario.recalls:
            stand_ins.make_knowledge(directory / KNOWN)

    @property
    def run(self) -> Path:
        """Its run directory."""
        return self.directory / RUN

    @property
    def errors(self) -> str:
        """What the latest start said on standard error."""
        return (self.directory / "err.txt").read_text()

    @property
    def events(self) -> int:
        """Recorded until now; what was told twice counts once."""
        return len(events_below(self.directory))

    @property
    def disk_calls(self) -> int:
        """Calls of the latest start that changed a file of the run."""
        return int((self.directory / "disk_calls.txt").read_text())

    def start(self, fault: Fault | None = None) -> int:
        """Start once."""
        url = self._server.url if self._server else ""
        self.codes.append(self._zygote.start(self.scenario, self.directory, url, fault))
        if self.codes[-1] not in (ExitCode.OK, ExitCode.WAITING):
            self.note_death()
            self.last_words = self.errors
        return self.codes[-1]

    def note_death(self) -> None:
        """Nothing that is there now may be made or paid for again."""
        self.deaths.append(self._death())

    def finish(self, fault: Fault | None = None) -> None:
        """Start until it ends by itself, answering what waits. `fault` befalls the start in which it lies, once."""
        for _ in range(MOST_STARTS):
            due = fault and Fault(
                max(0, fault.event - self.events), fault.disk, fault.at, fault.lost_after, fault.after_s
            )
            code = self.start(due)
            if code == ExitCode.OK:
                return
            if code == ExitCode.WAITING:
                assert answer_exchange(self.run / "exchange"), f"{self.directory} waits for nothing"
            else:
                assert fault is not None, f"{self.directory}: {code}: {self.errors}"
                fault = None
        raise AssertionError(f"{self.directory}: no end after {MOST_STARTS} starts: {self.errors}")

    def advance(self, events: int) -> bool:
        """Start once, to be killed after so many new events; False when the run has come to its end instead."""
        code = self.start(Fault(event=events))
        if code == ExitCode.WAITING:
            answer_exchange(self.run / "exchange")
        return code != ExitCode.OK

    def evaluated(self) -> list[str]:
        """Every question the judge was asked, in order."""
        log = self.directory / "evaluations.log"
        return log.read_text().splitlines() if log.exists() else []

    def _death(self) -> Death:
        return Death(
            evaluations={f"{problem_of(path)} {path.stem}" for path in self.run.glob("level1/*/evaluations/*.json")},
            evaluated=len(self.evaluated()),
            slots=self._answered(),
            calls=len(self._calls()),
        )

    def _answered(self) -> set[str]:
        paths = self.run.glob("level1/*/replies/level1/**/*.json")
        return {str(path.relative_to(self.run)).partition("/replies/")[2].removesuffix(".json") for path in paths}

    def _calls(self) -> list[dict[str, Any]]:
        return [line for line in json_lines(self.run / "ledger.jsonl") if line["kind"] == "call"]

    def check_nothing_repeated(self) -> None:
        """No finished evaluation was made again, and no reply that was kept was asked for again."""
        evaluated = self.evaluated()
        for death in self.deaths:
            assert not death.evaluations & set(evaluated[death.evaluated :])
        calls = self._calls()
        for death in self.deaths:
            assert not death.slots & {call["slot"] for call in calls[death.calls :]}, "paid twice"
        if self._server is not None:
            assert self._server.answers - len(calls) <= self.in_flight * len(self.deaths), "lost on the way"
            paid = [call for call in calls if call["outcome"] == "ok"]
            assert len(paid) == len(self._answered()), "paid for, and lost before it was kept"
            return
        folder = self.run / "exchange"
        requested = [line["custom_id"] for path in folder.glob("requests-*.jsonl") for line in json_lines(path)]
        assert len(requested) == len(set(requested)) == len(self._answered()), "a request was written twice"

    @property
    def in_flight(self) -> int:
        """Most replies that a death can catch between the model and the disk."""
        return self.scenario.chains

    def check_books(self) -> None:
        """Replay buffer, knowledge base and ledger agree: every transition is in all of them, once."""
        layout = RunLayout(experiment=self.directory / EXPERIMENT, run=self.run)
        transitions = stored_transitions(layout.experiment).query()
        document = KnowledgeStore(layout.knowledge_base).load().document
        shipped = KnowledgeStore(seed_path(), owned=False).load().document.runs
        own = {name: record for name, record in document.runs.items() if name not in shipped}
        assert sum(row.sums.attempts for row in document.statistics if row.run in own) == len(transitions)
        assert own.keys() == {transition.run for transition in transitions}
        applied = [digest for record in own.values() for digest in record.applied]
        assert sorted(applied) == sorted(transition.digest for transition in transitions)
        assert {call["slot"] for call in self._calls()} == self._answered()

    def result(self) -> dict[str, Any]:
        """Everything that a disturbed and an undisturbed run must have in common.

        Left out: times, the run's random name and what is derived from it. Where chains run side by side, the choice
        of a technique depends on which of them measured first: there what follows from it is left out, too.
        """
        layout = RunLayout(experiment=self.directory / EXPERIMENT, run=self.run)
        problems = sorted(self.run.glob("level1/*"))
        parallel = self.scenario.chains > 1
        return {
            "outcomes": [_outcome(path, parallel=parallel) for path in problems],
            "transitions": _transitions(layout, parallel=parallel),
            "knowledge": _knowledge(layout, parallel=parallel),
            "asked": sorted({(_place(call["slot"], parallel=parallel), call["outcome"]) for call in self._calls()}),
            "files": _files(problems, parallel=parallel),
            "litter": [str(path) for path in self.directory.glob("out/**/*") if path.suffix in (".part", ".tmp")],
        }


def problem_of(path: Path) -> str:
    """`level1/002` of a file in that problem's directory."""
    return f"level1/{path.parts[path.parts.index('level1') + 1][:3]}"


def _without(value: Any, names: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(item, names) for name, item in value.items() if name not in names}
    return [_without(item, names) for item in value] if isinstance(value, list) else value


TIMES = frozenset({"seconds", "started_at", "finished_at", "applied_at", "proposed_at", "updated_at", "at"})
NAMES = frozenset({"run", "runs", "id", "transition", "final_kernel", "errors"})
"""Fields that hold the run's random name, a digest of it, an absolute path, or figures of the judge's secret inputs."""
CHANCE = frozenset(
    {"technique", "lessons", "provenance", "sha256", "candidate_sha256", "parent_sha256", "final_sha256", "evaluation"}
    | {"source_sha256", "mends", "statistics", "counts", "successes"}
)
"""Fields that follow from the choice of a technique; a candidate of the stand-in names its technique."""


def _place(slot: str, *, parallel: bool) -> str:
    """A slot; one that names a candidate names it only where that is no matter of chance."""
    return re.sub(r"mend/[0-9a-f]{16}", "mend", slot) if parallel else slot


def _plain(value: Any, parallel: bool) -> Any:
    return _without(value, TIMES | NAMES | (CHANCE if parallel else frozenset()))


def _outcome(directory: Path, *, parallel: bool) -> Any:
    outcome = ProblemOutcome.model_validate_json((directory / "outcome.json").read_bytes())
    return _plain(outcome.model_dump(mode="json"), parallel)


def _transitions(layout: RunLayout, *, parallel: bool) -> list[Any]:
    stored = (transition.model_dump(mode="json") for transition in stored_transitions(layout.experiment).query())
    return [_plain(one, parallel) for one in sorted(stored, key=lambda one: one["slot"])]


def _knowledge(layout: RunLayout, *, parallel: bool) -> Any:
    text = layout.knowledge_base.read_text()
    for directory in layout.problems():
        text = text.replace(json.loads((directory / "search.json").read_bytes())["name"], directory.name)
    plain = _plain(json.loads(text), parallel)
    for name in ("statistics", "changes", "lessons"):
        plain[name] = sorted(plain.get(name, []), key=json.dumps)
    return plain


def _files(problems: Sequence[Path], *, parallel: bool) -> dict[str, Any]:
    kinds = ("replies",) if parallel else ("replies", "candidates", "evaluations", "reflections")
    found: dict[str, Any] = {}
    for directory in problems:
        final = directory / "final_rl_cuda_perf.cu"
        found[f"{directory.name}/final"] = final.exists() and (parallel or final.read_text())
        for kind in kinds:
            found[f"{directory.name}/{kind}"] = sorted(
                _place(str(path.relative_to(directory)), parallel=parallel)
                for path in (directory / kind).glob("**/*.*")
            )
    return found


class Bench:
    """Runs scenarios, several at once, and says what disturbed ones lack. A context manager."""

    def __init__(self, library: Path, at_once: int = 2) -> None:
        self._zygote = Zygote(library)
        self._at_once = at_once

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._zygote.close()

    @contextmanager
    def open(self, scenario: Scenario, directory: Path, answer: Answer = stand_ins.answer) -> Iterator[Run]:
        """A directory in which a scenario can be started."""
        if scenario.model == "openai_api":
            with serve(answer) as server:
                yield Run(scenario, directory, self._zygote, server)
        else:
            yield Run(scenario, directory, self._zygote)

    def undisturbed(self, scenario: Scenario, directory: Path) -> Run:
        """A run to compare with; it has ended."""
        with self.open(scenario, directory) as run:
            run.finish()
        run.check_nothing_repeated()
        run.check_books()
        return run

    def disturbed(self, scenario: Scenario, directory: Path, *faults: Fault) -> Run:
        """A run in which a start ends at each of the faults, and which is then let to its end. Checks its books."""
        with self.open(scenario, directory) as run:
            for fault in faults[:-1]:
                run.start(fault)
            run.finish(faults[-1])
        run.check_nothing_repeated()
        run.check_books()
        return run

    def differences(self, sound: Run, root: Path, faults: Sequence[Fault]) -> dict[Fault, list[str]]:
        """For each fault that befell a run of its own: how that differs from the sound run in the end.

        A run that equals it is removed.
        """
        expected = sound.result()

        def one(fault: Fault) -> list[str]:
            try:
                run = self.disturbed(sound.scenario, root / fault.name, fault)
            except AssertionError as error:
                return [str(error)]
            found = list(differences(expected, run.result()))
            told = run.codes[0] == ExitCode.MACHINE and "Traceback" not in run.last_words
            if run.deaths and fault.disk is Disk.FULL and not told:
                found.append(f"exit code {run.codes[0]}: {run.last_words[-300:]}")
            if not found:
                # SQLite tidies up beside us when a connection that `result` had opened is collected.
                shutil.rmtree(run.directory, ignore_errors=True)
            return found

        with ThreadPoolExecutor(self._at_once) as threads:
            return {fault: found for fault, found in zip(faults, threads.map(one, faults), strict=True) if found}


def differences(expected: Any, found: Any, place: str = "") -> Iterator[str]:
    """Where two values of `Run.result` differ."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted(expected.keys() | found.keys()):
            yield from differences(expected.get(name), found.get(name), f"{place}/{name}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, pair in enumerate(zip(expected, found, strict=True)):
            yield from differences(*pair, f"{place}/{number}")
    elif expected != found:
        yield f"{place}: {str(expected)[:200]} is now {str(found)[:200]}"
