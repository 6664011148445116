"""Things that are chosen by name: models, devices, search policies, profilers.

A registry holds, per name, a value or where to import it from (`package.module:attribute`), so that what is not used is
not loaded. Adding something is one file and one line; from outside it is a call of `register`.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Generic, TypeVar, cast

from kernelblaster.errors import UsageError

Item = TypeVar("Item")


@dataclass(frozen=True)
class Registered(Generic[Item]):
    """One name: what it stands for, in a line, and its value or the place of its value."""

    about: str
    value: Item | str


class Registry(Generic[Item]):
    """Values of one kind by name.

    Args:
        kind: what they are, for messages: `search policy`.
        offers: the protocol that all satisfy.
    """

    def __init__(self, kind: str, offers: type = object) -> None:
        self._kind = kind
        self._offers = offers
        self._entries: dict[str, Registered[Item]] = {}

    def register(self, name: str, value: Item | str, about: str) -> None:
        """Add a name.

        Args:
            name: by which it is chosen, in configuration and options.
            value: the thing itself, or `package.module:attribute`.
            about: what it is, one line.

        Raises UsageError when the name is taken, or the thing lacks what all of its kind offer.
        """
        if not isinstance(value, str):
            require_offers(f"{self._kind} {name!r}", value, self._offers)
        if name in self._entries:
            raise UsageError(f"there is a {self._kind} {name!r} already", hint="choose another name")
        self._entries[name] = Registered(about, value)

    def unregister(self, name: str) -> None:
        """Take a name out again. Raises UsageError when there is none."""
        self._entry(name)
        del self._entries[name]

    def get(self, name: str) -> Item:
        """The value of a name. Raises UsageError for an unknown one."""
        value = self._entry(name).value
        if not isinstance(value, str):
            return value
        module, _, attribute = value.partition(":")
        return cast(Item, getattr(import_module(module), attribute))

    def about(self, name: str) -> str:
        """What a name stands for. Raises UsageError for an unknown one."""
        return self._entry(name).about

    def require(self, name: str) -> None:
        """Raise UsageError for an unknown name; loads nothing."""
        self._entry(name)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def _entry(self, name: str) -> Registered[Item]:
        if name not in self._entries:
            raise UsageError(f"unknown {self._kind} {name!r}", hint=f"use {', '.join(self._entries)}")
        return self._entries[name]


def require_offers(what: str, value: object, protocol: type, *, hint: str = "") -> None:
    """Raise UsageError for a value that lacks what a protocol names.

    It has to be there: what it takes and gives shows when it is used.

    Args:
        what: names the value, for the message: `model`.
        value: what somebody gave.
        protocol: what it is used as.
        hint: what else may be given; behind what the protocol asks for.
    """
    wanted = _members(protocol)
    article = "an" if protocol.__name__[0] in "AEIOU" else "a"
    asked = f"{article} {protocol.__name__} has {', '.join(wanted)}{f'; {hint}' if hint else ''}"
    if isinstance(value, type) and "__call__" not in wanted:
        raise UsageError(f"{what} is the class {value.__name__}", hint=f"give one of it: {value.__name__}(...)")
    lacks = [name for name in wanted if not _has(value, name)]
    if lacks:
        raise UsageError(f"{what} cannot be of type {type(value).__name__}: it lacks {', '.join(lacks)}", hint=asked)


def require_callable(what: str, value: object) -> None:
    """Raise UsageError for what is neither None nor can be called."""
    if value is not None and not callable(value):
        raise UsageError(f"{what} cannot be of type {type(value).__name__}", hint="give a function, or leave it out")


def _members(protocol: type) -> list[str]:
    """Public members that a protocol or class declares, and whether it is called."""
    declared = [name for kind in reversed(protocol.__mro__) if kind is not object for name in vars(kind)]
    return [name for name in dict.fromkeys(declared) if name == "__call__" or not name.startswith("_")]


def _has(value: object, name: str) -> bool:
    """Whether a member is there. Properties are not asked for: that may take long, or fail for another reason."""
    try:
        inspect.getattr_static(value, name)
    except AttributeError:
        return hasattr(value, name)
    return True
