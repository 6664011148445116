"""What the report shows, gathered from a run's files."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.agent.events import Decided, Event, StartProfiled
from kernelblaster.agent.files import ProblemFiles
from kernelblaster.agent.state import ProblemOutcome
from kernelblaster.evaluation.results import Timing
from kernelblaster.records.journal import read_events
from kernelblaster.records.layout import JOURNAL, OUTCOME
from kernelblaster.records.summary import ProblemSummary
from kernelblaster.replay.transition import Transition


@dataclass(frozen=True)
class Track:
    """Progress of one rollout: gain over the start after each step."""

    name: str
    steps: tuple[int, ...]
    gains: tuple[float, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class ProblemPage:
    """One problem's part of the report.

    Attributes:
        start_us: time of the start; None when it could not be timed.
        floor_us: its roofline floor.
        final: time of the final kernel; None when nothing beat the start.
        diff: unified diff from the start to the final kernel; empty when there is none.
    """

    summary: ProblemSummary
    tracks: tuple[Track, ...]
    transitions: tuple[Transition, ...]
    start: Timing | None
    final: Timing | None
    diff: str


def _tracks(events: list[Event]) -> tuple[Track, ...]:
    """One track per rollout; events repeated after a kill count once, by their slot."""
    decided: dict[str, Decided] = {}
    for event in events:
        if isinstance(event, Decided):
            decided.setdefault(event.slot, event)
    rollouts: dict[str, list[tuple[int, Decided]]] = {}
    for slot, event in decided.items():
        rollout, _, step = slot.rpartition("/")
        rollouts.setdefault(rollout, []).append((int(step.rpartition("-")[2]), event))
    tracks = []
    for rollout, points in sorted(rollouts.items()):
        points.sort(key=lambda point: point[0])
        tracks.append(
            Track(
                name="/".join(rollout.split("/")[2:]),
                steps=(0, *(step for step, _ in points)),
                gains=(1.0, *(event.gain for _, event in points)),
                labels=("start", *(f"{event.technique}: {event.outcome}" for _, event in points)),
            )
        )
    return tuple(tracks)


def _diff(files: ProblemFiles, outcome: ProblemOutcome, start_sha256: str | None) -> str:
    if outcome.final_sha256 is None or start_sha256 is None:
        return ""
    before = files.candidate(start_sha256).splitlines()
    after = files.candidate(outcome.final_sha256).splitlines()
    return "\n".join(difflib.unified_diff(before, after, "init.cu", "final_rl_cuda_perf.cu", lineterm=""))


def gather(summary: ProblemSummary, directory: Path, transitions: list[Transition]) -> ProblemPage:
    """Everything recorded of one problem whose search lies in `directory`."""
    journal, outcome_path = directory / JOURNAL, directory / OUTCOME
    events = read_events(journal) if journal.exists() else []
    outcome = ProblemOutcome.model_validate_json(outcome_path.read_bytes()) if outcome_path.exists() else None
    profiled = any(isinstance(event, StartProfiled) for event in events)
    start = outcome.start.timing if outcome and outcome.start and profiled else None
    diff = ""
    if outcome is not None and outcome.start is not None:
        diff = _diff(ProblemFiles(directory), outcome, outcome.start.source_sha256)
    return ProblemPage(
        summary=summary,
        tracks=_tracks(events),
        transitions=tuple(transitions),
        start=start,
        final=summary.comparison.candidate if summary.comparison else None,
        diff=diff,
    )
