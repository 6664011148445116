"""The PTX vectors of the emulator's tests as suites that run anywhere: on the emulated core, or on a GPU.

A form is one kernel around one instruction or a few, with the values that the PTX ISA gives it.
"""

from __future__ import annotations

import re
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
Comparison = Callable[[int, list[np.ndarray], list[np.ndarray]], str]
_SHOWN = 6
"""Values of a form that are written out where they differ."""


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
        against_gpu: from a form's arrays on a GPU and on the emulated core: what a GPU, which may round where the
            emulator does not, gets otherwise than it must, in words. Empty when it holds.
        result: which of a form's arrays has its results.
        values: how many values are judged.
        tolerance: in words, how near they must be.
    """

    name: str
    forms: tuple[str, ...]
    head: str
    kernels: tuple[str, ...]
    launches: tuple[Launch, ...]
    agrees: Verdict
    against_gpu: Comparison
    result: int
    values: int
    tolerance: str

    @property
    def ptx(self) -> str:
        """All their kernels."""
        return self.head + "\n".join(self.kernels)

    def wrong(self, arrays: Sequence[list[np.ndarray]], agrees: Verdict) -> list[str]:
        """Forms that do not agree."""
        return [form for k, form in enumerate(self.forms) if not agrees(k, arrays[k])]


def suites() -> list[Suite]:
    """All of them."""
    return [_scalar(), _programs(), _products()]


def _told(differences: Sequence[str], of: int) -> str:
    shown = "; ".join(differences[:_SHOWN])
    return f"{len(differences)} of {of} values: {shown}" if differences else ""


def _scalar() -> Suite:
    cases = test_operations.CASES

    def agrees(number: int, arrays: list[np.ndarray]) -> bool:
        case = cases[number]
        lanes = zip(test_operations.operands(case), arrays[-1], strict=True)
        return all(
            test_operations.agrees(case, int(got), test_operations.expected_bits(case, lane)) for lane, got in lanes
        )

    def against_gpu(number: int, there: list[np.ndarray], here: list[np.ndarray]) -> str:
        case, found, known = cases[number], [], True
        for lane, got, emulated in zip(test_operations.operands(case), there[-1], here[-1], strict=True):
            if not test_operations.agrees_on_gpu(case, lane, int(got)):
                of = ", ".join(f"{one:#x}" for one in lane)
                found.append(f"of {of} the GPU gives {int(got):#x}, the emulator {int(emulated):#x}")
                known = known and test_operations.as_assembled(case, lane, int(got))
        why = "as ptxas 13.0 assembles it, not as the PTX ISA says: " if known else ""
        return why + _told(found, len(there[-1])) if found else ""

    return Suite(
        "instructions of one lane: integers, floats, conversions, carries",
        tuple(case.text for case in cases),
        HEAD,
        tuple(test_operations.kernel(k, case) for k, case in enumerate(cases)),
        tuple(test_operations.launch_of(k, case) for k, case in enumerate(cases)),
        agrees,
        against_gpu,
        -1,
        len(cases) * test_operations.LANES,
        "bit for bit against exact arithmetic; approximations within the bound of their case, on a GPU of the PTX ISA",
    )


def as_ptxas_makes_it(form: str, why: str) -> bool:
    """Whether what a GPU gets otherwise of a scalar form, as `against_gpu` tells it, is what ptxas' machine code gives:
    of as many of its values, and the same ones as far as they are written out."""
    case = next((one for one in test_operations.CASES if one.text == form), None)
    count = re.search(rf"(\d+) of {test_operations.LANES} values", why)
    if case is None or case.assembled is None or count is None:
        return False
    differ = 0
    for lane in test_operations.operands(case):
        values = [
            test_operations.number_of(kind, x, flush=case.flush) for kind, x in zip(case.sources, lane, strict=True)
        ]
        differ += not test_operations.agrees(case, case.assembled(*values), test_operations.expected_bits(case, lane))
    told = re.findall(r"of ((?:0x[0-9a-f]+(?:, )?)+) the GPU gives (0x[0-9a-f]+)", why)
    return differ == int(count[1]) and all(
        test_operations.as_assembled(case, tuple(int(one, 16) for one in lane.split(", ")), int(got, 16))
        for lane, got in told
    )


def _programs() -> Suite:
    vectors = test_vectors.VECTORS
    names = tuple(vectors)

    def agrees(number: int, arrays: list[np.ndarray]) -> bool:
        return np.array_equal(arrays[0], test_vectors.wanted(names[number]))

    def against_gpu(number: int, there: list[np.ndarray], here: list[np.ndarray]) -> str:
        differ = np.argwhere(there[0] != test_vectors.wanted(names[number])).tolist()
        found = [
            f"in %r{k} of lane {lane} the GPU has {there[0][lane, k]:#x}, the emulator {here[0][lane, k]:#x}"
            for lane, k in differ
        ]
        return _told(found, there[0].size)

    kernels = (test_vectors.kernel_of(name, body, len(found)) for name, (body, found) in vectors.items())
    return Suite(
        "operands, votes, carries and guards of a warp",
        names,
        HEAD,
        tuple(kernels),
        tuple(test_vectors.launch_of(name) for name in names),
        agrees,
        against_gpu,
        0,
        sum(32 * len(found) for _, found in vectors.values()),
        "bit for bit",
    )


def _products() -> Suite:
    forms = test_wgmma.FORMS
    problems = [test_wgmma.problem(form) for form in forms]

    def agrees(number: int, arrays: list[np.ndarray]) -> bool:
        return not test_wgmma.differs(forms[number], problems[number], arrays[2], slack=1.0)

    def against_gpu(number: int, there: list[np.ndarray], here: list[np.ndarray]) -> str:
        slack = test_wgmma.hopper_slack(forms[number])
        count = test_wgmma.differs(forms[number], problems[number], there[2], slack=slack)
        apart = np.argwhere(there[2].ravel() != here[2].ravel()).ravel().tolist()
        found = [f"at {k} the GPU has {there[2].ravel()[k]}, the emulator {here[2].ravel()[k]}" for k in apart[:_SHOWN]]
        return f"{count} of {there[2].size} values are too far off; {'; '.join(found)}" if count else ""

    return Suite(
        "`wgmma`",
        tuple(str(form) for form in forms),
        HEAD + test_wgmma.DYNAMIC,
        tuple(form.kernel() for form in forms),
        tuple(one.launch for one in problems),
        agrees,
        against_gpu,
        2,
        sum(one.launch.arguments[2].size for one in problems),
        "within the rounding of one sum; on a GPU within that of its tensor cores",
    )
