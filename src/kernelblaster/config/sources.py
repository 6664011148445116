"""Where settings come from: defaults, a TOML file, the environment, options; each wins over those before it.

Every value keeps its origin, so that a person can be told where a wrong one was written.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from pydantic import ValidationError

from kernelblaster.config.fields import settings
from kernelblaster.config.schema import RunConfig
from kernelblaster.config.section import FROM_SOURCES
from kernelblaster.errors import UsageError

CONFIG_FILE = "kernelblaster.toml"
"""Read where it lies in the working directory and no other file is named."""
DOTENV = ".env"
PREFIX = "KERNELBLASTER_"
"""`KERNELBLASTER_SEARCH__ROUNDS` is `search.rounds`."""
VARIABLES = {
    "OPENAI_API_KEY": "model.api_key",
    "OPENAI_BASE_URL": "model.base_url",
    "MODEL": "model.name",
    "GPU_TYPE": "gpu_type",
    "DATASET": "dataset",
    "PRECISION": "precision",
    "EXPERIMENT_NAME": "experiment",
}
"""Variables that upstream's users already set -> setting."""
SECOND_EXPERIMENT = "RL_EXPERIMENT_NAME"
"""Upstream's second name for a series of runs: where it is set, it is appended to the experiment of the environment."""


class Source(StrEnum):
    """Kinds of origins, weakest first."""

    DEFAULT = "default"
    FILE = "file"
    ENVIRONMENT = "environment"
    OPTION = "option"


@dataclass(frozen=True)
class Origin:
    """Where a value was written: a file, a variable or an option by `name`."""

    source: Source
    name: str = ""

    def __str__(self) -> str:
        return f"{self.source} {self.name}".strip()


@dataclass(frozen=True)
class Given:
    """A value that somebody wrote, and where."""

    value: Any
    origin: Origin


@dataclass(frozen=True)
class EffectiveConfig:
    """A configuration, and for each setting where its value comes from."""

    config: RunConfig
    origins: Mapping[str, Origin]


def load_config(file: Path | None = None, options: Mapping[str, object] | None = None) -> EffectiveConfig:
    """The configuration that holds here.

    Args:
        file: a TOML file; `kernelblaster.toml` of the working directory, if there is one, where None.
        options: setting -> value, e.g. `{"search.rounds": 3}`; they win. Values may be text.

    Raises:
        UsageError: an unknown setting, a value of another type or out of range, an unreadable file.
    """
    named = {path: Given(value, Origin(Source.OPTION, path)) for path, value in (options or {}).items()}
    return resolve(file, named)


def resolve(file: Path | None, options: Mapping[str, Given]) -> EffectiveConfig:
    """As `load_config`, for options that know their own names. Raises UsageError."""
    given = {**_from_file(file), **_from_environment(), **options}
    for path, one in given.items():
        require_known(path, one.origin)
    try:
        config = RunConfig.model_validate(_nested(given), context=FROM_SOURCES)
    except ValidationError as error:
        raise _refusal(error, given) from error
    origins = {path: given[path].origin if path in given else Origin(Source.DEFAULT) for path in settings()}
    return EffectiveConfig(config, origins)


def require_known(path: str, origin: Origin) -> None:
    """Raise UsageError for a setting that does not exist, with those that look like it."""
    known = settings()
    if path not in known:
        alike = difflib.get_close_matches(path, known, n=3) or [name for name in known if name.endswith(f".{path}")]
        hint = f"did you mean {' or '.join(alike)}?" if alike else "see `kernelblaster config` for all there are"
        raise UsageError(f"{origin}: there is no setting {path!r}", hint=hint)


def parse_assignments(texts: Iterable[str]) -> dict[str, Given]:
    """`search.rounds=3` of `--set`. Raises UsageError."""
    given = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"--set {text} holds no =", hint="write --set section.field=value")
        given[path.strip()] = Given(value.strip(), Origin(Source.OPTION, f"--set {path.strip()}"))
    return given


def _from_file(file: Path | None) -> dict[str, Given]:
    path = file or Path(CONFIG_FILE)
    if file is None and not path.is_file():
        return {}
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", hint="give the path of a readable TOML file") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path} is not TOML: {error}", hint="write section headers and lines name = value") from error
    return {name: Given(value, Origin(Source.FILE, str(path))) for name, value in _flat(document, "")}


def _flat(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", tuple(value) if isinstance(value, list) else value


def _from_environment() -> dict[str, Given]:
    """Variables, and those of `.env` beside them; one that is set to nothing, as compose files do it, is not set."""
    try:
        written = dotenv_values(DOTENV, encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{DOTENV} is not UTF-8 text", hint="write it anew, one NAME=VALUE per line") from error
    variables = {name.upper(): value for place in (written, os.environ) for name, value in place.items() if value}
    paths = {**VARIABLES, **{variable_of(path): path for path in settings()}}
    given = {
        path: Given(variables[name], Origin(Source.ENVIRONMENT, name))
        for name, path in paths.items()
        if name in variables
    }
    for name in variables:
        if name.startswith(PREFIX) and "__" in name and name not in paths:
            require_known(name.removeprefix(PREFIX).lower().replace("__", "."), Origin(Source.ENVIRONMENT, name))
    if SECOND_EXPERIMENT in variables:
        first = given.get("experiment", Given(settings()["experiment"].default, Origin(Source.DEFAULT)))
        name = f"{first.value}-{variables[SECOND_EXPERIMENT]}"
        given["experiment"] = Given(name, Origin(Source.ENVIRONMENT, SECOND_EXPERIMENT))
    return given


def variable_of(path: str) -> str:
    """The variable that every setting has, beside those of upstream."""
    return PREFIX + path.upper().replace(".", "__")


def _nested(given: Mapping[str, Given]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for path, one in given.items():
        section, _, name = path.rpartition(".")
        table = nested.setdefault(section, {}) if section else nested
        none = settings()[path].optional and isinstance(one.value, str) and one.value.lower() == "none"
        table[name] = None if none else one.value
    return nested


def _refusal(error: ValidationError, given: Mapping[str, Given]) -> UsageError:
    """The first complaint, with the place where the value was written."""
    first = error.errors(include_url=False)[0]
    parts = [part for part in first["loc"] if isinstance(part, str)]
    path = next((".".join(parts[:n]) for n in (2, 1) if ".".join(parts[:n]) in given), ".".join(parts))
    one = given[path]
    value = "(hidden)" if settings()[path].secret else one.value
    message = first["msg"][:1].lower() + first["msg"][1:]
    if one.origin.source is Source.ENVIRONMENT:
        where, hint = f"{one.origin.name}={value} in the environment or {DOTENV}", f"unset {one.origin.name} or give it"
        return UsageError(f"{where}: {message}", hint=f"{hint} such a value")
    where = f"{one.origin.name}: {path} = {value}" if one.origin.source is Source.FILE else f"{one.origin.name} {value}"
    return UsageError(f"{where}: {message}", hint=f"give {settings()[path].kind}")
