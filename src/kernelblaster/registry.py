"""Things that are chosen by name: models, devices, search policies, profilers.

A registry holds, per name, a value or where to import it from (`package.module:attribute`), so that what is not used is
not loaded. Adding something is one file and one line; from outside it is a call of `register`.
"""

from __future__ import annotations

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
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._entries: dict[str, Registered[Item]] = {}

    def register(self, name: str, value: Item | str, about: str) -> None:
        """Add a name.

        Args:
            name: by which it is chosen, in configuration and options.
            value: the thing itself, or `package.module:attribute`.
            about: what it is, one line.

        Raises UsageError when the name is taken.
        """
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
