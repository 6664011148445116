"""What the content trial keeps: its prompts, the replies to them, and what the judge said of each."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Self, TypeVar

from arms import Arm, Prompt, prompt_id
from pydantic import BaseModel, ConfigDict

from kernelblaster.storage.atomic import write_atomically

RESULTS = Path(__file__).parents[2] / "docs" / "results" / "content_trial"
PROMPTS = RESULTS / "prompts.jsonl.gz"
REPLIES = RESULTS / "replies.jsonl.gz"
ROWS = RESULTS / "rows.jsonl"

Kept = TypeVar("Kept", bound=BaseModel)


class AskedPrompt(BaseModel):
    """A prompt as it was asked."""

    model_config = ConfigDict(frozen=True)

    id: str
    parent: str
    family: str
    arm: Arm
    reply: int
    technique: str
    headroom: float
    """The parent's time over what is attainable."""
    tensor_cores: bool
    """Whether the parent multiplies on tensor cores."""
    source: str
    """Of the parent."""
    text: str

    @classmethod
    def of(cls, prompt: Prompt, *, source: str, headroom: float, tensor_cores: bool) -> Self:
        """With what the analysis wants of its parent."""
        return cls(
            id=prompt.id, parent=prompt.parent, family=prompt.family, arm=prompt.arm, reply=prompt.reply,
            technique=prompt.technique, headroom=headroom, tensor_cores=tensor_cores, source=source, text=prompt.text,
        )  # fmt: skip

    def once_more(self, reply: int) -> Self:
        """The same prompt for its reply of that number."""
        return self.model_copy(update={"id": prompt_id(self.parent, self.arm, reply), "reply": reply})


class GivenReply(BaseModel):
    """What an author wrote, word for word."""

    id: str
    text: str


class JudgedReply(BaseModel):
    """What became of one reply on one device."""

    id: str
    device: str
    modelled: bool
    workload: str
    verdict: str
    reason: str = ""
    stated_speedup: float | None = None
    speedup: float | None = None
    """The parent's time over its own, in turns."""
    low: float | None = None
    high: float | None = None
    faster: bool = False
    """Beyond noise."""
    seconds: float


def read(path: Path, kind: type[Kept]) -> list[Kept]:
    """The lines of a file, compressed or not; none of one that is not there."""
    if not path.exists():
        return []
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
    return [kind.model_validate_json(line) for line in text.splitlines()]


def write(path: Path, kept: list[Kept]) -> None:
    """Replace a compressed file of lines; the same lines make the same bytes."""
    text = "".join(one.model_dump_json() + "\n" for one in kept)
    write_atomically(path, gzip.compress(text.encode(), mtime=0))
