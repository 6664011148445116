"""One set of extents for a definition, and where each input's values come from."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, Field, NonNegativeInt

from kernelblaster.problems.exchanged import ExchangedModel, Name

WORKLOAD_KEYS = AliasChoices("workload", "size")
"""Keys under which records name a workload: the first is written, older files have the second."""


class RandomInput(ExchangedModel):
    """Values are drawn by whoever evaluates."""

    type: Literal["random"]


class ScalarInput(ExchangedModel):
    """A number that is passed by value."""

    type: Literal["scalar"]
    value: bool | int | float


class SafetensorsInput(ExchangedModel):
    """Values from a file: `tensor_key` of the safetensors file `path`, relative to the data set."""

    type: Literal["safetensors"]
    path: Name
    tensor_key: Name


class CustomInput(ExchangedModel):
    """Values come from the definition's `custom_inputs_entrypoint`."""

    type: Literal["custom"]


InputSource = Annotated[RandomInput | ScalarInput | SafetensorsInput | CustomInput, Field(discriminator="type")]


class Workload(ExchangedModel):
    """Extents and input sources under a name. JSON calls the name `uuid`.

    Attributes:
        name: unique among a definition's workloads, e.g. `small`.
        axes: extent of each variable axis.
        inputs: input name -> where its values come from.
    """

    name: Name = Field(alias="uuid")
    axes: dict[Name, NonNegativeInt]
    inputs: dict[Name, InputSource]

    @property
    def scalars(self) -> dict[str, bool | int | float]:
        """Inputs that are numbers, by name."""
        return {name: source.value for name, source in self.inputs.items() if isinstance(source, ScalarInput)}
