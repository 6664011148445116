"""Where a training keeps its files.

data/                     splits.json, prompts of the stages, sets to learn from with their cards
judged/<problem>/         kernels and evaluations, by content
sft/, frontend/, midend/  of a stage: train.json, generations.jsonl, rollouts.jsonl, checkpoints, the adapter
eval/<name>/              samples on held-out problems and eval.json
report.html               curves and kernels
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kernelblaster.training.stages import Stage

ADAPTER = "adapter"
RECORD = "train.json"


@dataclass(frozen=True)
class TrainingLayout:
    """Paths of one training.

    Attributes:
        root: its directory.
    """

    root: Path

    @property
    def data(self) -> Path:
        """Splits, prompts and sets to learn from."""
        return self.root / "data"

    def prompts(self, stage: Stage) -> Path:
        """Rows that a stage is trained on or evaluated with."""
        return self.data / f"prompts-{stage}.jsonl"

    @property
    def judged(self) -> Path:
        """Evaluations of all stages."""
        return self.root / "judged"

    def kernel(self, problem: str, sha256: str) -> Path:
        """A kernel that was judged."""
        return self.judged / problem / "candidates" / f"{sha256}.cu"

    @property
    def warmup(self) -> Path:
        """The warm-up."""
        return self.root / "sft"

    def stage(self, stage: Stage) -> Path:
        """A stage."""
        return self.root / stage

    def adapter(self, directory: Path) -> Path:
        """The trained weights of the warm-up or a stage."""
        return directory / ADAPTER

    def evaluation(self, name: str) -> Path:
        """An evaluation on held-out problems."""
        return self.root / "eval" / name

    @property
    def page(self) -> Path:
        """Curves and kernels."""
        return self.root / "report.html"
