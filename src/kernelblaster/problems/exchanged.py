"""What definitions, workloads and solutions have in common: frozen, and without loss from JSON and back to it.

Keys that nobody here knows are kept, and keys that were absent stay absent, so that a file of FlashInfer-Bench or
SOL-ExecBench that is read and written again says the same.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelblaster.errors import ProblemError

Name = Annotated[str, Field(min_length=1)]


class ExchangedModel(BaseModel):
    """A record of the exchange formats. `model_extra` holds the keys that this version does not know."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True, ser_json_inf_nan="constants")

    @classmethod
    def from_json(cls, value: str | bytes | dict[str, Any]) -> Self:
        """Read JSON text or what it parsed to. Raises ProblemError."""
        kind = cls.__name__.lower()
        try:
            return cls.model_validate(value if isinstance(value, dict) else json.loads(value))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"])) or "the whole"
            raise ProblemError(f"not a valid {kind}: {place}: {first['msg']}", hint=f"correct the {kind}") from error
        except ValueError as error:
            raise ProblemError(f"the {kind} is not JSON: {error}", hint="give a JSON object") from error

    def to_json(self) -> dict[str, Any]:
        """What `json.dumps` takes: the keys that were given, unknown ones included."""
        return self.model_dump(mode="json", by_alias=True, exclude_unset=True)
