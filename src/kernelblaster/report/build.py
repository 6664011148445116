"""Builds `report.html`."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from plotly.offline import get_plotlyjs

from kernelblaster.knowledge.experience import stored_transitions
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.searches import find_search
from kernelblaster.records.summary import RunSummary
from kernelblaster.replay.buffer import Query
from kernelblaster.report.data import gather
from kernelblaster.report.plots import progress, roofline, techniques
from kernelblaster.storage.atomic import write_atomically

REPORT = "report.html"


def write_report(summary: RunSummary, layout: RunLayout) -> Path:
    """Write the page of a run beside its other files; returns its path."""
    stored = stored_transitions(layout.experiment)
    pages = []
    for row in summary.problems:
        # A run may have been moved, or be looked at from elsewhere, since its summary was written.
        directory = layout.run.joinpath(*row.directory.parts[-2:])
        search = find_search(directory)
        transitions = stored.query(Query(run=search.name, problem=row.problem)) if search is not None else []
        pages.append(gather(row, directory, transitions))
    environment = Environment(
        loader=PackageLoader("kernelblaster.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    options = {"full_html": False, "include_plotlyjs": False, "config": {"displaylogo": False}}
    html = environment.get_template("report.html.j2").render(
        summary=summary,
        pages=pages,
        plotly_js=get_plotlyjs(),
        roofline=roofline(pages).to_html(**options),
        techniques=techniques(pages).to_html(**options),
        progress={page.summary.problem: progress(page).to_html(**options) for page in pages if page.tracks},
    )
    path = layout.run / REPORT
    write_atomically(path, html)
    return path
