"""What is wrong with a KernelBench module, told of the user's own file and lines, and what helps."""

from __future__ import annotations

import re
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.module_text import ModuleText

_LONGEST = 240
"""Characters of what torch says that are told."""
_VALUES = "shapes, branches and numbers may not depend on values: torch.where chooses by them, and extents are fixed"
_COUNTS = (
    "how many elements there are may not depend on values: compute every one, and choose with "
    "torch.where(condition, one, other); what some rows go through, all go through, weighed by a mask"
)
_NO_SHAPES = (
    "torch cannot tell its shapes without values: write it with other operations, bincount for example as "
    "weights.new_zeros(bins).scatter_add(0, labels, weights)"
)
_SHAPES = "it is run for its shapes alone: use operations that tell them without values, and neither numpy nor devices"
_HINTS = (
    (r"\bforward\(\) (takes|missing|got)", "get_inputs returns a list of forward's arguments, in order"),
    (
        r"\bModel\(\) argument after|__init__\(\) (takes|missing|got)",
        "get_init_inputs returns a list of Model's arguments",
    ),
    (
        r"no attribute 'eval'|cannot assign .* before Module.__init__",
        "Model is a torch.nn.Module, and calls super().__init__()",
    ),
    (r"CUDA|cuda|No HIP|NVIDIA driver|to_empty\(\)", "leave devices out: the judge places tensors and weights"),
    (r"relative import|^No module named", "the file has to stand alone: put what it imports into it"),
    (r"nonzero|masked_select|\bunique", _COUNTS),
    (r"no fake impl or Meta kernel", _NO_SHAPES),
    (r"\.item\(\)|_local_scalar_dense|no data|data-dependent|\.tolist\(\)", _VALUES),
    (r"Meta tensors|Meta. backend|meta tensor|meta device|device meta", _SHAPES),
)
"""Text of what was raised -> what helps."""


def fault_of_source(error: ProblemError, source: Path, module: ModuleText, made: Path) -> ProblemError:
    """The error with the file that was given, and its line, in the place of what was made of it.

    Args:
        error: names the file that was made.
        source: the file that was given.
        module: what was read off it.
        made: `reference.py`.
    """

    def place(found: re.Match[str]) -> str:
        line = found["line"]
        return str(source) if line is None else f"{source}:{module.line_of_source(int(line))}"

    message = re.sub(rf"{re.escape(str(made))}(:(?P<line>\d+))?", place, error.message)
    if str(source) not in message:
        message = f"{source}: {message}"
    cause = error.__cause__
    if cause is None or isinstance(cause, ProblemError | SyntaxError):
        return ProblemError(message, hint=error.hint)
    # The first line says what failed, and others how torch's developers would mend it.
    told = str(cause).strip()
    first = told.partition("\n")[0]
    short = f"{first[:_LONGEST]} ..." if len(first) > _LONGEST else first
    hint = next((hint for pattern, hint in _HINTS if re.search(pattern, told)), error.hint)
    return ProblemError(message.replace(" ".join(told.split()), " ".join(short.split())), hint=hint)
