"""A module's `forward` as a kernel has it: tensors and fractions go in, one flat tuple of tensors comes out.

Whole numbers, flags, texts and `None` that `get_inputs` gives are constants of the problem; tuples within a tuple of
outputs are one tuple, without `None`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from string import Template

from kernelblaster.problems.interchange.kernelbench.module_text import unused
from kernelblaster.problems.problem import StandardWorkload

_FLAT = Template("""def $flat(outputs):
    if isinstance(outputs, (tuple, list)):
        return tuple(one for part in outputs for one in $flat(part))
    return () if outputs is None else (outputs,)


""")
_FORWARD = Template("""$forward = Model.forward


def $plain($taken):
    return $called


Model.forward = $plain


""")
_INPUTS = Template("""$drawn = get_inputs


def get_inputs(size="$size"):
    return [value for place, value in enumerate($drawn(size)) if place not in {$places}]


""")


def constants(given: Iterable[object]) -> dict[int, object]:
    """Arguments that are written as literals, by place; fractions are none."""
    return {place: value for place, value in enumerate(given) if _is_literal(value)}


def flat(returned: object) -> Iterator[object]:
    """What tuples and lists within each other hold, without `None`."""
    if isinstance(returned, tuple | list):
        for part in returned:
            yield from flat(part)
    elif returned is not None:
        yield returned


def is_flat(returned: object) -> bool:
    """Whether it is one output, or a tuple of them."""
    parts = returned if isinstance(returned, tuple | list) else ()
    return not any(part is None or isinstance(part, tuple | list) for part in parts)


def plain_forward(text: str, names: Sequence[str], fixed: Mapping[int, object], *, nested: bool) -> str:
    """The text of a module, and below it what makes its `get_inputs` and `forward` so.

    Args:
        text: that ends with empty lines.
        names: of the arguments that `get_inputs` gives.
        fixed: those of them that are constants, by place.
        nested: outputs are in tuples within a tuple.
    """
    forward, drawn, plain = (unused(it, text) for it in ("_forward", "_drawn", "_plain_forward"))
    flattened = unused("_flat", text)
    left = [name for place, name in enumerate(names) if place not in fixed]
    taken = ", ".join(["self", *left])
    passed = ", ".join(["self", *(repr(fixed[at]) if at in fixed else name for at, name in enumerate(names))])
    called = f"{forward}({passed})"
    below = text
    if nested:
        called = f"{flattened}({called})"
        below += _FLAT.substitute(flat=flattened)
    below += _FORWARD.substitute(forward=forward, plain=plain, taken=taken, called=called)
    if fixed:
        places = ", ".join(map(str, sorted(fixed)))
        below += _INPUTS.substitute(drawn=drawn, size=StandardWorkload.FULL, places=places)
    return below


def _is_literal(value: object) -> bool:
    try:
        return not isinstance(value, float) and ast.literal_eval(repr(value)) == value
    except (ValueError, TypeError, SyntaxError):
        return False
