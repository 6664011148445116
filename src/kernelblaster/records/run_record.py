"""`run.json`: what ran, on what, with which versions; and whether another start may continue it."""

from __future__ import annotations

import platform
import time
import uuid
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.errors import UsageError
from kernelblaster.problems.workload import WORKLOAD_KEYS
from kernelblaster.version import __version__


class RunRecord(BaseModel):
    """Facts of the latest start of a run. `run` names the run over all its starts; no key is in here."""

    format: str = "kernelblaster-run-1"
    run: str
    started: str
    config: RunConfig
    origins: dict[str, str] = {}
    """Setting -> where its value was written; empty where the caller made the configuration itself."""
    workload: Annotated[str, Field(validation_alias=WORKLOAD_KEYS)]
    device: DeviceFacts
    device_reason: str
    model_reason: str
    versions: dict[str, str]

    @property
    def conditions(self) -> str:
        """What results must share to stand in one table."""
        libraries = ", ".join(self.config.libraries) or "none"
        told = f"{self.device.name} ({self.device.arch}), size {self.workload}, libraries {libraries}"
        ablated = ", ".join(self.config.search.ablate)
        return f"{told}, without {ablated}" if ablated else told

    def comparable(self, other: RunRecord) -> bool:
        """Whether results of both may stand in one table: same device, workload, libraries and ablations."""
        return (self.device.kind, self.conditions) == (other.device.kind, other.conditions)


def new_record(
    config: RunConfig, workload: str, facts: DeviceFacts, device_reason: str, model_reason: str
) -> RunRecord:
    """The record of a start, under a new name."""
    return RunRecord(
        run=uuid.uuid4().hex[:12],
        started=time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        config=config,
        workload=workload,
        device=facts,
        device_reason=device_reason,
        model_reason=model_reason,
        versions={"kernelblaster": __version__, "python": platform.python_version(), "system": platform.platform()},
    )


def read_record(path: Path) -> RunRecord:
    """Read `run.json`. Raises UsageError when it is missing or damaged."""
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise UsageError(f"{path} does not exist", hint="give the directory of a run: it holds run.json") from None
    except NotADirectoryError:
        raise UsageError(f"{path.parent} is no directory of a run", hint="give the one that holds run.json") from None
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise UsageError(
            f"{path} is damaged: {'.'.join(map(str, first['loc']))} {first['msg']}",
            hint="move it away; what was finished is kept",
        ) from error
