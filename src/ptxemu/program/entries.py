"""Folders of the cache that hold what was built: whole or not at all, valid while their sources are the same."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from ptxemu.decoding import decode
from ptxemu.files import locked
from ptxemu.machine.ptxas import PtxasResources

_REPORT = "report.json"


@dataclass(frozen=True)
class UnitReport:
    """Of device code that was compiled as one.

    Attributes:
        resources: what ptxas said of its kernels.
        digest: CRC-32 of what host code registers for it; 0 where that is not needed.
    """

    resources: tuple[PtxasResources, ...]
    digest: int = 0


@dataclass(frozen=True)
class BuildReport:
    """What is kept beside built files."""

    units: tuple[UnitReport, ...]
    """In the order of the files."""
    dependencies: dict[str, str] = field(default_factory=dict)
    """SHA-256 of the files it was built from, by path; nothing where the key of the entry covers all of them."""

    @property
    def current(self) -> bool:
        """Whether all those files hold now what they held then."""
        return all(Path(path).is_file() and sha256(Path(path)) == digest for path, digest in self.dependencies.items())


@dataclass(frozen=True)
class Entry:
    """One folder, named by the digest of a key.

    Attributes:
        directory: the folder; it need not exist.
    """

    directory: Path

    @classmethod
    def of(cls, cache: Path, key: Sequence[str]) -> Entry:
        """The entry of everything that a key names."""
        digest = hashlib.sha256("\0".join(key).encode()).hexdigest()
        return cls(cache / digest[:2] / digest)

    def ensure(self, build: Callable[[Path], BuildReport], names: Sequence[str]) -> BuildReport:
        """The report of what lies there, after building it where nothing does or it is out of date.

        Args:
            build: fills a scratch folder with files of these names.
            names: of the files to keep.
        """
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        with locked(self.directory.with_suffix(".lock")):
            report = self.report
            if report is None or not report.current:
                report = self._build(build, names)
        return report

    def _build(self, build: Callable[[Path], BuildReport], names: Sequence[str]) -> BuildReport:
        with TemporaryDirectory(prefix="ptxemu-") as scratch:
            report = build(Path(scratch))
            (Path(scratch) / _REPORT).write_text(json.dumps(asdict(report)), encoding="utf-8")
            self._publish(Path(scratch), (*names, _REPORT))
        return report

    def _publish(self, scratch: Path, names: Sequence[str]) -> None:
        """Let others see the files, all or none."""
        staged = self.directory.with_suffix(".partial")
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir()
        for name in names:
            shutil.copy2(scratch / name, staged / name)
        shutil.rmtree(self.directory, ignore_errors=True)
        staged.rename(self.directory)

    @property
    def report(self) -> BuildReport | None:
        """What was kept of an earlier build; None when there was none."""
        path = self.directory / _REPORT
        return decode(BuildReport, json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else None


def sha256(path: Path) -> str:
    """Digest of a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()
