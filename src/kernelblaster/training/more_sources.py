"""Replies to learn from that no search wrote: rollouts of a training, and verified kernels of a knowledge base.

What a stage's policy wrote itself and the judge accepted is what rejection fine-tuning learns from. A repaired kernel
answers the first prompt of its dialogue, which showed no failure. Kernels of a knowledge base answer no prompt: one is
made for them where there is a device to pose the problem (`train data`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelblaster.config.training import Baseline
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.training.judging import MACHINE
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.metrics import speedup
from kernelblaster.training.rollouts import ROLLOUTS, Rollout, RolloutHeader, read_header, read_rollouts
from kernelblaster.training.rows import PromptRow, read_rows
from kernelblaster.training.sources import KNOWLEDGE, TRAINING, KnownReply, KnownResult
from kernelblaster.training.stages import Stage


def is_training(path: Path) -> bool:
    """Whether a stage of a training has judged anything there."""
    return any((TrainingLayout(path).stage(stage) / ROLLOUTS).is_file() for stage in Stage)


def training_replies(root: Path) -> list[KnownReply]:
    """What the stages of a training wrote, the fastest first; nothing suspicious. Raises UsageError."""
    layout = TrainingLayout(root)
    found: list[KnownReply] = []
    for stage in Stage:
        header = read_header(layout.stage(stage) / ROLLOUTS)
        if header is None:
            continue
        prompts = {row.digest: row for row in read_rows(layout.prompts(stage), PromptRow)}
        rollouts = sorted(read_rollouts(layout.stage(stage)), key=speedup, reverse=True)
        found += _written(layout, header, stage, prompts, rollouts)
    return found


def known_kernels(path: Path) -> list[KnownReply]:
    """Kernels that a knowledge base holds whole, all of them verified. Raises KnowledgeError."""
    document = KnowledgeStore(path, owned=False).load().document
    return [
        KnownReply(
            problem=core.problem, precision=str(core.precision), prompt=(), text="", source=core.whole,
            parent_sha256="", technique="", model="", device=f"{core.arch} ({core.device_kind})",
            origin=f"{KNOWLEDGE}{path.name}", outcome=KnownResult(Verdict.CORRECT),
        )
        for core in document.cores
        if core.whole is not None
    ]  # fmt: skip


def _written(
    layout: TrainingLayout,
    header: RolloutHeader,
    stage: Stage,
    prompts: Mapping[str, PromptRow],
    rollouts: list[Rollout],
) -> Iterator[KnownReply]:
    first = _first_prompts(rollouts)
    for one in rollouts:
        row = prompts.get(first[one.step, one.index])
        if row is None or not one.source_sha256 or one.suspicious or one.verdict == MACHINE:
            continue
        yield KnownReply(
            problem=one.problem,
            precision=row.precision,
            prompt=row.prompt,
            text=one.completion,
            source=layout.kernel(one.problem, one.source_sha256).read_text(encoding="utf-8"),
            parent_sha256=row.parent_sha256,
            technique=row.technique,
            model=f"policy of {stage}",
            device=header.conditions["device_name"],
            origin=f"{TRAINING}{layout.root.name}",
            outcome=_outcome(one, row, header),
            stage=stage,
            reward=one.reward,
            scheme=header.reward,
        )


def _outcome(one: Rollout, row: PromptRow, header: RolloutHeader) -> KnownResult:
    """Speeds are told where they are against the kernel that the prompt shows."""
    verdict = Verdict(one.verdict)
    if not row.parent or header.baseline != Baseline.PARENT or not one.decision:
        return KnownResult(verdict)
    return KnownResult(verdict, Decision(one.decision), one.speedup)


def _first_prompts(rollouts: list[Rollout]) -> dict[tuple[int, int], str]:
    """Step and place -> digest of the first prompt of its dialogue."""
    known = {(one.step, one.index): one for one in rollouts}

    def first(one: Rollout) -> str:
        while one.follows is not None and tuple(one.follows) in known:
            one = known[one.follows]
        return one.prompt

    return {place: first(one) for place, one in known.items()}


def parents_shown(root: Path) -> dict[str, str]:
    """SHA-256 -> source of the kernels that prompts of a training show. Raises UsageError."""
    layout = TrainingLayout(root)
    rows = (
        row
        for stage in Stage
        if layout.prompts(stage).is_file()
        for row in read_rows(layout.prompts(stage), PromptRow)
        if row.parent
    )
    return {source_digest(row.parent): row.parent for row in rows}
