"""What a counted run reported: its launches and transfers, or why a sample of its blocks cannot stand for all."""

from __future__ import annotations

from pathlib import Path

from ptxemu.counters.record import LaunchRecord, TransferRecord, UnsampledRecord, read_records


class NotSampled(Exception):
    """A sample of blocks cannot stand for all of a call. `reason` names the kernel and what would go wrong."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def counted_records(path: Path, *, cut_off: bool) -> list[LaunchRecord | TransferRecord]:
    """Launches and transfers of a report file; see `read_records`.

    Raises:
        NotSampled: the core stopped because of what a sample had left out.
        CoreFailure: a line is not a record.
    """
    records: list[LaunchRecord | TransferRecord] = []
    for record in read_records(path, cut_off=cut_off):
        if isinstance(record, UnsampledRecord):
            raise NotSampled(record.unsampled)
        records.append(record)
    return records
