"""Sizes of a module: its own, those that it declares, and a small one that is cheap to check, found by halving."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from kernelblaster.errors import ProblemError
from kernelblaster.problems.interchange.kernelbench.inert_numbers import with_effects
from kernelblaster.problems.interchange.kernelbench.meta_run import FULL, cost_of, run_for_shapes, tensors_of
from kernelblaster.problems.interchange.kernelbench.module_text import ModuleText
from kernelblaster.problems.problem import Problem, StandardWorkload

SMALL = StandardWorkload.SMALL
LARGE = 16.0
"""Times as much it may not have."""
SMALLEST = 16
"""Parameters are not halved below this: windows, strides and groups are no extents."""
LEAST = 4
"""Where that leaves a multiple of what is cheap, parameters are halved down to this."""
AFFORDABLE = 64.0
"""Beyond these times as much a module is not run at all when it is imported, but for its shapes."""
AFFORDABLE_BYTES = 1 << 30
"""Nor beyond this memory, what it computes in between included."""
_HALVINGS = 80
_TOLD, _LONGEST = 3, 160
"""Numbers that are told of where there is no `small`, and characters of why each is of no use."""


def sizes_of(source: Path, module: ModuleText, draft: Problem) -> dict[str, dict[str, int]]:
    """Extents by size, the cheap one first.

    Raises ProblemError where one that is declared gives a number that the module has not.
    """
    unknown = {name for extents in module.sizes.values() for name in extents} - set(module.parameters)
    if unknown:
        raise ProblemError(
            f"{source}: SIZES gives {', '.join(sorted(unknown))}, which the launcher does not get",
            hint=f"its extents are {', '.join(module.parameters)}; assign others at the file's top level",
        )
    full = {**module.parameters, **module.sizes.get(FULL, {})}
    declared = {name: {**full, **extents} for name, extents in module.sizes.items()}
    small = declared.get(SMALL) or _smaller(draft, module.text)
    return {**({SMALL: small} if small else {}), **declared, FULL: full}


def size_notes(problem: Problem) -> Iterator[str]:
    """That a module is dear to check and has no cheap size, why, and how it gets one."""
    full = problem.workloads[FULL]
    cost = cost_of(problem, full)
    if SMALL in problem.workloads or cost is None or cost <= LARGE:
        return
    becomes = {name: _halved_once(problem, name, cost) for name in sorted(full, key=lambda name: -full[name])[:_TOLD]}
    why = "; ".join(f"with {name} halved it {told}" for name, told in becomes.items())
    example = {SMALL: {max(full, key=lambda name: full[name]): SMALLEST}}
    yield (
        f"there is no size small: the module's own takes {cost:,.0f} times what is cheap to check, and numbers lead to "
        f"none ({why}); assign extents at the file's top level and read them in get_inputs and get_init_inputs, or "
        f"declare a size of the numbers there, such as SIZES = {json.dumps(example)}"
    )


def is_affordable(problem: Problem, most: float = AFFORDABLE) -> bool:
    """Whether the cheap size may be run here, and not for its shapes alone; `most`: times what is cheap to check."""
    from kernelblaster.problems.peak_memory import peak_bytes

    size = problem.cheap_workload
    cost = cost_of(problem, problem.workloads[size])
    return cost is not None and cost <= most and peak_bytes(problem, size) <= AFFORDABLE_BYTES


def _halved_once(problem: Problem, name: str, cost: float) -> str:
    """What a module does with a number halved, in words."""
    full = problem.workloads[FULL]
    try:
        found = tensors_of(run_for_shapes(replace(problem, workloads={FULL: {**full, name: full[name] // 2}})))
    except ProblemError as error:
        return f"fails: {error.message.removeprefix(str(problem.reference_path)).lstrip(':0123456789 ')[:_LONGEST]}"
    return f"takes {found.cost:,.0f} times that" if found.cost < cost else "takes no less"


def _smaller(problem: Problem, text: str) -> dict[str, int] | None:
    """Parameters of a size that is cheap to check; None where the module, which is this text, allows none."""
    full = problem.workloads[FULL]
    chosen, cost = _halved(problem, dict(full), SMALLEST)
    if cost is not None and cost > 2.0:
        chosen, cost = _halved(problem, chosen, LEAST)
    if chosen == full or cost is None or cost > LARGE:
        return None
    for name in chosen:  # no tile shall divide them
        odd = {**chosen, name: chosen[name] | 1}
        if chosen[name] >= LEAST and odd != chosen and full[name] != chosen[name] and cost_of(problem, odd) is not None:
            chosen = odd
    return with_effects(problem, text, chosen, partial(is_affordable, most=LARGE))


def _halved(problem: Problem, chosen: dict[str, int], least: int) -> tuple[dict[str, int], float | None]:
    """The largest parameters halved, none below `least`, until that is cheap or leads no further; and its cost."""
    cost = cost_of(problem, chosen)
    stuck: set[str] = set()
    for _ in range(_HALVINGS):
        open_names = [name for name in chosen if name not in stuck and chosen[name] >= 2 * least]
        if cost is None or cost <= 1.0 or not open_names:
            break
        name = max(open_names, key=lambda name: chosen[name])
        halved = {**chosen, name: chosen[name] // 2}
        found = cost_of(problem, halved)
        if found is None or found >= cost:
            stuck.add(name)
        else:
            chosen, cost = halved, found
    return chosen, cost
