"""Between a search and the code memory: which core a step shows, and what a search leaves for others and the next."""

from __future__ import annotations

from kernelblaster.agent.archive import ArchivedAttempt
from kernelblaster.agent.context import ProblemContext
from kernelblaster.agent.outcome import RECALLED, Incumbent, RecalledKernel
from kernelblaster.agent.slots import problem_slot
from kernelblaster.agent.sources import strip_comments
from kernelblaster.agent.state import PromptCore, RolloutState, Tried
from kernelblaster.agent.summary import changed_metrics, longest_kernel_name
from kernelblaster.config import SearchPart
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.evaluation.results import Decision, Evaluation
from kernelblaster.knowledge.cores import Wanted, donor_for, own_kernel, shown_code, whole_code
from kernelblaster.knowledge.schema import Core, ShapeRegime


def core_for(context: ProblemContext, state: RolloutState) -> PromptCore | None:
    """The core that a step shows; None where none fits, for every second step, and beside another donor.

    Steps on one kernel take turns, so that what a core brings can be told from siblings that saw none.
    """
    if not context.config.has(SearchPart.CODE_MEMORY) or state.donor or (state.index + state.step) % 2:
        return None
    wanted = _wanted(context, context.files.evaluation(state.incumbent.evaluation))
    found = donor_for(wanted, context.experience.base().document.cores)
    return PromptCore(id=found.id, told=_told(found), source=found.source) if found else None


def core_to_recall(context: ProblemContext, start: Incumbent) -> Core | None:
    """The whole kernel of this problem to begin with, unless it is the start; None where there is none.

    A recording answers what was asked on its own path, and a search of an earlier version goes on from where it began.
    """
    if not context.config.has(SearchPart.RECALL) or context.recording is not None or context.files.begun:
        return None
    wanted = _wanted(context, context.files.evaluation(start.evaluation))
    cores = context.experience.base().document.cores
    return own_kernel(wanted, [core for core in cores if core.whole and source_digest(core.whole) != start.sha256])


def recalled_attempt(
    context: ProblemContext, start: Incumbent, recalled: RecalledKernel | None
) -> list[ArchivedAttempt]:
    """How the archive and later prompts know the kernel that was recalled; nothing where the search began without."""
    made = recalled.incumbent if recalled else None
    if recalled is None or made is None:
        return []
    before, after = (context.files.evaluation(one.evaluation) for one in (start, made))
    tried = Tried(
        technique=RECALLED,
        outcome=Decision.FASTER,
        speedup=recalled.speedup,
        accepted=True,
        changes=changed_metrics(before, after),
    )
    attempt = ArchivedAttempt(
        slot=problem_slot(context, "recall"),
        round=0,
        generation=0,
        index=0,
        parent=start.sha256,
        tried=tried,
        candidate=recalled.candidate,
        verdict=recalled.verdict,
        made=made,
        headroom=after.timing.headroom if after.timing else None,
    )
    return [attempt]


def _wanted(context: ProblemContext, parent: Evaluation) -> Wanted:
    """A core for this problem, beside a kernel of it."""
    timing = parent.timing
    return Wanted(
        problem=str(context.problem.id),
        op_family=context.op_family,
        arch=context.facts.arch,
        device_kind=context.facts.kind,
        precision=context.precision,
        regime=ShapeRegime.of(timing.attainable_us if timing else None),
        share=1 / timing.headroom if timing and timing.headroom else None,
        libraries=context.libraries,
        definition=context.problem.definition_digest,
    )


def remember_winner(context: ProblemContext, source: str, evaluation: Evaluation) -> None:
    """Keep a final kernel, unless its time is unknown.

    All of it is for later searches of this problem; what a prompt can show of it, for searches of others.
    """
    timing = evaluation.timing
    if not context.config.has(SearchPart.CODE_MEMORY) or timing is None:
        return
    shown = shown_code(strip_comments(source), longest_kernel_name(evaluation))
    if shown is None:
        return
    core = Core(
        problem=str(context.problem.id),
        definition=context.problem.definition_digest,
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
        whole=whole_code(source),
    )
    context.experience.remember(core)


def _told(core: Core) -> str:
    share = f", {core.share:.0%} of what is attainable there" if core.share is not None else ""
    what = "its hottest kernel, cut; " if core.excerpt else ""
    return f"{core.problem}: {what}{core.op_family}, {core.precision}, {core.arch}, {core.median_us:.4g} us{share}"
