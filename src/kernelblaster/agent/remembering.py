"""Between a search and the code memory: which core a step shows, and what a search leaves for others."""

from __future__ import annotations

from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.sources import strip_comments
from kernelblaster.agent.state import PromptCore, RolloutState
from kernelblaster.agent.summary import longest_kernel_name
from kernelblaster.config import SearchPart
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.cores import Wanted, donor_for, shown_code
from kernelblaster.knowledge.schema import Core, ShapeRegime


def core_for(context: ProblemContext, state: RolloutState) -> PromptCore | None:
    """The core that a step shows; None where none fits, for every second step, and beside another donor.

    Steps on one kernel take turns, so that what a core brings can be told from siblings that saw none.
    """
    if not context.config.has(SearchPart.CODE_MEMORY) or state.donor or (state.index + state.step) % 2:
        return None
    timing = context.files.evaluation(state.incumbent.evaluation).timing
    wanted = Wanted(
        problem=str(context.problem.id),
        op_family=context.op_family,
        arch=context.facts.arch,
        device_kind=context.facts.kind,
        precision=context.precision,
        regime=ShapeRegime.of(timing.attainable_us if timing else None),
        share=1 / timing.headroom if timing and timing.headroom else None,
        libraries=context.libraries,
    )
    found = donor_for(wanted, context.experience.base().document.cores)
    return PromptCore(id=found.id, told=_told(found), source=found.source) if found else None


def remember_winner(context: ProblemContext, source: str, evaluation: Evaluation) -> None:
    """Keep a final kernel, or its hottest part, for searches of other problems, unless its time is unknown."""
    timing = evaluation.timing
    if not context.config.has(SearchPart.CODE_MEMORY) or timing is None:
        return
    shown = shown_code(strip_comments(source), longest_kernel_name(evaluation))
    if shown is None:
        return
    core = Core(
        problem=str(context.problem.id),
        op_family=context.op_family,
        arch=context.facts.arch,
        device_kind=context.facts.kind,
        precision=context.precision,
        regime=ShapeRegime.of(timing.attainable_us),
        median_us=timing.median_us,
        attainable_us=timing.attainable_us,
        libraries=context.libraries,
        source=shown.source,
        excerpt=shown.excerpt,
    )
    context.experience.remember(core)


def _told(core: Core) -> str:
    share = f", {core.share:.0%} of what is attainable there" if core.share is not None else ""
    what = "its hottest kernel, cut; " if core.excerpt else ""
    return f"{core.problem}: {what}{core.op_family}, {core.precision}, {core.arch}, {core.median_us:.4g} us{share}"
