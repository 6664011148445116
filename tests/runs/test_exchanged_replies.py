"""Runs whose replies come by files: what is begun anew is asked anew, and what cannot be used is told, once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernelblaster import optimize
from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.config import RunConfig
from kernelblaster.records.summary import RunSummary

MODULE = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 7

rows = 33

def get_inputs():
    return [torch.randn(rows, 20)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "seven.py"
    path.write_text(MODULE)
    return path


def start(module: Path, **how: bool) -> RunSummary:
    config = RunConfig.model_validate({"out": module.parent / "out", "search": {"first_attempts": 1}})
    return optimize(module, config=config, model="batch_exchange", device="emulated", **how)


def refuse(request_file: Path) -> set[str]:
    """Answer what a file asks with a reply that holds no kernel; returns the ids."""
    names = [json.loads(line)["custom_id"] for line in request_file.read_text().splitlines()]
    body = {"choices": [{"message": {"role": "assistant", "content": "I would rather not."}}]}
    lines = [json.dumps({"custom_id": name, "response": {"status_code": 200, "body": body}}) for name in names]
    request_file.with_name(f"replies-to-{request_file.name}").write_text("\n".join(lines) + "\n")
    return set(names)


@pytest.mark.parametrize("how", [{"retry": True}, {"resume": False}])
def test_a_search_begun_anew_gets_no_reply_of_the_old_one(module: Path, how: dict[str, bool]) -> None:
    (asked,) = start(module).pending_requests
    names = refuse(asked)
    assert start(module).problems[0].status is OutcomeStatus.FAILED
    assert start(module).problems[0].status is OutcomeStatus.FAILED, "continued, it is what it was"
    again = start(module, **how)
    assert again.problems[0].status is OutcomeStatus.WAITING
    (asked_again,) = again.pending_requests
    assert asked_again != asked
    assert start(module).pending_requests == [asked_again], "continued, it waits for the same reply"
    assert not names & refuse(asked_again)
    last = start(module)
    assert last.problems[0].status is OutcomeStatus.FAILED
    assert last.spending.calls == 2


def test_a_question_nobody_has_answered_need_not_be_when_its_search_is_set_aside(module: Path) -> None:
    (asked,) = start(module).pending_requests
    again = start(module, resume=False)
    assert asked not in again.pending_requests
    assert len(again.pending_requests) == 1


def test_lines_that_cannot_be_used_are_told_once_by_a_start(module: Path, caplog: pytest.LogCaptureFixture) -> None:
    (asked,) = start(module).pending_requests
    (name,) = (json.loads(line)["custom_id"] for line in asked.read_text().splitlines())
    limited = {"custom_id": name, "response": {"status_code": 429, "body": "slow down"}}
    asked.with_name("replies.jsonl").write_text("{}\n" + json.dumps(limited) + "\n")
    assert start(module).pending_requests != [asked], "it is asked again"
    told = [record.getMessage() for record in caplog.records]
    assert len([line for line in told if "replies.jsonl, line 1" in line]) == 1
    (failed,) = [line for line in told if "429" in line]
    assert name[:12] in failed
    caplog.clear()
    start(module)
    assert "429" not in caplog.text, "what was asked again has been told"
