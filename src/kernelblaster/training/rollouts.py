"""What a stage has generated and judged, on disk before it is used: the only way in which a stage resumes.

`generations.jsonl` has one line per step and turn, written when the tokens are there; `rollouts.jsonl` one line per
completion, written when its reward is known. A step that is made again after a kill finds its line in both, and neither
generates nor judges anew. The first line of `rollouts.jsonl` names the device: measured and modelled rewards never
share a file.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from kernelblaster.errors import UsageError
from kernelblaster.storage.jsonl import append_line, complete_lines, cut_torn_line
from kernelblaster.storage.records import differing_fields

GENERATIONS = "generations.jsonl"
ROLLOUTS = "rollouts.jsonl"
Tokens = list[int]
Logprobs = list[float | None]
"""Of the tokens of a completion; None for one whose generator did not know it. JSON has no NaN."""


class JudgedCompletion(BaseModel):
    """What became of a completion. `reward` is None where it says nothing about the completion."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    verdict: str
    """A `Verdict`, `no_code` or `machine_failure`."""
    reason: str = ""
    reward: float | None
    parts: dict[str, float] = {}
    hack: bool = False
    suspicious: bool = False
    device_limit: bool = False
    decision: str = ""
    speedup: float | None = None
    """Against `RolloutHeader.baseline`; None unless correct and compared."""
    speedup_low: float | None = None
    speedup_high: float | None = None
    source_sha256: str = ""
    evaluation: str = ""
    """Name of its evaluation on disk."""
    judge_seconds: float = 0.0


class Rollout(JudgedCompletion):
    """One line of `rollouts.jsonl`."""

    step: int
    """Updates made before it."""
    index: int
    """Place in the step."""
    group: int
    """Completions of one prompt, or of one turn of the dialogues on one."""
    turn: int = 0
    """Turns before it."""
    dialogue: int | None = None
    """Place in the step of the dialogue that it belongs to; None where it is one of its own."""
    follows: tuple[int, int] | None = None
    """Step and place of the rollout that its prompt answers to; None in a first turn."""
    problem: str
    prompt: str
    """Digest of its messages."""
    completion: str
    tokens: int
    truncated: bool


class RolloutHeader(BaseModel):
    """First line of `rollouts.jsonl`: what all rewards in it rest on."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["kernelblaster-rollouts-1"] = "kernelblaster-rollouts-1"
    stage: str
    conditions: dict[str, str]
    """Device, precision, workload, version."""
    modelled: bool
    reward: str
    baseline: str
    """`start`, `parent` for the kernel that the prompt shows, or `pytorch`."""
    turns: int = 1
    """That a kernel may be answered."""
    turn_credit: str = ""
    """How turns are credited; empty where there is one."""
    sampling: dict[str, float] = {}
    """How an evaluation samples; empty while training, where `train.json` tells it."""
    weights: str = ""
    """Digest of what an evaluation samples; empty while training, which changes it."""


class Generation(BaseModel):
    """One line of `generations.jsonl`: the completions of a turn of a step as tokens."""

    step: int
    turn: int = 0
    prompts: str
    """Digest of what was asked."""
    completions: list[Tokens]
    logprobs: list[Logprobs] | None = None
    """Of the sampled tokens, where the generator tells them."""


class RolloutStore:
    """The two files of a stage. Safe for many threads of one process.

    Args:
        directory: of the stage.
        header: what rewards rest on.

    Raises UsageError when the files rest on something else.
    """

    def __init__(self, directory: Path, header: RolloutHeader) -> None:
        self._generations = directory / GENERATIONS
        self._rollouts = directory / ROLLOUTS
        self._lock = threading.Lock()
        for path in (self._generations, self._rollouts):
            cut_torn_line(path)
        found = read_header(self._rollouts)
        if found is None:
            append_line(self._rollouts, header.model_dump_json().encode())
        elif found != header:
            raise UsageError(
                f"{self._rollouts} was made by other rules: {differing_fields(found, header)}",
                hint=f"use another directory, the settings that this one began with, or remove {directory}",
            )
        self._by_turn = {(one.step, one.turn): one for one in _parsed(self._generations, Generation, skip=0)}
        self._known = {(one.step, one.index): one for one in read_rollouts(directory)}

    def generation(self, step: int, prompts: str, turn: int = 0) -> Generation | None:
        """What was generated at a step for these prompts. Raises UsageError where it was asked something else."""
        found = self._by_turn.get((step, turn))
        if found is not None and found.prompts != prompts:
            raise UsageError(
                f"step {step} in {self._generations} was generated from other prompts",
                hint="make the prompts that it began with, use another directory, or remove this one",
            )
        return found

    def keep_generation(self, generation: Generation) -> None:
        """Store completions before they are used. Raises OSError."""
        append_line(self._generations, generation.model_dump_json().encode())
        self._by_turn[generation.step, generation.turn] = generation

    def rollout(self, step: int, index: int) -> Rollout | None:
        """What became of a completion, if it was judged before."""
        return self._known.get((step, index))

    def keep(self, rollout: Rollout) -> None:
        """Store an outcome before its reward is used; one that is known stays as it was. Raises OSError."""
        with self._lock:
            place = (rollout.step, rollout.index)
            if place not in self._known:
                append_line(self._rollouts, rollout.model_dump_json().encode())
                self._known[place] = rollout

    @property
    def rollouts(self) -> list[Rollout]:
        """All outcomes, by step and place."""
        return [self._known[place] for place in sorted(self._known)]


def read_header(path: Path) -> RolloutHeader | None:
    """The first line of `rollouts.jsonl`; None where there is none. Raises UsageError."""
    if not path.exists():
        return None
    first = next(complete_lines(path.read_bytes()), None)
    if first is None:
        return None
    try:
        return RolloutHeader.model_validate_json(first.data)
    except ValidationError as error:
        raise UsageError(f"{path} does not begin with what its rewards rest on", hint="restore it") from error


def read_rollouts(directory: Path) -> list[Rollout]:
    """The rollouts of a stage as they were written. Raises UsageError."""
    return _parsed(directory / ROLLOUTS, Rollout, skip=1)


def digest_of_tokens(prompts: Sequence[Sequence[int]]) -> str:
    """16 hexadecimal digits of token sequences."""
    return hashlib.sha256(json.dumps([list(one) for one in prompts]).encode()).hexdigest()[:16]


Line = TypeVar("Line", Generation, Rollout)


def _parsed(path: Path, kind: type[Line], *, skip: int) -> list[Line]:
    lines = list(complete_lines(path.read_bytes())) if path.exists() else []
    try:
        return [kind.model_validate_json(line.data) for line in lines[skip:]]
    except ValidationError as error:
        raise UsageError(f"{path} holds a line that is none of its own", hint="it is damaged: restore it") from error
