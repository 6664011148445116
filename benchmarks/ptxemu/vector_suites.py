"""The PTX vectors of the emulator's tests as suites that run anywhere: on the emulated core, or on a GPU.

A form is one kernel around one instruction or a few, with the values that the PTX ISA gives it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "ptxemu" / "core"))

import test_operations
import test_vectors
import test_wgmma
from ptx_machine import HEAD, Launch

Verdict = Callable[[int, list[np.ndarray]], bool]


@dataclass(frozen=True)
class Suite:
    """Forms of one kind.

    Attributes:
        name: what the forms are about.
        forms: one name each.
        head: what the text of their kernels begins with.
        kernels: PTX of each.
        launches: of each, in order.
        agrees: whether a form's arrays, after its launch, hold what they must.
        agrees_on_gpu: the same of a GPU, which may round where the emulator does not.
        values: how many values are judged.
        tolerance: in words, how near they must be.
    """

    name: str
    forms: tuple[str, ...]
    head: str
    kernels: tuple[str, ...]
    launches: tuple[Launch, ...]
    agrees: Verdict
    agrees_on_gpu: Verdict
    values: int
    tolerance: str

    @property
    def ptx(self) -> str:
        """All their kernels."""
        return self.head + "\n".join(self.kernels)

    def ptx_of(self, number: int) -> str:
        """The kernel of one form."""
        return self.head + self.kernels[number]

    def wrong(self, arrays: Sequence[list[np.ndarray]], agrees: Verdict) -> list[str]:
        """Forms that do not agree."""
        return [form for k, form in enumerate(self.forms) if not agrees(k, arrays[k])]


def suites() -> list[Suite]:
    """All of them."""
    return [_scalar(), _programs(), _products()]


def _scalar() -> Suite:
    cases = test_operations.CASES

    def agrees(number: int, arrays: list[np.ndarray]) -> bool:
        case = cases[number]
        lanes = zip(test_operations.operands(case), arrays[-1], strict=True)
        return all(
            test_operations.agrees(case, int(got), test_operations.expected_bits(case, lane)) for lane, got in lanes
        )

    return Suite(
        "instructions of one lane: integers, floats, conversions, carries",
        tuple(case.text for case in cases),
        HEAD,
        tuple(test_operations.kernel(k, case) for k, case in enumerate(cases)),
        tuple(test_operations.launch_of(k, case) for k, case in enumerate(cases)),
        agrees,
        agrees,
        len(cases) * test_operations.LANES,
        "bit for bit against exact arithmetic; approximations within the bound of their case",
    )


def _programs() -> Suite:
    vectors = test_vectors.VECTORS
    names = tuple(vectors)

    def agrees(number: int, arrays: list[np.ndarray]) -> bool:
        return np.array_equal(arrays[0], test_vectors.wanted(names[number]))

    kernels = (test_vectors.kernel_of(name, body, len(found)) for name, (body, found) in vectors.items())
    return Suite(
        "operands, votes, carries and guards of a warp",
        names,
        HEAD,
        tuple(kernels),
        tuple(Launch(name, [np.zeros((32, len(found)), np.uint32)]) for name, (_, found) in vectors.items()),
        agrees,
        agrees,
        sum(32 * len(found) for _, found in vectors.values()),
        "bit for bit",
    )


def _products() -> Suite:
    forms = test_wgmma.FORMS
    problems = [test_wgmma.problem(form) for form in forms]

    def agrees(number: int, arrays: list[np.ndarray], slack: float = 1.0) -> bool:
        return not test_wgmma.differs(forms[number], problems[number], arrays[2], slack=slack)

    return Suite(
        "`wgmma`",
        tuple(str(form) for form in forms),
        HEAD + test_wgmma.DYNAMIC,
        tuple(form.kernel() for form in forms),
        tuple(one.launch for one in problems),
        agrees,
        lambda number, arrays: agrees(number, arrays, test_wgmma.hopper_slack(forms[number])),
        sum(one.launch.arguments[2].size for one in problems),
        "within the rounding of one sum; on a GPU within that of its tensor cores",
    )
