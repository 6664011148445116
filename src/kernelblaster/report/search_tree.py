"""The search as a tree: one lane for each rollout, one dot for each step, branching off the kernel that it changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from kernelblaster.agent.events import Recalled
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.report.reading import ProblemRecord, ReportedStep
from kernelblaster.report.scales import times
from kernelblaster.report.tree_layout import ROOT, Grid, Place, figure_of_dot, figure_of_edge
from kernelblaster.report.winning_path import winning_steps


class StepEnding(StrEnum):
    """How a step ended, as colours tell it."""

    FASTER = "faster"
    INCONCLUSIVE = "inconclusive"
    SLOWER = "slower"
    WRONG = "wrong"
    """A verdict other than correct, or a reply without a kernel."""
    KNOWN = "known"
    """A kernel that the rollout had judged before."""
    OPEN = "open"
    """Not decided."""


def outcome_of(step: ReportedStep) -> StepEnding:
    """How a step ended."""
    if step.decided is None:
        return StepEnding.OPEN
    told = step.decided.outcome
    if told in (Decision.FASTER, Decision.SLOWER, Decision.INCONCLUSIVE):
        return StepEnding(told)
    # A journal of a reply alone names the verdict.
    if told == Verdict.CORRECT:
        return StepEnding.FASTER if step.decided.accepted else StepEnding.INCONCLUSIVE
    return StepEnding.KNOWN if told == "duplicate" else StepEnding.WRONG


@dataclass(frozen=True)
class Figure:
    """A text that ends at a place; empty where there is nothing to tell."""

    x: float
    y: float
    text: str


@dataclass(frozen=True)
class Dot:
    """A step of the tree, in pixels."""

    x: float
    y: float
    outcome: StepEnding
    figure: Figure
    """Gain over the start where the step was accepted."""
    title: str
    anchor: str
    best: bool
    """Whether it lies on the way to the final kernel."""


@dataclass(frozen=True)
class Edge:
    """From a kernel to what was made of it."""

    path: str
    figure: Figure
    """Gain over the kernel that it leaves, of candidates that were timed."""
    best: bool
    accepted: bool


@dataclass(frozen=True)
class Root:
    """The kernel that a round began on."""

    x: float
    y: float
    name: Figure


@dataclass(frozen=True)
class Lane:
    """A rollout's name and height."""

    y: float
    name: str


@dataclass(frozen=True)
class SearchTree:
    """The figure."""

    width: float
    height: float
    roots: tuple[Root, ...]
    lanes: tuple[Lane, ...]
    dots: tuple[Dot, ...]
    edges: tuple[Edge, ...]
    outcomes: tuple[StepEnding, ...]
    """That occur."""


def step_anchor(problem: str, step: ReportedStep) -> str:
    """Where the page shows a step."""
    return f"{problem}-{step.rollout.replace('/', '-')}-{step.number}"


def recalled_anchor(problem: str) -> str:
    """Where the page shows the kernel that was recalled."""
    return f"{problem}-recalled"


def search_tree(record: ProblemRecord) -> SearchTree | None:
    """The tree of a search; None when no step was begun and nothing recalled.

    A recalled kernel has a lane above those of rollouts: it is made from the start as they are, by no step.
    """
    rollouts: dict[str, list[ReportedStep]] = {}
    for step in record.steps:
        rollouts.setdefault(step.rollout, []).append(step)
    if not rollouts and record.recalled is None:
        return None
    best = frozenset(step.slot for step in winning_steps(record.final, record.steps))
    above = int(record.recalled is not None)
    longest = above + max((step.number for step in record.steps), default=0)
    grid = Grid(longest, above)
    recalled = _recalled(record, grid, best)
    roots: dict[str, Place] = {}
    made = _places(rollouts, grid)
    lanes, dots, edges = list(recalled.lanes), list(recalled.dots), list(recalled.edges)
    for number, (name, steps) in enumerate(rollouts.items()):
        y = grid.y(number)
        round_name = name.split("/")[0]
        lanes.append(Lane(y, name.replace("/rollout-", " · ")))
        began = recalled.places.get(_begun_on(record, round_name) or "")
        root = began or roots.setdefault(round_name, (ROOT, y))
        # A rollout goes on from its own copy of a kernel, also where another made the same.
        own: dict[str, Place] = {}
        for step in steps:
            place = (grid.x(step.number), y)
            on_way = step.slot in best
            accepted = step.decided is not None and step.decided.accepted
            parent = own.get(step.parent) or made.get((round_name, step.parent), root)
            edges.append(_edge(grid, (parent, place), _speedup(step), best=on_way, accepted=accepted))
            if accepted and step.candidate:
                own[step.candidate] = place
            gain = times(step.decided.gain) if step.decided and accepted else ""
            figure = Figure(*figure_of_dot(place), gain)
            dots.append(Dot(*place, outcome_of(step), figure, _title(step), step_anchor(record.anchor, step), on_way))
    # What leads to the final kernel lies on top.
    edges.sort(key=lambda edge: (edge.best, edge.accepted))
    width, height = grid.size(len(rollouts))
    return SearchTree(
        width=width,
        height=height,
        roots=(*recalled.roots, *(_root(place, _root_name(record, name)) for name, place in roots.items())),
        lanes=tuple(lanes),
        dots=tuple(dots),
        edges=tuple(edges),
        outcomes=tuple(outcome for outcome in StepEnding if any(dot.outcome is outcome for dot in dots)),
    )


