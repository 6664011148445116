"""Where a run keeps its files: `out/<dataset>/<precision>/<experiment>/<model>/<level>/<problem>/`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from kernelblaster.config import RunConfig
from kernelblaster.problems.problem import Problem

FINAL_KERNEL = "final_rl_cuda_perf.cu"
ASIDE = ".before-"
"""In the name of a directory that `--no-resume` or `--retry` has set aside."""
KNOWLEDGE_BASE = "optimization_database.json"
JOURNAL = "events.jsonl"
OUTCOME = "outcome.json"


def _safe(name: str) -> str:
    """A model name such as `org/model:tag` as one path component."""
    return re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("._") or "unnamed"


@dataclass(frozen=True)
class RunLayout:
    """Paths of one run.

    Attributes:
        experiment: directory shared by the runs of an experiment; holds the knowledge base and what was learned.
        run: directory of this model's run; holds `run.json`, `ledger.jsonl`, `summary.json` and `report.html`.
    """

    experiment: Path
    run: Path

    @classmethod
    def of(cls, config: RunConfig) -> RunLayout:
        """Layout for a configuration; nothing is created."""
        experiment = config.out / _safe(config.dataset) / str(config.precision) / _safe(config.experiment)
        return cls(experiment=experiment, run=experiment / _safe(config.model.name))

    @classmethod
    def of_experiment(cls, experiment: Path) -> list[Self]:
        """Of all runs in an experiment's directory."""
        return [cls(experiment, record.parent) for record in sorted(experiment.glob("*/run.json"))]

    @property
    def knowledge_base(self) -> Path:
        """The knowledge base this experiment learns into."""
        return self.experiment / KNOWLEDGE_BASE

    @property
    def ledger(self) -> Path:
        """Cost ledger of the run."""
        return self.run / "ledger.jsonl"

    @property
    def exchange(self) -> Path:
        """Folder of a batch exchange's request and reply files."""
        return self.run / "exchange"

    @property
    def record(self) -> Path:
        """What the run was started with."""
        return self.run / "run.json"

    @property
    def summary(self) -> Path:
        """The summary of the run."""
        return self.run / "summary.json"

    @property
    def lock(self) -> Path:
        """Held by the one process that works on this run."""
        return self.run / ".lock"

    def problems(self) -> list[Path]:
        """Directories of all searches there are, but those set aside."""
        return [path for path in sorted(self.run.glob("level*/*")) if ASIDE not in path.name]

    def problem(self, problem: Problem) -> Path:
        """Directory of one problem's search."""
        return self.run / f"level{problem.id.level}" / problem.slug
