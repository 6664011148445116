"""JSON to frozen dataclasses, by their annotations (`dataclasses.asdict` goes the other way), and lines of it.

Understood: dataclasses, enums, `Literal`, str, bool, int, float, `dict[K, V]`, `tuple[T, ...]`, `tuple[A, B]`,
`list[T]` and `T | None`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_Decoder = Callable[[Any], Any]


class DecodingError(ValueError):
    """A value is not what the annotation says; the message names the field."""


def decode(kind: type[_T], value: object, *, strict: bool = False) -> _T:
    """An object of `kind` from parsed JSON.

    Args:
        kind: a dataclass, or any other annotation of the list above.
        value: what `json.loads` returned.
        strict: refuse keys that a dataclass has no field for.

    Raises:
        DecodingError: something is missing, of another type, or refused by a dataclass itself.
    """
    annotation: Any = kind
    decoded: _T = _decoder(annotation, strict)(value)
    return decoded


def json_lines(text: str, *, cut_off: bool, parse_int: Callable[[str], int] = int) -> Iterator[Any]:
    """What the lines of a report hold, one value each.

    Args:
        text: of the file.
        cut_off: the writer was killed or not read to its end, so that a last line that does not end is left out.
        parse_int: makes numbers of digits, as of `json.loads`.

    Raises ValueError and RecursionError.
    """
    lines = text.splitlines()
    if cut_off and not text.endswith("\n"):
        del lines[-1:]
    return (json.loads(line, parse_int=parse_int) for line in lines)


@cache
def _decoder(kind: Any, strict: bool) -> _Decoder:
    origin = get_origin(kind)
    if origin in (Union, UnionType):
        return _optional(kind, strict)
    if origin is Literal:
        return partial(_one_of, get_args(kind))
    if origin in (tuple, list):
        return _sequence(kind, strict)
    if origin is dict:
        key, item = get_args(kind)
        return partial(_mapping, key, _decoder(item, strict))
    if is_dataclass(kind):
        return partial(_object, kind, strict)
    if isinstance(kind, type) and issubclass(kind, Enum):
        return partial(_member, kind)
    return partial(_plain, kind)


def _optional(kind: Any, strict: bool) -> _Decoder:
    (inner,) = (one for one in get_args(kind) if one is not NoneType)
    decoder = _decoder(inner, strict)
    return lambda value: None if value is None else decoder(value)


def _sequence(kind: Any, strict: bool) -> _Decoder:
    make, parts = get_origin(kind), get_args(kind)
    if make is list or parts[-1] is Ellipsis:
        item = _decoder(parts[0], strict)
        return lambda value: make(map(item, _expect(list, value)))
    items = [_decoder(part, strict) for part in parts]

    def fixed(value: Any) -> tuple[Any, ...]:
        if len(_expect(list, value)) != len(items):
            raise DecodingError(f"{len(items)} values were expected, not {len(value)}")
        return tuple(item(one) for item, one in zip(items, value, strict=True))

    return fixed


def _mapping(key: type, item: _Decoder, value: Any) -> dict[Any, Any]:
    try:
        return {key(name): item(one) for name, one in _expect(dict, value).items()}
    except ValueError as error:
        raise DecodingError(str(error)) from error


def _one_of(allowed: tuple[Any, ...], value: Any) -> Any:
    if value not in allowed:
        raise DecodingError(f"{value!r} is none of {allowed}")
    return value


def _member(kind: type[Enum], value: Any) -> Enum:
    try:
        return kind(value)
    except ValueError as error:
        raise DecodingError(str(error)) from error


def _plain(kind: type, value: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _expect(kind, value)


def _expect(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise DecodingError(f"{value!r} is no {kind.__name__}")
    return value


def _object(kind: Any, strict: bool, value: Any) -> Any:
    data: Mapping[str, Any] = _expect(dict, value)
    decoders, required = _members(kind, strict)
    missing = required - data.keys()
    unknown = data.keys() - decoders.keys() if strict else ()
    if missing or unknown:
        what = f"no {sorted(missing)[0]}" if missing else f"an unknown {sorted(unknown)[0]}"
        raise DecodingError(f"{kind.__name__} has {what}")
    found = {}
    for name, decoder in decoders.items():
        if name in data:
            try:
                found[name] = decoder(data[name])
            except DecodingError as error:
                raise DecodingError(f"{name}: {error}") from error
    return kind(**found)


@cache
def _members(kind: Any, strict: bool) -> tuple[dict[str, _Decoder], frozenset[str]]:
    """Decoders of a dataclass' fields, and the names of those without a default."""
    hints = get_type_hints(kind)
    known = [one for one in fields(kind) if one.init]
    required = (one.name for one in known if one.default is MISSING and one.default_factory is MISSING)
    return {one.name: _decoder(hints[one.name], strict) for one in known}, frozenset(required)
