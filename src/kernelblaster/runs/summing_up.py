"""What a start of a run leaves behind when it ends, however it ends: `summary.json` and `report.html` of the whole run.

The summary that is handed back is of the problems that this start was asked for. The files are of the run: they hold
what earlier starts have found, too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.errors import KernelBlasterError
from kernelblaster.models.ledger import CostLedger
from kernelblaster.problems.problem import Problem
from kernelblaster.records.layout import RunLayout
from kernelblaster.records.rows import row_on_disk
from kernelblaster.records.summary import ProblemSummary, RunSummary
from kernelblaster.records.whole_run import spending_of, with_every_problem
from kernelblaster.runs.replays import replay_warnings
from kernelblaster.storage.atomic import write_atomically

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunStart:
    """One start of a run.

    Attributes:
        run: name of the run.
        began: `time.monotonic()` at its beginning.
    """

    run: str
    config: RunConfig
    facts: DeviceFacts
    problems: Sequence[Problem]
    layout: RunLayout
    ledger: CostLedger
    began: float

    def summary(self, rows: Sequence[ProblemSummary], stopped: str | None, pending: Sequence[Path] = ()) -> RunSummary:
        """The summary of this start; its report is not written yet."""
        config = self.config
        return RunSummary(
            run=self.run,
            device=self.facts,
            precision=config.precision,
            model=config.model.name,
            model_kind=config.model.kind,
            problems=list(rows),
            spending=spending_of(self.ledger.totals()),
            spending_of_start=spending_of(self.ledger.totals_of_start()),
            knowledge_base=self.layout.knowledge_base,
            directory=self.layout.run,
            seconds=time.monotonic() - self.began,
            stopped=stopped,
            ablated=list(map(str, config.search.ablate)),
            warnings=replay_warnings(config),
            pending_requests=list(pending),
        )

    def keep(self, summary: RunSummary) -> RunSummary:
        """Write summary and report of the whole run; returns `summary` with the report's path. Raises OSError."""
        from kernelblaster.report.build import write_report

        whole = with_every_problem(summary, self.layout)
        report = write_report(whole, self.layout)
        write_atomically(self.layout.summary, whole.model_copy(update={"report": report}).model_dump_json(indent=1))
        return summary.model_copy(update={"report": report})

    def keep_unfinished(self, why: str) -> Path | None:
        """Write them when something has ended the search; returns the report's path.

        None when that fails, too: the reason may be the same, and is about to be told.
        """
        directories = [self.layout.problem(problem) for problem in self.problems]
        try:
            rows = [row_on_disk(directory) for directory in directories if directory.exists()]
            return self.keep(self.summary(rows, why)).report
        except (OSError, KernelBlasterError) as error:
            _log.warning("summary and report of the run could not be written: %s", error)
            return None
