"""What the functions of `kernelblaster.api` that train share: names, judges, the extra that is needed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TypeVar

from kernelblaster.api.evaluating import Tell, open_evaluator
from kernelblaster.config import RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.remote_judge import RemoteJudge
from kernelblaster.errors import MachineError, UsageError
from kernelblaster.paths import how_to_install
from kernelblaster.runs.choices import timed_workload

Named = TypeVar("Named", bound=StrEnum)


def named(kind: type[Named], name: str) -> Named:
    """A value by its name. Raises UsageError where there is none of that name."""
    try:
        return kind(name)
    except ValueError as error:
        what = re.sub(r"(?<!^)(?=[A-Z])", " ", kind.__name__).lower()
        raise UsageError(f"there is no {what} {name!r}", hint=f"choose from {', '.join(kind)}") from error


@contextmanager
def open_judge(config: RunConfig, device: Device | str | None, on_stage: Tell | None) -> Iterator[SharedJudge]:
    """The judge of a training, in this process or at `train.judge`. Raises UsageError, DeviceError."""
    if config.train.judge is None:
        with open_evaluator(config, device=device, on_stage=on_stage) as evaluator:
            yield SharedJudge(evaluator)
        return
    judge = RemoteJudge(config.train.judge)
    wanted = (config.precision, timed_workload(config, judge.device.facts, ()))
    if (judge.precision, judge.workload) != wanted:
        raise UsageError(
            f"the judge at {config.train.judge} judges {judge.precision} at {judge.workload}, "
            f"this training asks for {wanted[0]} at {wanted[1]}",
            hint="give both the same --precision and --size",
        )
    yield SharedJudge(judge)


@contextmanager
def training_extra() -> Iterator[None]:
    """Raise MachineError where what is imported inside needs the extra `train`."""
    try:
        yield
    except ImportError as error:
        raise MachineError(
            f"there is nothing to train with: {error}", hint=f"install the extra: {how_to_install('train')}"
        ) from error
