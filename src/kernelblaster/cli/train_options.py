"""Options that all commands of `kernelblaster train` share, and where their notices go."""

from __future__ import annotations

import os
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli.options import (
    DatasetOption,
    DeviceOption,
    GpuTypeOption,
    JsonOption,
    PrecisionOption,
    SizeOption,
)
from kernelblaster.cli.settings import ConfigOption, SetOption

DirectoryArgument = Annotated[Path, typer.Argument(help="Directory of the training; the same command continues.")]


@dataclass(frozen=True)
class JudgeOptions:
    """Where candidates are judged."""

    directory: DirectoryArgument = Path("train")
    precision: PrecisionOption = None
    device: DeviceOption = None
    gpu_type: GpuTypeOption = None
    size: SizeOption = None
    dataset_dir: DatasetOption = None
    config: ConfigOption = None
    assignments: SetOption = None
    json_output: JsonOption = False


def tell(stage: str) -> None:
    """A notice on standard error."""
    typer.echo(stage, err=True)


def quieten() -> None:
    """Keep bars and notices of the training libraries, with which a person can do nothing, from between the figures."""
    for name in ("HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS"):
        os.environ.setdefault(name, "1")
    warnings.filterwarnings("ignore", category=FutureWarning, module="transformers")
