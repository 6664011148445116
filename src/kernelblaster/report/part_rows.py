"""The account of a search's parts in lines, and why some parts have none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from kernelblaster.report.costs import Cost, money
from kernelblaster.report.parts import Part, PartAccount, PartsAccount, Rate

TOLD = {
    Part.CODE_MEMORY: "the prompt showed a verified kernel of another problem",
    Part.CROSSOVER: "the prompt showed a second fast kernel of this search",
    Part.MIGRATION: "improved a kernel that other islands had made",
    Part.OTHER_PARENTS: "improved another kernel than the fastest",
    Part.EDITS: "the reply that was judged was given as edits of a known kernel",
    Part.PAIR_LESSONS: "the prompt showed a lesson that this run drew from, or tested on, measured pairs",
    Part.REPAIRS: "a first reply failed, and was repaired or not",
}
SWEEP_TOLD = "declared tunables: the sweep's part of the gain"
PROMPTS_TOLD = (
    "every reply has a prompt, so that no step stands beside it: only a search without something that prompts hold "
    "(--ablate) tells what it brings"
)


@dataclass(frozen=True)
class PartRow:
    """A line of the account, as a page tells it."""

    part: str
    told: str
    steps: str = ""
    problems: str = ""
    gain: str = ""
    tokens: str = ""
    rate: str = ""
    dollars: str = ""
    each: tuple[str, str] = ("", "")
    """Tokens and dollars for a doubling of speed."""


@dataclass(frozen=True)
class SilentPart:
    """A part of which this run's steps say nothing, and why."""

    part: str
    why: str


def part_rows(account: PartsAccount | None) -> tuple[PartRow, ...]:
    """The account in lines; none where nothing was decided."""
    return () if account is None else tuple(_rows(account))


def _rows(account: PartsAccount) -> Iterator[PartRow]:
    yield _row("all replies", "", account.whole)
    problems, brought = account.recalled
    if problems:
        told = "verified before, in the knowledge base; not among the replies"
        yield PartRow("recalled kernels", told, problems=str(problems), gain=f"{100 * brought:.1f} %", tokens="0")
    if account.swept.steps:
        # What it costs is time of the machine: the tokens are those of the steps that it was part of.
        yield replace(_row("sweep", SWEEP_TOLD, account.swept), each=("", ""))
    for one in account.contrasts:
        yield _row(one.part, _told(one.part, account), one.having)
        yield _row(f"without {one.part}", "other steps of the same problems", one.lacking)
        if one.difference is not None:
            yield PartRow("", "the former less the latter", rate=_interval(one.difference))
    if account.drawing.tokens:
        told = "calls beside all steps, in none of the figures above"
        cost = account.drawing
        yield PartRow("drawing lessons", told, tokens=_tokens(cost), dollars=money(cost.dollars))


def silent_parts(account: PartsAccount | None) -> tuple[SilentPart, ...]:
    """The parts without a line, and why; none where nothing was decided."""
    if account is None:
        return ()
    known = {one.part for one in account.contrasts}
    silent = [] if account.swept.steps else [SilentPart("sweep", f"no step of this run {SWEEP_TOLD.partition(':')[0]}")]
    for part in Part:
        if part not in known:
            why = _unmoved(account.islands) if part is Part.MIGRATION else f"there is no such step: {TOLD[part]}"
            silent.append(SilentPart(part, why))
    return (*silent, SilentPart("prompts", PROMPTS_TOLD))


def _unmoved(islands: int | None) -> str:
    if islands is None:
        return "how many islands there were was not recorded"
    if islands < 2:
        return "this run had one island" if islands else "this run had no archive"
    return f"replies were spread over {islands} islands, and no kernel that one had made was improved on another"


def _told(part: Part, account: PartsAccount) -> str:
    replies, share = account.edited
    if part is not Part.EDITS:
        return TOLD[part]
    written = "" if share is None else f", which wrote {100 * share:.0f} % of their kernels' code"
    return f"{TOLD[part]}; {replies} such {'reply' if replies == 1 else 'replies'} in all{written}"


def _row(name: str, told: str, account: PartAccount) -> PartRow:
    return PartRow(
        part=name,
        told=told,
        steps=str(account.steps),
        problems=str(account.problems),
        gain=f"{100 * account.raised:.1f} %",
        tokens=_tokens(account.cost),
        rate=_interval(account.rate) if account.rate else "",
        dollars=money(account.cost.dollars),
        each=_each(account),
    )


def _each(account: PartAccount) -> tuple[str, str]:
    each = account.cost.per_doubling(account.raised)
    return each.figures if each is not None else ("no gain" if account.cost.tokens else "", "")


def _tokens(cost: Cost) -> str:
    return f"{cost.tokens / 1000:,.1f} k"


def _interval(rate: Rate) -> str:
    interval = "" if rate.low is None or rate.high is None else f" ({rate.low:.2f} to {rate.high:.2f})"
    return f"{rate.value:.2f} %{interval}"
