"""`--wait`: a run that waits for the replies of a batch exchange starts again when there are some."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelblaster.agent.state import OutcomeStatus
from kernelblaster.runs import command
from kernelblaster.runs.command import RunRequest
from kernelblaster.runs.summary import ProblemSummary


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
    request = SimpleNamespace(wait=True)
    rows, _ = command._search(_as_request(request), parts=None, problems=[], exchange=tmp_path)  # type: ignore[arg-type]
    assert rows[0].status is OutcomeStatus.IMPROVED
    assert len(starts) == 2


def _as_request(request: Any) -> RunRequest:
    return request
