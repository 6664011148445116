"""What all groups of settings are."""

from __future__ import annotations

import difflib
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, ValidationInfo, model_validator

from kernelblaster.errors import UsageError

FROM_SOURCES = "from sources"
"""Context of a validation whose caller tells where each value was written."""


class Section(BaseModel):
    """A group of settings. What is written below a field is its documentation.

    Who makes one in Python is told of a wrong name or value by a UsageError. Files may hold settings of other versions,
    and whoever reads them tells what is wrong: they get pydantic's error.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)

    @model_validator(mode="wrap")
    @classmethod
    def _refused_in_one_line(cls, given: Any, validate: ModelWrapValidatorHandler[Self], info: ValidationInfo) -> Self:
        if info.mode != "python" or info.context == FROM_SOURCES:
            return validate(given)
        if isinstance(given, dict):
            _require_known(cls, given)
        try:
            return validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(map(str, first["loc"]))
            message = first["msg"][:1].lower() + first["msg"][1:]
            hint = "see `kernelblaster config` and docs/configuration.md for all settings"
            raise UsageError(f"{cls.__name__}: {where or 'the whole'}: {message}", hint=hint) from error


def _require_known(section: type[Section], given: dict[str, Any]) -> None:
    for name in given:
        if name not in section.model_fields:
            alike = difflib.get_close_matches(name, section.model_fields, n=3)
            hint = f"did you mean {' or '.join(alike)}?" if alike else f"it has {', '.join(section.model_fields)}"
            raise UsageError(f"{section.__name__} has no setting {name!r}", hint=hint)
