"""The run as one small file of text: what a search needs to go on, and nothing that it writes anew.

    out/       the run, as `kernelblaster run --out` keeps it
    exchange/  requests and replies

Left out are the report and the summary, which the next start writes. The database of what was learned is kept as SQL.
An archive can be made while the run goes on: files are read from the last that a step writes to the first, so that
what is in the archive rests on nothing that is missing. It is what a run that was killed leaves, and goes on as that.
"""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO

OUT, EXCHANGE = "out", "exchange"
LEFT_OUT = ("report.html", "summary.json")
DATABASE, DUMP = "experience.sqlite", "experience.sql"
SEARCH = "search.json"
_LAST_WRITTEN_FIRST = (
    *("outcome.json", "final_rl_cuda_perf.cu", "reflections", "rollouts", "attempts", "events.jsonl", "findings"),
    *("steps", "evaluations", "sweeps", "replies", "draws", "questions", "candidates", "recall.json", SEARCH),
)


def pack(place: Path, archive: Path) -> None:
    """Write `place/out` and `place/exchange` to a file, in one step, so that it is never torn.

    One that ends in .xz has a sixth of the size and takes ten times as long: it is for what is kept.
    """
    buffer = io.BytesIO()
    with (
        _compressed(buffer, archive) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in _contents(place):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    archive.parent.mkdir(parents=True, exist_ok=True)
    beside = archive.with_name(f".{archive.name}.part")
    beside.write_bytes(buffer.getvalue())
    os.replace(beside, archive)


def _compressed(buffer: io.BytesIO, archive: Path) -> IO[bytes]:
    if archive.suffix == ".xz":
        return lzma.LZMAFile(buffer, "wb", preset=9)
    return gzip.GzipFile(fileobj=buffer, mode="wb", mtime=0)


def unpack(archive: Path, place: Path) -> None:
    """Write what an archive holds below a folder, over what lies there."""
    with tarfile.open(archive) as tar:
        tar.extractall(place, filter="data")
    for dump in (place / OUT).rglob(DUMP):
        database = dump.with_name(DATABASE)
        database.unlink(missing_ok=True)
        with closing(sqlite3.connect(database)) as connection:
            connection.executescript(dump.read_text(encoding="utf-8"))
        dump.unlink()


def _contents(place: Path) -> Iterator[tuple[str, bytes]]:
    files = [path for root in (OUT, EXCHANGE) for path in sorted((place / root).rglob("*")) if path.is_file()]
    for path in sorted(files, key=lambda path: (_order(path.relative_to(place)), str(path))):
        name = str(path.relative_to(place))
        if path.name in LEFT_OUT or path.name.startswith((f"{DATABASE}-", ".")) or path.suffix == ".lock":
            continue
        if path.name == DATABASE:
            yield str(path.relative_to(place).with_name(DUMP)), _dump(path).encode()
        elif path.name == SEARCH:
            yield name, _without_place(path).encode()
        elif (content := _read(path)) is not None:
            yield name, content


def _order(path: Path) -> int:
    """Earlier for what a step writes later; what is not a search's comes last, the exchange at the very end."""
    ranks = [_LAST_WRITTEN_FIRST.index(part) for part in path.parts if part in _LAST_WRITTEN_FIRST]
    return min(ranks, default=len(_LAST_WRITTEN_FIRST) + (path.parts[0] == EXCHANGE))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:  # renamed meanwhile: a file that was only begun
        return None


def _dump(database: Path) -> str:
    """The database as it is now, its version included, also while others write to it."""
    with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return "\n".join([*connection.iterdump(), f"PRAGMA user_version={int(version)};", ""])


def _without_place(path: Path) -> str:
    """A search's record with the problem's directory as its level and name, wherever it lay."""
    record = json.loads(path.read_text(encoding="utf-8"))
    record["problem"] = str(Path(*Path(record["problem"]).parts[-2:]))
    return json.dumps(record, indent=1)
