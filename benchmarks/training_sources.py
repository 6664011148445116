"""Writes what ships in data/training: the replies of the content trial as a recording, and verdicts of all replies.

`verdicts.jsonl` first tells what was measured (docs/results/measured_transitions), with decisions and speed-ups against
the kernels that the prompts show, then keeps the lines that `train export --judge` has added to it.

    python benchmarks/training_sources.py
"""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent / "content_trial"))

from rows import PROMPTS, REPLIES, AskedPrompt, GivenReply, read

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.models.base import Message, Purpose, Usage
from kernelblaster.models.digests import messages_digest
from kernelblaster.models.recorded import RecordedExchange, RecordingHeader
from kernelblaster.paths import data_dir
from kernelblaster.replay.transition import Transition
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.rejudging import VERDICTS, VerdictRow
from kernelblaster.training.rows import read_rows
from kernelblaster.version import __version__

MEASURED = Path(__file__).parents[1] / "docs" / "results" / "measured_transitions"
FOLDER = data_dir() / "training"
DEVICE = "NVIDIA H200"
_ROLE = re.compile(r"^===== (system|user) =====\n+", re.MULTILINE)
_CHARACTERS_PER_TOKEN = 4


def recorded_trial() -> bytes:
    """The content trial as a recording; the same bytes each time."""
    header = RecordingHeader(
        made_by=f"kernelblaster {__version__}",
        device=DEVICE,
        model="claude",
        how="content trial (docs/results/content_trial/plan.md): each reply from a fresh context that saw one prompt "
        "alone, without tools to compile or run. Token counts are estimates.",
        started="2026-11-23T00:00:00+0000",
    )
    replies = {reply.id: reply.text for reply in read(REPLIES, GivenReply)}
    lines = [
        header,
        *(_exchange(asked, replies[asked.id]) for asked in read(PROMPTS, AskedPrompt) if asked.id in replies),
    ]
    return gzip.compress("".join(f"{line.model_dump_json()}\n" for line in lines).encode(), mtime=0)


def _exchange(asked: AskedPrompt, reply: str) -> RecordedExchange:
    _, *parts = _ROLE.split(asked.text)
    messages = tuple(
        Message(role=role, content=content.strip()) for role, content in zip(parts[::2], parts[1::2], strict=True)
    )
    level, number, _ = asked.parent.split("/")
    tags = {
        "problem": f"{level}/{number}",
        "precision": "fp16",
        "parent_sha256": source_digest(asked.source),
        "technique": asked.technique,
        "arm": str(asked.arm),
    }
    return RecordedExchange(
        slot=f"{asked.parent}/{asked.id}",
        purpose=Purpose.GENERATE,
        tags=tags,
        digest=messages_digest(messages),
        messages=messages,
        reply=reply,
        usage=Usage(
            prompt_tokens=len(asked.text) // _CHARACTERS_PER_TOKEN,
            completion_tokens=len(reply) // _CHARACTERS_PER_TOKEN,
            dollars=None,
            estimated=True,
        ),
        model="claude",
    )


def measured_verdicts() -> list[VerdictRow]:
    """A line for each kernel that was measured beside the one that its prompt shows."""
    found = []
    for path in sorted(MEASURED.glob("*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            edge = Transition.model_validate_json(line)
            if edge.candidate_sha256 is None:
                continue
            found.append(
                VerdictRow(
                    problem=edge.problem, candidate_sha256=edge.candidate_sha256, verdict=edge.verdict, reason="",
                    decision=edge.decision, speedup=edge.speedup, outputs_judged=True, device=DEVICE,
                    version=__version__,
                )
            )  # fmt: skip
    return found


def main() -> None:
    """Write both files."""
    write_atomically(FOLDER / "content_trial.jsonl.gz", recorded_trial())
    path, measured = FOLDER / VERDICTS, measured_verdicts()
    told = {(row.problem, row.candidate_sha256) for row in measured}
    judged = read_rows(path, VerdictRow) if path.exists() else []
    others = [row for row in judged if (row.problem, row.candidate_sha256) not in told and row.decision is None]
    write_atomically(path, "".join(f"{row.model_dump_json()}\n" for row in (*measured, *others)))
    print(f"{len(measured)} measured, {len(others)} judged again")


if __name__ == "__main__":
    main()
