"""Rows of the data sets: JSON lines that `datasets.load_dataset("json", ...)` reads, one type per column.

A column that does not apply holds an empty string, never null, and objects of varying keys are JSON strings: so each
column has one type whatever the rows. Numbers that are unknown are null.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelblaster.errors import UsageError
from kernelblaster.models.base import Message
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.storage.jsonl import complete_lines


class ReplyForm(StrEnum):
    """How a completion names a source."""

    FENCED = "fenced"
    """One fenced block that holds the whole file."""
    CHOICE = "choice"
    """The name of one of the sources in `PromptRow.choices`, and nothing else."""


class Row(BaseModel):
    """A line of a data set."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


RowKind = TypeVar("RowKind", bound=Row)


class PromptRow(Row):
    """A prompt that a stage trains on or is evaluated with."""

    prompt: tuple[Message, ...]
    problem: str
    """`level1/023`"""
    stage: str
    language: CandidateLanguage = CandidateLanguage.CUDA
    """What a reply is to be written in, and the parent is."""
    precision: str
    size: str
    parent_sha256: str = ""
    """Of the kernel that the prompt shows; empty in stage `frontend`."""
    parent: str = ""
    family: str
    split: str
    state: str = ""
    """Bottleneck that the prompt names; empty but in stage `backend`."""
    technique: str = ""
    """That the prompt asks for; likewise."""
    signs: str = ""
    """Features that show the technique (`cuda_source.features`), separated by blanks; empty where none does."""
    reply: ReplyForm = ReplyForm.FENCED
    choices: str = ""
    """JSON object, name -> source; empty unless `reply` is `choice`."""

    @property
    def sources(self) -> dict[str, str]:
        """What a reply of the form `choice` chooses among."""
        return dict(json.loads(self.choices)) if self.choices else {}

    @property
    def digest(self) -> str:
        """Of the messages: 16 hexadecimal digits."""
        return digest_of_messages(self.prompt)


class DataRow(Row):
    """What all rows to learn from tell."""

    problem: str
    verdict: str
    """Of the reply that is wanted."""
    source: str
    """Where it comes from: `recording:NAME`, `run:NAME`."""
    split: str


class SftRow(DataRow):
    """A reply for supervised fine-tuning: judged correct, and faster than its parent in stage `midend`."""

    prompt: tuple[Message, ...]
    completion: tuple[Message, ...]
    stage: str
    speedup: float | None
    """Against the kernel that the prompt shows; null where only the decision is known."""
    candidate_sha256: str
    family: str
    reward: float | None = None
    """By `reward_scheme`; null where nobody gave one."""
    reward_scheme: str = ""
    """Of the stage that judged it; `log` for replies of searches whose speed-up is known, its natural logarithm."""


class PreferenceRow(DataRow):
    """Two replies to one prompt, the better one chosen."""

    prompt: tuple[Message, ...]
    chosen: tuple[Message, ...]
    rejected: tuple[Message, ...]
    chosen_reward: float
    rejected_reward: float


class UnpairedRow(DataRow):
    """A reply and whether it is wanted."""

    prompt: tuple[Message, ...]
    completion: tuple[Message, ...]
    label: bool


class TransitionRow(DataRow):
    """One judged edge of a search, with both sources where they are known."""

    family: str
    state: str
    technique: str
    precision: str
    arch: str
    device: str
    parent_sha256: str
    candidate_sha256: str
    parent: str
    candidate: str
    lessons: tuple[str, ...]
    decision: str
    speedup: float | None
    reward: float | None
    metric_deltas: str
    """JSON object, metric -> candidate minus parent."""
    model: str


def digest_of_messages(messages: Sequence[Message]) -> str:
    """16 hexadecimal digits of what was asked."""
    text = json.dumps([[message.role, message.content] for message in messages])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def digest_of_file(path: Path) -> str:
    """SHA-256 of a data set as it lies on disk. Raises OSError."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def answer(text: str) -> tuple[Message, ...]:
    """A completion as messages."""
    return (Message(role="assistant", content=text),)


def write_rows(path: Path, rows: Iterable[Row]) -> str:
    """Write a data set whole; returns its SHA-256. Raises OSError."""
    content = "".join(f"{row.model_dump_json()}\n" for row in rows)
    write_atomically(path, content)
    return hashlib.sha256(content.encode()).hexdigest()


def read_rows(path: Path, kind: type[RowKind], *, options: str = "") -> list[RowKind]:
    """Rows of a data set; an unfinished last line is left out. Raises UsageError.

    `options` are those with which `train data` writes the file, where it does not without.
    """
    number = 0
    try:
        rows = []
        for line in complete_lines(path.read_bytes()):
            number = line.number
            rows.append(kind.model_validate_json(line.data))
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}",
            hint=f"make it with `{' '.join(['kernelblaster train data', options]).strip()}`",
        ) from error
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(
            f"{path}, line {number}: {where} {first['msg']}", hint="make it again with `train data`"
        ) from error
    return rows
