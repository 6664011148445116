"""The other end of a batch exchange: what is paid for is written down."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from kernelblaster.config import BudgetConfig, ModelConfig, ModelKind
from kernelblaster.models.base import Message, ModelError, Purpose, ReplyPending, Request
from kernelblaster.models.batch_exchange import BatchExchangeModel
from kernelblaster.models.ledger import CostLedger
from kernelblaster.runs.answer import Answered, answer_exchange

sys.path.append(str(Path(__file__).parents[1] / "models"))
from chat_server import Step, completion, serve


def asked(folder: Path, *texts: str) -> BatchExchangeModel:
    """An exchange with one open question per text."""
    config = ModelConfig(kind=ModelKind.BATCH_EXCHANGE, name="m")
    model = BatchExchangeModel(config, folder, CostLedger(folder / "ledger.jsonl", BudgetConfig()), None)
    for text in texts:
        with pytest.raises(ReplyPending):
            asyncio.run(model.complete(question(text)))
    return model


def question(text: str) -> Request:
    return Request(slot=text, purpose=Purpose.GENERATE, messages=(Message(role="user", content=text),))


def test_an_answer_that_a_kill_kept_from_the_file_is_not_paid_for_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = asked(tmp_path, "a")

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with serve(Step(body=completion("answer"))) as server:
        config = ModelConfig(name="m", base_url=server.url, api_key=SecretStr("k"))
        with monkeypatch.context() as patched:
            patched.setattr("kernelblaster.runs.answer.append_line", die)
            with pytest.raises(KeyboardInterrupt):
                answer_exchange(tmp_path, config, watch=False, max_dollars=None)
        assert not model.exchange.answered()
        for now in (1, 0):
            assert answer_exchange(tmp_path, config, watch=False, max_dollars=None) == Answered(now, asked=1)
        assert len(server.bodies) == 1
    assert len(model.exchange.answered()) == 1


def test_an_answer_in_flight_is_kept_when_another_question_is_refused(tmp_path: Path) -> None:
    model = asked(tmp_path, "a", "b", "c")
    refusal = Step(status=400, body={"error": {"message": "too long"}})
    with serve(refusal, Step(body=completion("answer"), delay_s=0.5)) as server:
        config = ModelConfig(name="m", base_url=server.url, api_key=SecretStr("k"), concurrency=2)
        with pytest.raises(ModelError, match="too long"):
            answer_exchange(tmp_path, config, watch=False, max_dollars=None)
        assert len(server.bodies) == 2
    assert len(model.exchange.answered()) == 1
