"""What a GPU answers when it is asked for an attribute of its own, read from `attributes.json`.

Attributes that follow from the figures of a GPU, and those that tell what the emulator does, are the runtime's
(`core/src/api_device.cpp`). One that has a number and no value is refused by its name.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from ptxemu.decoding import decode


@dataclass(frozen=True)
class _Answers:
    values: dict[str, int]
    source: str


@dataclass(frozen=True)
class _AttributesFile:
    format: str
    numbers: dict[str, int]
    """All that CUDA 13.0 names: `CU_DEVICE_ATTRIBUTE_...` in small letters."""
    all: _Answers
    gpus: dict[str, _Answers]

    def __post_init__(self) -> None:
        for answers in (self.all, *self.gpus.values()):
            if unknown := answers.values.keys() - self.numbers.keys():
                raise ValueError(f"attributes without a number: {', '.join(sorted(unknown))}")


def attribute_numbers() -> dict[str, int]:
    """The number of each attribute, by its name."""
    return _read().numbers


def attribute_values(gpu: str) -> dict[str, int]:
    """What is known of a GPU by its short name (`h200`) beyond its figures; little where no source tells more."""
    data = _read()
    return data.all.values | (data.gpus[gpu].values if gpu in data.gpus else {})


@cache
def _read() -> _AttributesFile:
    text = files("ptxemu.model").joinpath("attributes.json").read_text(encoding="utf-8")
    return decode(_AttributesFile, json.loads(text), strict=True)