def _root(place: Place, name: str) -> Root:
    return Root(*place, Figure(*figure_of_dot(place), name))


def _edge(grid: Grid, ends: tuple[Place, Place], speedup: float | None, *, best: bool, accepted: bool) -> Edge:
    told = times(speedup) if speedup is not None else ""
    return Edge(grid.path(*ends), Figure(*figure_of_edge(ends[1]), told), best, accepted)


def _speedup(step: ReportedStep) -> float | None:
    """Against its parent; None where it was not timed."""
    judged = step.last.evaluated if step.last else None
    return judged.speedup if judged else None


@dataclass(frozen=True)
class _RecalledLane:
    """What a recalled kernel adds to the tree; nothing where there was none."""

    lanes: tuple[Lane, ...] = ()
    dots: tuple[Dot, ...] = ()
    edges: tuple[Edge, ...] = ()
    roots: tuple[Root, ...] = ()
    places: Mapping[str, Place] = field(default_factory=dict)
    """Where start and kernel lie: rounds that began on either branch off there."""


def _recalled(record: ProblemRecord, grid: Grid, best: frozenset[str]) -> _RecalledLane:
    known = record.recalled
    if known is None:
        return _RecalledLane()
    start, place = (ROOT, grid.y(-1)), (grid.x(0), grid.y(-1))
    went_on = any(step.slot in best and step.parent == known.candidate for step in record.steps)
    on_way = known.accepted and (record.final == known.candidate or went_on)
    gain = times(known.speedup) if known.accepted and known.speedup else ""
    figure = Figure(*figure_of_dot(place), gain)
    title = f"recalled from the knowledge base ({known.core})\n{recalled_told(known)}"
    return _RecalledLane(
        lanes=(Lane(place[1], "recalled"),),
        dots=(Dot(*place, recalled_ending(known), figure, title, recalled_anchor(record.anchor), on_way),),
        edges=(_edge(grid, (start, place), known.speedup, best=on_way, accepted=known.accepted),),
        roots=(_root(start, "start"),),
        places={known.start: start, known.candidate: place},
    )


def recalled_ending(known: Recalled) -> StepEnding:
    """How the judgement of a recalled kernel ended."""
    return StepEnding(known.decision) if known.speedup is not None and known.decision else StepEnding.WRONG


def recalled_told(known: Recalled) -> str:
    """The judgement of a recalled kernel, in a line."""
    if known.speedup is None:
        return f"{known.verdict}: {known.reason}"[:200]
    return f"{known.verdict}, {times(known.speedup)} against the start: {known.decision}; no model was asked"


def _begun_on(record: ProblemRecord, round_name: str) -> str | None:
    """SHA-256 of the kernel that a round began on."""
    return record.rounds.get(int(round_name[1:]) if round_name[1:].isdigit() else 1, record.start)


def _places(rollouts: Mapping[str, Sequence[ReportedStep]], grid: Grid) -> dict[tuple[str, str], Place]:
    """Round and kernel -> where it was first accepted in that round: what was made of it branches off there."""
    places: dict[tuple[str, str], Place] = {}
    accepted = [
        (step.number, grid.y(lane), name.split("/")[0], step)
        for lane, (name, steps) in enumerate(rollouts.items())
        for step in steps
        if step.decided is not None and step.decided.accepted and step.candidate
    ]
    for _, y, round_name, step in sorted(accepted, key=lambda one: one[:2]):
        places.setdefault((round_name, step.candidate or ""), (grid.x(step.number), y))
    return places


def _root_name(record: ProblemRecord, round_name: str) -> str:
    return "start" if _begun_on(record, round_name) == record.start else "best so far"


def _title(step: ReportedStep) -> str:
    lines = [f"{step.rollout}, step {step.number}"]
    state = step.selected.state if step.selected else ""
    lines.append(" → ".join(filter(None, (state, step.technique_told))))
    judged = step.last.evaluated if step.last else None
    if judged and judged.speedup is not None:
        lines.append(f"{judged.verdict}, {times(judged.speedup)} against its parent: {judged.decision}")
    elif judged:
        lines.append(f"{judged.verdict}: {judged.reason}"[:200])
    elif step.last and step.last.generated and step.last.generated.reason:
        lines.append(step.last.generated.reason[:200])
    return "\n".join(filter(None, lines))
