"""Source code that solves a definition, with what is needed to build and call it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Self

from pydantic import Field, field_validator, model_validator

from kernelblaster.problems.exchanged import ExchangedModel, Name


class SourceFile(ExchangedModel):
    """One file of a solution; `path` is relative and stays below the solution's directory."""

    path: Name
    content: str

    @field_validator("path")
    @classmethod
    def _stays_inside(cls, path: str) -> str:
        if PurePosixPath(path).is_absolute() or ".." in PurePosixPath(path).parts:
            raise ValueError(f"{path} leaves the solution's directory")
        return path


class BuildSpec(ExchangedModel):
    """How a solution is built and called.

    Attributes:
        languages: what it is written in; `language` in older files, which name one.
        target_hardware: where it is meant to run.
        entry_point: `FILE::FUNCTION`.
        dependencies: libraries it links or imports.
        destination_passing_style: whether outputs are allocated by the caller and passed last.
        binding: how C++ is reached from Python.
        compile_options: further flags by tool (`cflags`, `cuda_cflags`, `ld_flags`).
    """

    languages: tuple[Name, ...] | None = None
    language: Name | None = None
    target_hardware: tuple[Name, ...]
    entry_point: Name
    dependencies: tuple[Name, ...] | None = None
    destination_passing_style: bool = True
    binding: str | None = None
    compile_options: dict[str, tuple[str, ...]] | None = None

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        if not self.languages and not self.language:
            raise ValueError("no language is named")
        if self.entry_point.count("::") != 1:
            raise ValueError(f"the entry point {self.entry_point!r} is not FILE::FUNCTION")
        return self

    @property
    def written_in(self) -> tuple[str, ...]:
        """Its languages, whichever way they are named."""
        return self.languages or ((self.language,) if self.language else ())


class Solution(ExchangedModel):
    """An implementation of a definition.

    Attributes:
        name: unique among solutions.
        definition: name of what it solves.
        author: person or agent that wrote it.
        spec: how it is built and called.
        sources: its files, at least one.
        description: for people.
    """

    name: Name
    definition: Name
    author: Name
    spec: BuildSpec
    sources: tuple[SourceFile, ...] = Field(min_length=1)
    description: str | None = None

    @model_validator(mode="after")
    def _has_its_entry_file(self) -> Self:
        paths = [source.path for source in self.sources]
        if len(set(paths)) < len(paths):
            raise ValueError("two source files have one path")
        if self.entry_file not in paths:
            raise ValueError(f"the entry file {self.entry_file} is not among the sources")
        return self

    @property
    def entry_file(self) -> str:
        """Path of the file that holds the entry point."""
        return self.spec.entry_point.split("::")[0]

    @property
    def entry_function(self) -> str:
        """Name of the function that is called."""
        return self.spec.entry_point.split("::")[1]

    @property
    def entry_source(self) -> str:
        """Content of the entry file."""
        return next(source.content for source in self.sources if source.path == self.entry_file)
