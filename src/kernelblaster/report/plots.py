"""The report's figures, as Plotly objects."""

from __future__ import annotations

import math

import plotly.graph_objects as go

from kernelblaster.report.data import ProblemPage

TEMPLATE = "plotly_white"
HEIGHT = 360
STEPS_NUMBERED = 20
"""Steps up to which each one has a tick."""


def progress(page: ProblemPage) -> go.Figure:
    """Gain over the start along each rollout."""
    figure = go.Figure()
    for track in page.tracks:
        figure.add_trace(
            go.Scatter(x=track.steps, y=track.gains, text=track.labels, name=track.name, mode="lines+markers")
        )
    figure.update_layout(
        template=TEMPLATE, height=HEIGHT, margin={"t": 20}, xaxis_title="step", yaxis_title="times the start's speed"
    )
    if max(track.steps[-1] for track in page.tracks) <= STEPS_NUMBERED:
        figure.update_xaxes(dtick=1)
    return figure


def roofline(pages: list[ProblemPage]) -> go.Figure:
    """Time of start and final kernel as a multiple of the roofline floor, log scale; the axis begins at the floor."""
    figure = go.Figure()
    largest = 1.0
    for name, timings in (("start", [p.start for p in pages]), ("final", [p.final for p in pages])):
        rows = [
            (f"{p.summary.problem} {p.summary.name}", timing, timing.median_us / timing.floor_us)
            for p, timing in zip(pages, timings, strict=True)
            if timing is not None and timing.floor_us
        ]
        multiples = [multiple for _, _, multiple in rows]
        largest = max([largest, *multiples])
        figure.add_trace(
            go.Bar(
                x=[label for label, _, _ in rows],
                y=multiples,
                text=[f"{timing.median_us:.1f} us{' modelled' if timing.modelled else ''}" for _, timing, _ in rows],
                name=name,
            )
        )
    # Bars show ratios only where they grow from the floor itself.
    figure.update_layout(
        template=TEMPLATE, height=HEIGHT, margin={"t": 20}, barmode="group", yaxis_type="log",
        yaxis_range=[0.0, math.log10(largest * 1.5)], yaxis_title="time / roofline floor",
    )  # fmt: skip
    return figure


def techniques(pages: list[ProblemPage]) -> go.Figure:
    """Measured speed-up of every correct candidate, by technique, coloured by the state it was chosen for."""
    by_state: dict[str, tuple[list[str], list[float], list[str]]] = {}
    for page in pages:
        for t in page.transitions:
            if t.speedup is not None:
                xs, ys, texts = by_state.setdefault(t.state, ([], [], []))
                xs.append(t.technique)
                ys.append(t.speedup)
                texts.append(f"{t.problem}, {t.decision}")
    figure = go.Figure()
    for state, (xs, ys, texts) in sorted(by_state.items()):
        figure.add_trace(go.Scatter(x=xs, y=ys, text=texts, name=state, mode="markers", marker={"size": 9}))
    figure.add_hline(y=1.0, line_dash="dot", line_color="grey")
    figure.update_layout(
        template=TEMPLATE, height=HEIGHT + 80, margin={"t": 20}, yaxis_type="log",
        yaxis_title="speed-up over the parent", xaxis_tickangle=-35,
    )  # fmt: skip
    return figure
