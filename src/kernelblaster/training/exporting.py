"""The data sets of recordings and runs: written together, with their splits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kernelblaster.paths import data_dir
from kernelblaster.training.datasets import (
    AskedAgain,
    Card,
    TrainableReplies,
    preference_rows,
    recorded_transitions,
    run_transition_rows,
    unpaired_rows,
    warmup_rows,
    write_dataset,
)
from kernelblaster.training.rejudging import VERDICTS, with_verdicts
from kernelblaster.training.rows import TransitionRow
from kernelblaster.training.sources import (
    RECORDING,
    RUN,
    KnownReply,
    kernels_of,
    once_each,
    read_source,
    run_transitions,
)
from kernelblaster.training.splits import Splits

SFT = "sft.jsonl"
PREFERENCES = "preferences.jsonl"
UNPAIRED = "unpaired.jsonl"
TRANSITIONS = "transitions.jsonl"
SPLITS = "splits.json"


def export(sources: Sequence[Path], splits: Splits, directory: Path, asked: AskedAgain | None = None) -> list[Card]:
    """Write `sft`, `preferences`, `unpaired` and `transitions` with their cards, and `splits.json`.

    What `verdicts.jsonl` in the directory tells (`rejudging`), and the file of that name that ships, counts for replies
    of which nothing else is known.

    Args:
        sources: see `sources.read_source`.
        splits: of the data set; nothing outside `train` is written.
        directory: made if it is missing.
        asked: makes the prompts of `sft.jsonl`; those that replies were written to if None.

    Raises UsageError, KnowledgeError, OSError.
    """
    replies = known_replies(sources, directory)
    splits.write(directory / SPLITS)
    warmup, kept = TrainableReplies(replies, splits), TrainableReplies(replies, splits)
    edges = _transitions(sources, replies, kept)
    return [
        write_dataset(
            directory / SFT, warmup_rows(warmup, asked), "Correct kernels as answers, for a warm-up.", warmup
        ),
        write_dataset(directory / PREFERENCES, preference_rows(kept), "Two replies on one problem and parent.", kept),
        write_dataset(directory / UNPAIRED, unpaired_rows(kept), "Replies; wanted if faster than the parent.", kept),
        write_dataset(directory / TRANSITIONS, edges, "Judged edges of searches, with sources.", kept),
    ]


def replies_of(sources: Sequence[Path]) -> list[KnownReply]:
    """The replies of recordings and runs, each kernel and parent once. Raises UsageError."""
    return once_each(reply for source in sources for reply in read_source(source))


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


def _transitions(sources: Sequence[Path], replies: Sequence[KnownReply], kept: TrainableReplies) -> list[TransitionRow]:
    """Edges as runs have stored them; of recordings, what their replies tell."""
    runs = [source for source in sources if source.is_dir()]
    kernels = {reply.sha256: reply.source for reply in replies}
    for run in runs:
        kernels |= kernels_of(run)
    recorded = [reply for reply in kept.replies if reply.origin.startswith(RECORDING)]
    rows = recorded_transitions(recorded, kept, kernels)
    for run in runs:
        rows += run_transition_rows(run_transitions(run), kernels, kept.splits, f"{RUN}{run.name}")
    return rows
