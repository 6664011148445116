"""Sources of extensions, and calls of their functions, as C++.

The sources are the candidate's own text, and judged as that of a `.cu` file is. Calls are written here, from numbers
and names.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from kernelblaster.paths import inline_torch_source
from kernelblaster.problems.problem import TensorRole
from kernelblaster.python_candidates.plan import (
    CANDIDATE,
    SCALAR_TYPES,
    CallArgument,
    ExtensionCall,
    ExtensionSource,
    Extents,
    LaunchPlan,
    TensorPlace,
)

_OF_PYTORCH = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[<\"](?:torch|ATen|c10|pybind11)/[^\n]*$", re.MULTILINE)


def extension_text(sources: Sequence[ExtensionSource]) -> str:
    """All sources of a candidate behind what stands for PyTorch's headers, which they do not find."""
    parts = [inline_torch_source().read_text(encoding="utf-8")]
    for source in sources:
        parts.append(f'#line {source.line or 1} "{CANDIDATE if source.line else "extension.cu"}"')
        parts.append(_OF_PYTORCH.sub("", source.text))
    return "\n".join(parts)


class CallText:
    """The calls of one plan.

    Args:
        number: of the plan.
        plan: as it was recorded.
        extents: the size that it was recorded at.
    """

    def __init__(self, number: int, plan: LaunchPlan, extents: Extents) -> None:
        self._number = number
        self._plan = plan
        self._outputs = {spec.name: spec for spec in extents.tensors if spec.role is TensorRole.OUTPUT}
        self._calls = 0

    def opening(self) -> Iterator[str]:
        """Before all steps."""
        calls = [step for step in self._plan.steps if isinstance(step, ExtensionCall)]
        if not calls:
            return
        given = next((step.result for step in calls if self._output(step) is not None), None)
        place, size = ("nullptr", 0) if given is None else (f"b{given}", self._plan.buffers[given].bytes)
        arena = f"arena_{self._number}"
        yield f"        static inline_torch::Arena {arena};"
        yield f"        inline_torch::Call call_{self._number}({arena}, {place}, {size});"

    def call(self, step: ExtensionCall) -> Iterator[str]:
        """One call, and that what it returns is an output, if it is."""
        number = self._calls
        self._calls += 1
        names = []
        for place, argument in enumerate(step.arguments):
            if argument.tensor is not None:
                yield f"        inline_torch::Tensor t{number}_{place}{_tensor(argument.tensor)};"
                names.append(f"t{number}_{place}")
            else:
                names.append(_value(argument))
        made = f"::{step.function}({', '.join(names)});"
        if step.result is None:
            yield f"        {made}"
            return
        yield f"        auto r{number} = {made} (void)r{number};"
        output = self._output(step)
        if output is not None:
            spec = self._outputs[output]
            sizes = ", ".join(map(str, spec.shape))
            kind = f"inline_torch::ScalarType::{SCALAR_TYPES[spec.dtype]}"
            yield f"        inline_torch::give(r{number}, b{step.result}, {{{sizes}}}, {kind});"

    def _output(self, step: ExtensionCall) -> str | None:
        """The output that a call returns; None where it returns another tensor, or none."""
        name = None if step.result is None else self._plan.buffers[step.result].tensor
        return name if name in self._outputs else None


def _tensor(place: TensorPlace) -> str:
    sizes = ", ".join(map(str, place.shape))
    return f"(b{place.buffer} + {place.offset}, {{{sizes}}}, inline_torch::ScalarType::{SCALAR_TYPES[place.dtype]})"


def _value(argument: CallArgument) -> str:
    if argument.result is not None:
        return f"r{argument.result}"
    value = argument.value
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return value.hex() if math.isfinite(value) else _not_finite(value)
    return f"(int64_t){int(value or 0) % (1 << 64)}ull"


def _not_finite(value: float) -> str:
    return '__builtin_nan("")' if math.isnan(value) else f"({'-' if value < 0 else ''}__builtin_inf())"
