"""What the run-time checks of the emulated device found, as the core reports it.

One JSON object per line of the file that `PTXEMU_CHECKS` names: one bug, with all its occurrences at the same place of
one launch. Each class belongs to the tool of compute-sanitizer that looks for the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path, PurePath

from ptxemu.decoding import DecodingError, decode, json_lines
from ptxemu.errors import CoreFailure

SourcePlace = tuple[str, int]
"""A file and a line."""
_MOST_BYTES = 16 << 20
"""Read of a report: one bug is one line of it."""


class FindingKind(StrEnum):
    """What is wrong."""

    OUT_OF_BOUNDS = "out_of_bounds"
    """Global memory outside every allocation, or shared or local memory beyond its end."""
    USE_AFTER_FREE = "use_after_free"
    MISALIGNED = "misaligned"
    UNINITIALIZED_GLOBAL = "uninitialized_global"
    """A read of bytes that nobody wrote since cudaMalloc."""
    UNINITIALIZED_SHARED = "uninitialized_shared"
    """A read of bytes that the block has not written."""
    RACE_READ_AFTER_WRITE = "race_read_after_write"
    RACE_WRITE_AFTER_READ = "race_write_after_read"
    RACE_WRITE_AFTER_WRITE = "race_write_after_write"
    BARRIER_DEADLOCK = "barrier_deadlock"
    """Threads wait at a barrier that others, which have not exited, never reach, or for a phase that never ends."""
    BARRIER_DIVERGENCE = "barrier_divergence"
    """Lanes of one warp wait at different barriers."""
    MEMBER_MASK = "member_mask"
    """A lane executes a collective of its warp whose mask leaves it out."""
    UNFINISHED_COPY = "unfinished_copy"
    """A block ends before anybody has waited for a bulk copy of its shared memory."""
    MISSING_PROXY_FENCE = "missing_proxy_fence"
    """A bulk copy or wgmma reads what a thread has written, without a `fence.proxy.async` between the two."""
    MISSING_WGMMA_FENCE = "missing_wgmma_fence"
    """A warp's first wgmma has no `wgmma.fence` before it."""
    UNFINISHED_PRODUCT = "unfinished_product"
    """A block ends before anybody has waited for a wgmma, or put it into a group that can be waited for."""
    UNSUPPORTED_REDUCTION = "unsupported_reduction"
    """A reduction by a tensor map whose elements are of a type that the copy engine does not combine so."""
    MISSING_LANES = "missing_lanes"
    """A collective of a warp names lanes that never come."""
    LEAK = "leak"
    """Device memory that was not freed when the program ended; of no kernel."""
    API_ERROR = "api_error"
    """A call of the runtime that failed, where the program has not asked for the error; of no kernel."""


@dataclass(frozen=True)
class Finding:
    """One bug of one launch."""

    tool: str
    """memcheck, initcheck, racecheck or synccheck"""
    kind: FindingKind
    message: str
    kernel: str
    """Mangled name, until `named` replaces it."""
    block: tuple[int, int, int]
    """Where it happened first."""
    thread: tuple[int, int, int]
    count: int
    """How often it happened in the launch, as far as that was counted."""
    ptx_line: int
    source_file: str | None = None
    """Known where the program was compiled with `-lineinfo`."""
    source_line: int | None = None
    other_ptx_line: int | None = None
    """The other access of a race, or where else threads wait."""
    other_source_file: str | None = None
    other_source_line: int | None = None

    @property
    def place(self) -> str:
        """`saxpy.cu:14`, or the PTX line."""
        if self.source_file is None:
            return f"PTX line {self.ptx_line}" if self.ptx_line else "somewhere"
        return f"{PurePath(self.source_file).name}:{self.source_line}"

    def describe(self) -> str:
        """One line: what, where in the grid, how often."""
        times = f", {self.count} times" if self.count > 1 else ""
        if self.kind in (FindingKind.LEAK, FindingKind.API_ERROR):
            return f"{self.message}{times}"
        return f"{self.kernel}: {self.message}, in block {self.block}, thread {self.thread}{times}"


def read_findings(path: Path, *, cut_off: bool = False) -> list[Finding]:
    """Findings of all launches, the same one of several launches once, with the sum of its counts.

    Args:
        path: the file; one that does not exist holds none.
        cut_off: the writer was killed, so that the last line may be torn and is left out then.

    Raises CoreFailure when a line is no finding.
    """
    if not path.exists():
        return []
    try:
        return _merged(decode(Finding, one) for one in _objects(path, cut_off) if "leaked_bytes" not in one)
    except (ValueError, RecursionError) as error:
        raise CoreFailure(
            f"the checks' report does not read: {error}",
            hint="delete the cache directory so that the core is built again",
        ) from error


def _objects(path: Path, cut_off: bool) -> list[dict[str, object]]:
    with path.open("rb") as file:
        found = file.read(_MOST_BYTES)
        cut_off = cut_off or bool(file.read(1))
    found_objects = list(json_lines(found.decode(errors="replace"), cut_off=cut_off))
    if not all(isinstance(one, dict) for one in found_objects):
        raise DecodingError("a line is no object")
    return found_objects


@dataclass(frozen=True)
class _Leak:
    """As the core reports it: where functions of the program would have gone on, the inner ones first."""

    leaked_bytes: int
    callers: tuple[int, ...]


def read_leaks(path: Path, places: Callable[[Sequence[int]], Sequence[SourcePlace | None]]) -> list[Finding]:
    """Allocations that were never freed; those of one line and size once.

    Args:
        path: the file of the checks.
        places: file and line of addresses in the program; None for those that are not the program's own code.

    Raises CoreFailure when a line does not read.
    """
    if not path.exists():
        return []
    try:
        leaks = [decode(_Leak, one) for one in _objects(path, cut_off=False) if "leaked_bytes" in one]
    except (ValueError, RecursionError) as error:
        raise CoreFailure(f"the report of leaks does not read: {error}", hint="delete the cache directory") from error
    callers = list(dict.fromkeys(caller for leak in leaks for caller in leak.callers))
    known = dict(zip(callers, places(callers) if callers else (), strict=True))
    counts = Counter((leak.leaked_bytes, _first(known[caller] for caller in leak.callers)) for leak in leaks)
    return [_leak(size, place, count) for (size, place), count in counts.items()]


def _first(places: Iterable[SourcePlace | None]) -> SourcePlace | None:
    return next((place for place in places if place is not None), None)


def _leak(size: int, place: SourcePlace | None, count: int) -> Finding:
    file, line = place or (None, None)
    return Finding(
        tool="memcheck",
        kind=FindingKind.LEAK,
        message=f"leak: {size:,} bytes were allocated and never freed",
        kernel="",
        block=(0, 0, 0),
        thread=(0, 0, 0),
        count=count,
        ptx_line=0,
        source_file=file,
        source_line=line,
    )


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    merged: dict[tuple[object, ...], Finding] = {}
    for one in findings:
        at, other = one.source_line or one.ptx_line, one.other_source_line or one.other_ptx_line
        key = (one.tool, one.kind, one.kernel, one.source_file, at, one.other_source_file, other)
        known = merged.get(key)
        merged[key] = one if known is None else replace(known, count=known.count + one.count)
    return list(merged.values())


def named(findings: Sequence[Finding], demangle: Callable[[Sequence[str]], Sequence[str]]) -> list[Finding]:
    """Findings with the readable names of their kernels."""
    names = list(dict.fromkeys(finding.kernel for finding in findings))
    readable = dict(zip(names, demangle(names) if names else (), strict=True))
    return [replace(one, kernel=readable[one.kernel].partition("(")[0]) for one in findings]
