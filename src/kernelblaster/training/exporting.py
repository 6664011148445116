"""The data sets of recordings and runs: written together, with their splits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.errors import UsageError
from kernelblaster.models.recorded import read_recording
from kernelblaster.paths import data_dir
from kernelblaster.training.datasets import (
    Asking,
    Card,
    TrainableReplies,
    preference_rows,
    recorded_transitions,
    run_transition_rows,
    unpaired_rows,
    warmup_rows,
    write_dataset,
)
from kernelblaster.training.more_sources import is_training, known_kernels, parents_shown, training_replies
from kernelblaster.training.prompting import shown_kernel
from kernelblaster.training.rejudging import VERDICTS, with_verdicts
from kernelblaster.training.rows import TransitionRow
from kernelblaster.training.sources import (
    RECORDING,
    RUN,
    TRAINING,
    KnownReply,
    kernels_of,
    once_each,
    recorded_replies,
    run_replies,
    run_transitions,
)
from kernelblaster.training.splits import Splits

SFT = "sft.jsonl"
PREFERENCES = "preferences.jsonl"
UNPAIRED = "unpaired.jsonl"
TRANSITIONS = "transitions.jsonl"
SPLITS = "splits.json"


def export(sources: Sequence[Path], splits: Splits, directory: Path, asking: Asking | None = None) -> list[Card]:
    """Write `sft`, `preferences`, `unpaired` and `transitions` with their cards, and `splits.json`.

    What `verdicts.jsonl` in the directory tells (`rejudging`), and the file of that name that ships, counts for replies
    of which nothing else is known.

    Args:
        sources: see `sources.read_source`.
        splits: of the data set; nothing outside `train` is written.
        directory: made if it is missing.
        asking: makes prompts of `sft.jsonl`; those that replies were written to if None.

    Raises UsageError, also where sources tell measured and modelled times, KnowledgeError, OSError.
    """
    replies = known_replies(sources, directory)
    _refuse_mixed_times(replies)
    splits.write(directory / SPLITS)
    warmup, kept = TrainableReplies(replies, splits), TrainableReplies(replies, splits)
    edges = _transitions(sources, replies, kept)
    return [
        write_dataset(
            directory / SFT, warmup_rows(warmup, asking), "Correct kernels as answers, for a warm-up.", warmup
        ),
        write_dataset(directory / PREFERENCES, preference_rows(kept), "Two replies on one problem and parent.", kept),
        write_dataset(directory / UNPAIRED, unpaired_rows(kept), "Replies; wanted if faster than the parent.", kept),
        write_dataset(directory / TRANSITIONS, edges, "Judged edges of searches, with sources.", kept),
    ]


def replies_of(sources: Sequence[Path]) -> list[KnownReply]:
    """The replies of recordings and runs, each kernel and parent once. Raises UsageError."""
    return once_each(reply for source in sources for reply in read_source(source))


def _refuse_mixed_times(replies: Sequence[KnownReply]) -> None:
    """Raise UsageError where some speed-ups were measured and others modelled."""
    timed = [reply for reply in replies if reply.outcome is not None and reply.outcome.speedup is not None]
    modelled = next((reply.origin for reply in timed if reply.modelled), None)
    measured = next((reply.origin for reply in timed if not reply.modelled), None)
    if modelled is not None and measured is not None:
        raise UsageError(
            f"times of {measured} were measured and those of {modelled} modelled: they share no set",
            hint="name sources of one kind, and make the others in another directory",
        )


def known_replies(sources: Sequence[Path], directory: Path) -> list[KnownReply]:
    """Replies with all that is known of them. Raises UsageError.

    Args:
        sources: see `sources.read_source`.
        directory: whose `verdicts.jsonl` comes before the one that ships.
    """
    return with_verdicts(replies_of(sources), directory / VERDICTS, shipped() / VERDICTS)


def shipped() -> Path:
    """What ships for training beside recordings of searches: replies of studies, and verdicts."""
    return data_dir() / "training"


def read_source(path: Path) -> list[KnownReply]:
    """Replies of a recording or knowledge base (files), a run or a training (directories).

    Raises UsageError for anything else, KnowledgeError.
    """
    if path.is_file():
        return known_kernels(path) if path.suffix == ".json" else recorded_replies(read_recording(path))
    if is_training(path):
        return training_replies(path)
    if not (path / "run.json").is_file():
        raise UsageError(
            f"{path} holds no replies to learn from",
            hint="name a recording (.jsonl, .jsonl.gz), a knowledge base (.json), a run or a training",
        )
    return run_replies(path)


def _transitions(sources: Sequence[Path], replies: Sequence[KnownReply], kept: TrainableReplies) -> list[TransitionRow]:
    """Edges as runs have stored them; of recordings, what their replies tell."""
    directories = [source for source in sources if source.is_dir()]
    runs = [source for source in directories if not is_training(source)]
    shown = (shown_kernel(reply.prompt) for reply in replies)
    kernels = {source_digest(source): source for source in shown if source}
    kernels |= {reply.sha256: reply.source for reply in replies}
    for directory in directories:
        kernels |= kernels_of(directory) if directory in runs else parents_shown(directory)
    recorded = [
        reply for reply in kept.replies if reply.origin.startswith((RECORDING, TRAINING)) and reply.parent_sha256
    ]
    rows = recorded_transitions(recorded, kept, kernels)
    for run in runs:
        rows += run_transition_rows(run_transitions(run), kernels, kept.splits, f"{RUN}{run.name}")
    return rows
