"""Builds `report.html`."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from kernelblaster.records.layout import RunLayout
from kernelblaster.records.summary import RunSummary
from kernelblaster.report.page import make_page
from kernelblaster.report.reading import read_problem
from kernelblaster.storage.atomic import write_atomically

REPORT = "report.html"


def write_report(summary: RunSummary, layout: RunLayout) -> Path:
    """Write the page of a run beside its other files; returns its path. Raises UsageError for a damaged outcome."""
    # A run may have been moved, or be looked at from elsewhere, since its summary was written.
    records = [read_problem(row, layout.run.joinpath(*row.directory.parts[-2:])) for row in summary.problems]
    environment = Environment(
        loader=PackageLoader("kernelblaster.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    html = environment.get_template("report.html.j2").render(page=make_page(summary, records))
    path = layout.run / REPORT
    write_atomically(path, html)
    return path
