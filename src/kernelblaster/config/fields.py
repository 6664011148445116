"""The settings one by one: `search.rounds`, its type, default and documentation."""

from __future__ import annotations

import types
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from kernelblaster.config.schema import RunConfig
from kernelblaster.config.section import Section


@dataclass(frozen=True)
class Setting:
    """One leaf of `RunConfig`.

    Attributes:
        path: `search.rounds`; a field of the run itself has no dot.
        kind: its type in words: `integer`, `number`, `fp16, fp32 or bf16`, ...
        default: as people write it; empty where there is none.
        doc: what it means.
        optional: whether `none` is a value.
        secret: whether its value is never shown.
    """

    path: str
    kind: str
    default: str
    doc: str
    optional: bool
    secret: bool


@cache
def settings() -> dict[str, Setting]:
    """Every setting by its path, in the order of the schema."""
    return {setting.path: setting for setting in _leaves(RunConfig, "")}


def sections() -> dict[str, str]:
    """Name of each section, the run's own fields under an empty one -> what it is about."""
    found = {"": RunConfig.__doc__ or ""}
    for name, field in RunConfig.model_fields.items():
        section = _section(field)
        if section is not None:
            found[name] = section.__doc__ or ""
    return found


def _leaves(section: type[Section], prefix: str) -> list[Setting]:
    found: list[Setting] = []
    for name, field in section.model_fields.items():
        deeper = _section(field)
        if deeper is not None:
            found += _leaves(deeper, f"{name}.")
        else:
            found.append(_setting(f"{prefix}{name}", field))
    return found


def _section(field: FieldInfo) -> type[Section] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Section) else None


def _setting(path: str, field: FieldInfo) -> Setting:
    kinds = [kind for kind in _alternatives(field.annotation) if kind is not type(None)]
    return Setting(
        path=path,
        kind=" or ".join(_in_words(kind) for kind in kinds) + _range(field),
        default=shown(field.default),
        doc=" ".join((field.description or "").split()),
        optional=len(kinds) < len(_alternatives(field.annotation)),
        secret=SecretStr in kinds,
    )


def shown(value: object) -> str:
    """A value as people write it: `none`, `true`, `cublas,cudnn`."""
    if value is None or value == ():
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _alternatives(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _in_words(kind: Any) -> str:
    if get_origin(kind) is tuple:
        return f"list of {_in_words(get_args(kind)[0])}"
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(str(member) for member in kind)
    return {int: "integer", float: "number", bool: "true or false", str: "text", Path: "path", SecretStr: "text"}[kind]


def _range(field: FieldInfo) -> str:
    """`, 1 to 1000`, `, more than 0`: what the constraints allow."""
    bounds = {
        name: getattr(rule, name) for rule in field.metadata for name in ("ge", "gt", "le", "lt") if hasattr(rule, name)
    }
    if "ge" in bounds and "le" in bounds:
        return f", {bounds['ge']:g} to {bounds['le']:g}"
    if "gt" in bounds and "le" in bounds:
        return f", more than {bounds['gt']:g}, up to {bounds['le']:g}"
    if "ge" in bounds and "lt" in bounds:
        return f", {bounds['ge']:g} to less than {bounds['lt']:g}"
    if "ge" in bounds:
        return f", {bounds['ge']:g} or more"
    return f", more than {bounds['gt']:g}" if "gt" in bounds else ""
