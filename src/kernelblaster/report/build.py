"""Builds `report.html` of a run, and the page that compares several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from kernelblaster.config import SearchPart
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.run_record import read_record
from kernelblaster.records.summary import RunSummary
from kernelblaster.report.comparison import RunToCompare, make_comparison
from kernelblaster.report.page import make_page
from kernelblaster.report.reading import read_problem
from kernelblaster.storage.atomic import write_atomically

REPORT = "report.html"
COMPARISON = "comparison.html"


def write_report(summary: RunSummary, layout: RunLayout) -> Path:
    """Write the page of a run beside its other files; returns its path. Raises UsageError for a damaged outcome."""
    # A run may have been moved, or be looked at from elsewhere, since its summary was written.
    islands = _islands(layout)
    places = [layout.run.joinpath(*row.directory.parts[-2:]) for row in summary.problems]
    records = [read_problem(row, place, islands) for row, place in zip(summary.problems, places, strict=True)]
    return _written(layout.run / REPORT, rendered("report.html.j2", make_page(summary, records)))


def _islands(layout: RunLayout) -> int | None:
    """That replies were spread over: none without an archive; None where the run has no record."""
    if not layout.record.exists():
        return None
    search = read_record(layout.record).config.search
    return search.islands if search.has(SearchPart.ARCHIVE) else 0


def write_comparison(runs: Sequence[RunToCompare], path: Path) -> Path:
    """Write the page that compares runs; returns its path. Raises UsageError for runs on different devices."""
    return _written(path, rendered("comparison.html.j2", make_comparison(runs)))


def rendered(template: str, page: object) -> str:
    """A page as HTML."""
    environment = Environment(
        loader=PackageLoader("kernelblaster.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template).render(page=page)


def _written(path: Path, html: str) -> Path:
    write_atomically(path, html)
    return path
