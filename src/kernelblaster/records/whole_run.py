"""A run as all its starts have left it: every problem that any of them searched, and everything that was spent."""

from __future__ import annotations

from kernelblaster.models.calls import SpendingTotals
from kernelblaster.models.ledger import stored_totals
from kernelblaster.records.layout import OUTCOME, RunLayout
from kernelblaster.records.rows import row_on_disk
from kernelblaster.records.run_record import read_record
from kernelblaster.records.summary import RunSummary, Spending, read_summary


def spending_of(totals: SpendingTotals) -> Spending:
    """Totals of a ledger as a summary has them."""
    return Spending(
        calls=totals.calls,
        prompt_tokens=totals.prompt_tokens,
        completion_tokens=totals.completion_tokens,
        dollars=totals.dollars,
        estimated=totals.estimated,
    )


def with_every_problem(summary: RunSummary, layout: RunLayout) -> RunSummary:
    """The summary with one row for each search in the run's directory.

    An outcome on disk is what counts; a search without one has the row that `summary` has for it, or says that it has
    not ended. Raises UsageError for a damaged outcome.
    """
    known = {row.directory.name: row for row in summary.problems}
    rows = []
    for directory in layout.problems():
        row = known.pop(directory.name, None)
        rows.append(row if row is not None and not (directory / OUTCOME).exists() else row_on_disk(directory))
    rows += known.values()
    return summary.model_copy(update={"problems": sorted(rows, key=lambda row: (row.problem, row.name))})


def recall(layout: RunLayout) -> RunSummary:
    """The summary of a run from what is on disk, also when no start of it has come to an end.

    Raises UsageError when the directory holds no run, or a file of it is damaged.
    """
    return with_every_problem(read_summary(layout.summary) if layout.summary.exists() else _begun(layout), layout)


def _begun(layout: RunLayout) -> RunSummary:
    """The summary of a run that was killed before it wrote one."""
    record = read_record(layout.record)
    return RunSummary(
        run=record.run,
        device=record.device,
        precision=record.config.precision,
        model=record.config.model.name,
        model_kind=record.config.model.kind,
        problems=[],
        spending=spending_of(stored_totals(layout.ledger)),
        knowledge_base=layout.knowledge_base,
        directory=layout.run,
        seconds=0.0,
        stopped="the run was cut off",
        ablated=list(map(str, record.config.search.ablate)),
    )
