"""The conformance programs, and what running one on a GPU or on the emulated device leaves behind.

`kernels/*.cu` are programs of several cases; `kernels/conformance.hpp` says what a case prints. A capture is one file
with the outputs, times and Nsight Compute metrics of every case on a real GPU; it is the fixture that the emulated
device is compared with.
"""

from __future__ import annotations

import gzip
import tomllib
from collections.abc import Iterable
from enum import StrEnum
from pathlib import Path
from statistics import median
from zlib import crc32

from pydantic import BaseModel, ConfigDict

KERNELS = Path(__file__).with_name("kernels")
PAIRS = Path(__file__).with_name("pairs.toml")
CAPTURE = Path(__file__).parents[1] / "fixtures" / "conformance" / "h200.json.gz"
FORMAT = "kernelblaster-conformance-1"
UNPROFILED = frozenset(["printing", "tensor_copies", "tensor_products"])
"""Programs that were timed, with no time left to profile them: `emulator_capture.py --missing` captures them anew."""
UNFITTED = UNPROFILED | {"contention", "divisions"}
"""Programs that were captured when the model had its form: no figure is fitted to them."""
MARKER = "case_marker"
"""Kernel whose launch says which case the launches after it belong to: its grid is the case's number plus one."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Output(_Frozen):
    """Digest of one output array."""

    name: str
    type: str
    count: int
    ulps: float
    """Units in the last place by which two devices may differ; 0: the same bits."""
    hash: str
    mean_magnitude: float | str
    sums: list[float | str]
    samples: list[float | str]


class Times(_Frozen):
    """Event times of the whole call in microseconds."""

    median: float
    q1: float
    q3: float
    least: float
    n: int


class CaseRun(_Frozen):
    """What a program prints of one case; `times_us` has `cold`, `clean` and `warm` when it was timed."""

    case: str
    number: int
    outputs: list[Output]
    times_us: dict[str, Times] = {}


class Kernel(_Frozen):
    """One launch as Nsight Compute saw it."""

    name: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    metrics: dict[str, float]


class CapturedCase(_Frozen):
    """One case on a real GPU; `kernels` is empty when it was not profiled."""

    program: str
    run: CaseRun
    kernels: list[Kernel]


class LaterSession(_Frozen):
    """What was added to a capture later, on a GPU of the same model."""

    device: dict[str, str]
    programs: list[str]
    """Those whose cases it captured."""
    again: list[CapturedCase]
    """Cases of the programs before, captured once more: how far two sessions are apart."""


class Capture(_Frozen):
    """Everything captured of one GPU model."""

    format: str
    device: dict[str, str]
    """Of the first session, which captured all programs that no later one names."""
    compile_arch: str
    cases: list[CapturedCase]
    failures: list[str]
    """What did not work, in words."""
    sass: dict[str, dict[str, str]] = {}
    """Program -> kernel -> its machine opcodes in order, where cuobjdump was there to list them."""
    later: list[LaterSession] = []


class Pair(_Frozen):
    """The same operation before and after an optimisation."""

    parent: str
    child: str
    change: str


def programs() -> list[str]:
    """Names of the programs."""
    return sorted(path.stem for path in KERNELS.glob("*.cu"))


def pairs() -> list[Pair]:
    """All pairs of the table."""
    return [Pair.model_validate(entry) for entry in tomllib.loads(PAIRS.read_text(encoding="utf-8"))["pair"]]


def read_capture(path: Path = CAPTURE) -> Capture:
    """A capture file. Raises OSError when there is none, ValueError when it does not read."""
    return Capture.model_validate_json(gzip.decompress(path.read_bytes()))


def lag_us(capture: Capture, session: LaterSession) -> float:
    """By how much longer the calls of a later session took: median difference of those that the first has timed, too.

    It does not grow with the time of a call: it is what lies between the events beside the kernels.
    """
    first = {one.run.case: one.run.times_us["cold"].median for one in capture.cases}
    return median(one.run.times_us["cold"].median - first[one.run.case] for one in session.again)


def comparable(capture: Capture) -> list[CapturedCase]:
    """All cases, the times of later sessions less their lag."""
    lag = {program: lag_us(capture, session) for session in capture.later for program in session.programs}
    return [_shifted(one, lag[one.program]) if one.program in lag else one for one in capture.cases]


def _shifted(case: CapturedCase, lag: float) -> CapturedCase:
    times = {
        name: one.model_copy(update={part: getattr(one, part) - lag for part in ("median", "q1", "q3", "least")})
        for name, one in case.run.times_us.items()
    }
    return case.model_copy(update={"run": case.run.model_copy(update={"times_us": times})})


def write_capture(capture: Capture, path: Path) -> None:
    """Write a capture whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_bytes(gzip.compress(capture.model_dump_json().encode(), mtime=0))
    partial.replace(path)


class Half(StrEnum):
    """What a case is for: figures are fitted to one half and judged on the other."""

    FIT = "fit"
    JUDGE = "judge"


def halves(cases: Iterable[str]) -> dict[str, Half]:
    """Half of each case: cases that pairs connect stay together, and the CRC of the first name of such a group decides.

    An even CRC-32 of the name in UTF-8 means the fit.
    """
    group = {name: name for name in cases}
    changed = True
    while changed:
        changed = False
        for pair in pairs():
            first = min(group[pair.parent], group[pair.child])
            changed = changed or group[pair.parent] != first or group[pair.child] != first
            group[pair.parent] = group[pair.child] = first
    return {name: Half.JUDGE if crc32(first.encode()) % 2 else Half.FIT for name, first in group.items()}
