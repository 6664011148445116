"""Episodes that a model has played, on disk turn by turn: the only way in which their evaluation resumes.

`turns.jsonl` begins with what all rewards in it rest on; then comes a line for each turn, with the reply and what the
judge made of it, written before the next turn is asked for. Replies of one model on one device under one scheme share
a file, measured and modelled ones never do.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelblaster.environment.baselines import EpisodeBaseline
from kernelblaster.environment.submission import Language
from kernelblaster.errors import UsageError
from kernelblaster.models.base import Usage
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line
from kernelblaster.storage.records import differing_fields

TURNS = "turns.jsonl"


class EvalHeader(BaseModel):
    """What the rewards of a file rest on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["kernelblaster-env-eval-1"] = "kernelblaster-env-eval-1"
    model: str
    dataset: str
    turns: int
    """Most turns of an episode."""
    language: Language
    conditions: dict[str, str]
    """Device, precision, workload, version."""
    modelled: bool
    """Times come from a model of the device."""
    reward: dict[str, str]
    """Scheme and options."""
    baseline: EpisodeBaseline = EpisodeBaseline.START
    """What speed-ups are against; files of earlier versions, which do not say, hold those against the start."""


class Turn(BaseModel):
    """One turn of an episode: a reply, and what became of it."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    problem: str
    sample: int
    """Which episode of the problem, from 1."""
    turn: int
    """From 1."""
    reply: str
    finish_reason: str | None
    usage: Usage
    language: str
    """`cuda` or `triton`; empty where the reply held no source."""
    verdict: str
    """A `Verdict`, or `no_code`."""
    reason: str
    decision: str | None
    speedup: float | None
    """Against the baseline; None unless correct."""
    reward: float
    reward_parts: dict[str, float]
    hack: bool
    suspicious: bool
    device_limit: bool
    feedback: str
    """What the model reads before its next turn."""
    done: bool
    """The episode is over."""


class SampleStore:
    """The file of an evaluation. Safe for many threads of one process.

    Args:
        directory: of the evaluation; made with the first line.
        header: what rewards rest on.

    Raises UsageError when the file rests on something else, or is damaged.
    """

    def __init__(self, directory: Path, header: EvalHeader) -> None:
        self.path = directory / TURNS
        self._lock = threading.Lock()
        self._turns: defaultdict[tuple[str, int], list[Turn]] = defaultdict(list)
        cut_torn_line(self.path)
        lines = list(complete_lines(self.path.read_bytes())) if self.path.exists() else []
        if not lines:
            append_line(self.path, header.model_dump_json().encode())
            return
        found = _parsed(self.path, EvalHeader, lines[0].data)
        if found != header:
            raise UsageError(
                f"{self.path} holds another evaluation: {differing_fields(found, header)}",
                hint="name another directory with --to",
            )
        for line in lines[1:]:
            _taken(self._turns, _parsed(self.path, Turn, line.data))

    def turns(self, problem: str, sample: int) -> tuple[Turn, ...]:
        """The turns of an episode so far, in order."""
        with self._lock:
            return tuple(self._turns.get((problem, sample), ()))

    def keep(self, turn: Turn) -> None:
        """Store a turn before anything is made of it. Raises OSError."""
        with self._lock:
            if _taken(self._turns, turn):
                append_line(self.path, turn.model_dump_json().encode())


def kept_turns(path: Path) -> tuple[EvalHeader, dict[tuple[str, int], tuple[Turn, ...]]]:
    """What an evaluation has kept, read alone: its header, and the turns of each problem's episodes, in order.

    Args:
        path: of the file, or of the evaluation's directory.

    Raises UsageError where there is none, or it is damaged.
    """
    file = path / TURNS if path.is_dir() else path
    if not file.is_file():
        raise UsageError(f"there is no {file}", hint=f"name a directory of `env eval`, or its {TURNS}")
    lines = list(complete_lines(file.read_bytes()))
    if not lines:
        raise UsageError(f"{file} is empty", hint="`env eval` writes it")
    header = _parsed(file, EvalHeader, lines[0].data)
    turns: defaultdict[tuple[str, int], list[Turn]] = defaultdict(list)
    for line in lines[1:]:
        _taken(turns, _parsed(file, Turn, line.data))
    return header, {episode: tuple(found) for episode, found in turns.items()}


def _taken(turns: defaultdict[tuple[str, int], list[Turn]], turn: Turn) -> bool:
    """Whether the turn is the next of its episode; the first line of a turn counts."""
    episode = turns[turn.problem, turn.sample]
    if turn.turn != len(episode) + 1:
        return False
    episode.append(turn)
    return True


Record = TypeVar("Record", EvalHeader, Turn)


def _parsed(path: Path, kind: type[Record], data: bytes) -> Record:
    try:
        return kind.model_validate_json(data)
    except ValidationError as error:
        raise UsageError(f"{path} holds a line that is none of its own", hint="restore it, or move it away") from error
