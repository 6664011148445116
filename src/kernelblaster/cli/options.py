"""Options shared by commands, and how they and the environment become a `RunConfig`."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from pydantic import ValidationError

from kernelblaster import Library, Precision
from kernelblaster.config import Environment
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


def _price(value: tuple[float, float] | None) -> tuple[float, float] | None:
    for dollars in value or ():
        if not dollars >= 0:
            raise typer.BadParameter(f"{dollars:g} is no price")
        finite(dollars)
    return value


JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output, nothing else.")]
DeviceOption = Annotated[
    str, typer.Option("--device", help="cuda, emulated, or auto: cuda where a GPU is found.", metavar="KIND")
]
GpuTypeOption = Annotated[
    str | None,
    typer.Option(
        "--gpu-type",
        help="a100, l40s, h100, h200, ...: checked against the GPU found; emulated: the architecture. [env: GPU_TYPE]",
    ),
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option("--precision", help="Storage type of the tensors; fp16 if not given. [env: PRECISION]"),
]
SizeOption = Annotated[
    str | None,
    typer.Option(
        "--size",
        "--workload",
        help="Size (workload) that is timed, by name: small if emulated, else medium, if not given.",
    ),
]
SampleOption = Annotated[
    float,
    typer.Option(
        min=0,
        callback=finite,
        help="Emulated, at sizes above small: million warp instructions of a launch that are enough; outputs are then "
        "not judged there. 0 executes and judges everything.",
    ),
]
LibrariesOption = Annotated[
    str, typer.Option("--libraries", help="Libraries a candidate may call: none, or cublas,cudnn,cutlass.")
]
DatasetOption = Annotated[
    Path | None, typer.Option("--dataset-dir", help="Directory with level1/NNN_Name/...; the shipped one if not given.")
]
ReplyTokensOption = Annotated[
    int | None,
    typer.Option(
        "--max-completion-tokens", min=1, help="Tokens of one reply at most; the endpoint's limit if not given."
    ),
]
ModelTimeoutOption = Annotated[
    float,
    typer.Option("--model-timeout", min=1, callback=finite, help="Seconds that the model may take for one reply."),
]
PriceOption = Annotated[
    tuple[float, float] | None,
    typer.Option(
        "--price", callback=_price, help="Dollars per million prompt and completion tokens.", metavar="IN OUT"
    ),
]


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
                inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
                for f in options
            ]
        )
        return command

    return decorate


def environment() -> Environment:
    """Variables and `.env`. Raises UsageError naming the variable that cannot be used."""
    try:
        return Environment()
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).upper()
        raise UsageError(
            f"{name}={first['input']} in the environment or .env: {_lower_first(first['msg'])}",
            hint=f"unset {name} or give it such a value",
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(".env is not UTF-8 text", hint="write it anew, one NAME=VALUE per line") from error


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def parse_libraries(text: str) -> tuple[Library, ...]:
    """`none` or a comma-separated list, in whatever order. Raises UsageError."""
    if text.strip().lower() == "none":
        return ()
    try:
        return tuple(sorted({Library(part.strip().lower()) for part in text.split(",")}))
    except ValueError:
        known = ", ".join(Library)
        raise UsageError(f"--libraries {text}: unknown library", hint=f"use none, or a list of {known}") from None
