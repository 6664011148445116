"""What a stage was given and what it came to: `train.json`, and whether a later start asks for the same.

The record is written before the first completion, and again when a start of the stage ends. A start with other
settings is refused: it would go on with completions that were sampled and rewarded otherwise, or return weights that
were trained otherwise.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from kernelblaster.config.training import TrainConfig
from kernelblaster.errors import UsageError
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.layout import RECORD
from kernelblaster.training.metrics import Metrics
from kernelblaster.training.phases import PhaseCost
from kernelblaster.training.rows import digest_of_file
from kernelblaster.training.stages import StagePlan

_LIBRARIES = ("torch", "transformers", "trl", "peft", "accelerate", "datasets")
_OF_ONE_START = frozenset({
    "preset", "model", "steps", "minutes", "max_judged", "checkpoint_steps", "generator", "vllm_server",
    "judge", "samples", "micro_batch", "judge_minutes", "winner_pairs",
})  # fmt: skip
"""Settings that may change between starts: how far, where and how fast. The preset's values are those of the plan, and
the model is known by its digest."""
_OF_THE_WARMUP = frozenset({"lora_rank", "lora_alpha", "lora_dropout", "warmup_learning_rate", "seed"})


class StageRecord(BaseModel):
    """`train.json`."""

    format: Literal["kernelblaster-train-3"] = "kernelblaster-train-3"
    stage: str
    updates: int
    """Made so far: fewer than `config.steps` where time or judging ran out, or the stage was killed."""
    config: TrainConfig
    model_sha256: str
    """Of the base model, see `digest_of_model`."""
    plan: dict[str, object]
    """Settings that held; empty for the warm-up."""
    conditions: dict[str, str]
    """What its rewards rest on; empty for the warm-up, which judges nothing."""
    versions: dict[str, str]
    data_sha256: str
    begins_with: str
    """The stage whose weights it began with; empty for the base model."""
    rows: int
    left_out: int
    """Rows that were too long."""
    metrics: Metrics | None = None
    phases: dict[str, PhaseCost] = {}
    """`preparing`, `generating`, `judging`, `updating`, `saving` -> what they took; of a start that was killed up to
    its last update."""

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that tell these weights from others of the same directory."""
        return hashlib.sha256(self.model_dump_json(exclude={"config", "phases"}).encode()).hexdigest()[:16]


def record_of(
    stage: str,
    config: TrainConfig,
    data: Path,
    *,
    rows: int,
    left_out: int,
    plan: StagePlan | None = None,
    conditions: dict[str, str] | None = None,
    begins_with: str = "",
) -> StageRecord:
    """The record of a stage that has made no update yet; of the warm-up without a plan. Raises OSError."""
    return StageRecord(
        stage=stage,
        updates=0,
        config=config,
        model_sha256=digest_of_model(config.model),
        plan={} if plan is None else asdict(plan),
        conditions=conditions or {},
        versions={name: version(name) for name in _LIBRARIES},
        data_sha256=digest_of_file(data),
        begins_with=begins_with,
        rows=rows,
        left_out=left_out,
    )


def write_record(directory: Path, record: StageRecord) -> None:
    """Raises OSError."""
    write_atomically(directory / RECORD, record.model_dump_json(indent=1))


def read_record(directory: Path) -> StageRecord | None:
    """The record of a stage; None where it was not begun. Raises UsageError for one of another version."""
    path = directory / RECORD
    if not path.is_file():
        return None
    try:
        return StageRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise UsageError(
            f"{path} is no record of this version", hint=f"remove {directory} to train the stage again"
        ) from error


def require_same(directory: Path, found: StageRecord, asked: StageRecord) -> None:
    """Raise UsageError where a start asks for other settings than the stage in `directory` was begun with."""
    before, now = settings_of(found), settings_of(asked)
    differing = [f"{name} {before.get(name)!r}, now {now.get(name)!r}" for name in now if before.get(name) != now[name]]
    if differing:
        raise UsageError(
            f"{directory} was trained with other settings: {', '.join(differing)}",
            hint=f"train in another directory, or remove {directory} to train the stage again",
        )


def settings_of(record: StageRecord) -> dict[str, object]:
    """Those that all starts of a stage share, by name. A later version of the judge leaves what has ended alone."""
    config: dict[str, object] = json.loads(record.config.model_dump_json())
    shared = config.keys() & _OF_THE_WARMUP if not record.plan else config.keys() - _OF_ONE_START - record.plan.keys()
    return {
        "model": record.model_sha256[:16],
        **{name: told for name, told in record.conditions.items() if name != "version"},
        **{name: config[name] for name in sorted(shared)},
        **json.loads(json.dumps(record.plan)),
    }


def digest_of_model(directory: Path | None) -> str:
    """SHA-256 of a base model's configuration, and of its files of weights by name and size; empty without a model.

    The weights themselves are gigabytes, and would take longer to read than a kernel to judge.
    """
    if directory is None:
        return ""
    weights = sorted((path.name, path.stat().st_size) for path in directory.glob("*.safetensors"))
    config = (directory / "config.json").read_bytes()
    return hashlib.sha256(config + json.dumps(weights).encode()).hexdigest()
