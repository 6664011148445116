"""Options shared by commands."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from kernelblaster import Precision
from kernelblaster.cli.settings import setting
from kernelblaster.errors import UsageError


def finite(value: float | None) -> float | None:
    """Callback of options whose range ends at infinity, which no clock and no JSON file knows."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value:g} is not a finite number")
    return value


def positive(value: float | None) -> float | None:
    """Callback of options that must be finite and greater than zero where they are given."""
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not greater than 0")
    return finite(value)


def file_to_write(path: Path | None) -> Path | None:
    """Callback of options that name a file to be written: its directory is not made, for it may be a slip."""
    if path is not None and not path.parent.is_dir():
        raise UsageError(
            f"{path} cannot be written: {path.parent} is no directory", hint="make it first, with mkdir -p"
        )
    return path


def _price(value: tuple[float, float] | None) -> tuple[float, float] | None:
    for dollars in value or ():
        if not dollars >= 0:
            raise typer.BadParameter(f"{dollars:g} is no price")
        finite(dollars)
    return value


REWARD_HELP = (
    "seed (0 to 1.3), reach, log, log-roofline, milestones, binary, graded, profile, two-stage-correct, two-stage-fast."
)
BASELINE_HELP = "Of episodes that name none: start, expert or attainable; on a GPU also eager, compile or best."
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]
DeviceOption = Annotated[str | None, setting("device", metavar="KIND")]
GpuTypeOption = Annotated[str | None, setting("gpu_type")]
PrecisionOption = Annotated[Precision | None, setting("precision")]
SizeOption = Annotated[str | None, setting("size", "--size", "--workload")]
SampleOption = Annotated[float | None, setting("sample", min=0, callback=finite)]
LibrariesOption = Annotated[str | None, setting("libraries")]
DatasetOption = Annotated[
    Path | None, typer.Option("--dataset-dir", help="Directory with level1/NNN_Name/...; the shipped one if not given.")
]
ReplyTokensOption = Annotated[int | None, setting("max_completion_tokens", min=1)]
ModelTimeoutOption = Annotated[float | None, setting("model_timeout", min=1, callback=finite)]
PriceOption = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--price",
        callback=_price,
        help="Dollars per million prompt and completion tokens; of several models: --set model.prices=NAME=IN:OUT,...",
        metavar="IN OUT",
    ),
]

ExchangeOption = Annotated[
    Path | None, typer.Option("--exchange", help="Folder of the batch exchange; inside the results if not given.")
]


@dataclass(frozen=True)
class ModelOptions:
    """Who writes candidates."""

    model: Annotated[str | None, setting("model")] = None
    model_kind: Annotated[str | None, setting("model_kind")] = None
    base_url: Annotated[str | None, setting("base_url")] = None
    recording: Annotated[Path | None, setting("recording")] = None
    price: PriceOption = None
    model_concurrency: Annotated[int | None, setting("model_concurrency", min=1)] = None
    model_timeout: ModelTimeoutOption = None
    max_completion_tokens: ReplyTokensOption = None


def _default(field: Field[Any]) -> Any:
    """Of the parameter: a field without one is an argument that must be given."""
    return inspect.Parameter.empty if field.default is MISSING else field.default


def grouped(*groups: type[Any]) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Make a command of a function that takes one dataclass per group of options.

    The command has the fields of all groups for its options, in their order, so that none of it is written twice.
    """

    def decorate(function: Callable[..., int]) -> Callable[..., int]:
        def command(**given: Any) -> int:
            return function(*(group(**{f.name: given[f.name] for f in fields(group)}) for group in groups))

        hints = {name: hint for group in groups for name, hint in get_type_hints(group, include_extras=True).items()}
        options = [field for group in groups for field in fields(group)]
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__annotations__ = hints
        command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [
                inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=_default(f), annotation=hints[f.name])
                for f in options
            ]
        )
        return command

    return decorate
