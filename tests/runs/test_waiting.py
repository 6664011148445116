"""`--wait`: a run that waits for the replies of a batch exchange starts again when there are some."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.config import BudgetConfig
from kernelblaster.models.ledger import CostLedger
from kernelblaster.records.summary import ProblemSummary
from kernelblaster.runs import optimize as command

WAITING: Any = SimpleNamespace(wait=True, problems=())


def row(status: OutcomeStatus) -> ProblemSummary:
    return ProblemSummary(problem="level1/023", name="Softmax", status=status, directory=Path("d"))


def test_a_reply_that_comes_while_the_search_still_works_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[OutcomeStatus] = []

    async def execute(parts: Any, problems: Any) -> tuple[list[ProblemSummary], None]:
        starts.append(OutcomeStatus.IMPROVED if starts else OutcomeStatus.WAITING)
        # Another rollout is still at work when the first one's question is answered.
        (tmp_path / "replies.jsonl").write_text("{}")
        return [row(starts[-1])], None

    monkeypatch.setattr(command, "execute", execute)
    monkeypatch.setattr(command.time, "sleep", lambda _: pytest.fail("it waits for a reply that is there"))
    ledger = CostLedger(tmp_path / "ledger.jsonl", BudgetConfig())
    rows, _ = command._search(WAITING, None, tmp_path, ledger)  # type: ignore[arg-type]
    assert rows[0].status is OutcomeStatus.IMPROVED
    assert len(starts) == 2


def test_waiting_ends_with_the_minutes_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def execute(parts: Any, problems: Any) -> tuple[list[ProblemSummary], None]:
        return [row(OutcomeStatus.WAITING)], None

    monkeypatch.setattr(command, "execute", execute)
    monkeypatch.setattr(command, "POLL_SECONDS", 0.01)
    ledger = CostLedger(tmp_path / "ledger.jsonl", BudgetConfig(minutes=0.2 / 60))
    rows, stopped = command._search(WAITING, None, tmp_path, ledger)  # type: ignore[arg-type]
    assert rows[0].status is OutcomeStatus.WAITING
    assert "minutes" in (stopped or "")
