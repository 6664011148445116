"""What the emulator's core reports of a call: its kernel launches (`launch.py`), its copies, and what went wrong.

One JSON object per line of the report file, in the order of execution.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Literal

from ptxemu.counters.launch import LaunchRecord
from ptxemu.decoding import DecodingError, decode, json_lines
from ptxemu.errors import CoreFailure


class TransferKind(StrEnum):
    """Which way a copy or fill of the CUDA runtime goes."""

    DEVICE_TO_DEVICE = "device_to_device"
    HOST_TO_DEVICE = "host_to_device"
    DEVICE_TO_HOST = "device_to_host"
    FILL = "fill"


@dataclass(frozen=True)
class TransferRecord:
    """One counted cudaMemcpy or cudaMemset."""

    transfer: TransferKind
    bytes: int


@dataclass(frozen=True)
class HostWorkRecord:
    """What the host code of a counted call has worked beyond what launching takes."""

    host_ns: int
    """Processor time of the thread that made the call, without the emulator's own; not the same in every run."""


@dataclass(frozen=True)
class MarkRecord:
    """The program has begun or ended its profile."""

    mark: Literal["start", "stop"]


@dataclass(frozen=True)
class UnsampledRecord:
    """The end of a call whose launches were sampled: what a sample left out would have decided what is executed."""

    unsampled: str
    """Why, with the kernel's name and the source line where one is known."""


@dataclass(frozen=True)
class FaultRecord:
    """A kernel that failed, after which every call of the CUDA runtime returns its error."""

    fault: str
    """What happened, with the kernel's name and the source line where one is known."""


@dataclass(frozen=True)
class HostFaultRecord:
    """Host code that touched memory of the device, which kills the program."""

    host_fault: str
    """What it did, and to which memory."""
    callers: tuple[int, ...]
    """Where it was in the program, and where functions of the program would have gone on, the inner ones first."""


@dataclass(frozen=True)
class RunningRecord:
    """What the program was doing when its time was up."""

    running: str
    """Which kernel was executed, and where; empty where none was."""
    callers: tuple[int, ...]
    """Where the program's own code was."""


@dataclass(frozen=True)
class MissingRecord:
    """Something that a GPU has and the emulated one lacks, and that the program has asked for while it ran."""

    missing: str


@dataclass(frozen=True)
class RefusedRecord:
    """A copy, fill, allocation or free that returned an error; the program has not asked for the last error since."""

    refused: str
    """What was refused, with which error, and why."""
    count: int
    callers: tuple[int, ...]
    """Where functions of the program would have gone on, the inner ones first."""


CountedRecord = LaunchRecord | TransferRecord | HostWorkRecord
"""What a counted call consists of."""
Record = (
    CountedRecord
    | MarkRecord
    | UnsampledRecord
    | FaultRecord
    | HostFaultRecord
    | RunningRecord
    | MissingRecord
    | RefusedRecord
)

_KINDS: dict[str, type[Record]] = {
    "kernel": LaunchRecord,
    "transfer": TransferRecord,
    "host_ns": HostWorkRecord,
    "mark": MarkRecord,
    "unsampled": UnsampledRecord,
    "fault": FaultRecord,
    "host_fault": HostFaultRecord,
    "running": RunningRecord,
    "missing": MissingRecord,
    "refused": RefusedRecord,
}
"""By the key that only records of this kind have."""


def read_records(path: Path, *, cut_off: bool = False) -> list[Record]:
    """Records of a report file, in order.

    Args:
        path: the file; one that does not exist holds no records.
        cut_off: the writer was killed, so that the last line may be torn and is left out then.

    Raises CoreFailure when a line is not a record.
    """
    if not path.exists():
        return []
    try:
        text = path.read_text(encoding="utf-8")
        return [_record(value) for value in json_lines(text, cut_off=cut_off, parse_int=_count)]
    except (ValueError, RecursionError) as error:
        raise CoreFailure(
            f"the emulator's report does not read: {error}",
            hint="delete the cache directory so that the core is built again",
        ) from error


def _count(digits: str) -> int:
    if digits.startswith("-"):
        raise DecodingError(f"{digits} counts nothing")
    return int(digits)


def _record(value: object) -> Record:
    if isinstance(value, dict):
        for key, kind in _KINDS.items():
            if key in value:
                return decode(kind, value)
    raise DecodingError(f"{value!r} is no record")
