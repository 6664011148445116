"""Each purpose is asked of the model that is named for it, and everything else of the general one."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from chat_server import Step, completion, serve
from pydantic import SecretStr

from kernelblaster.config import BudgetConfig, ModelConfig, ModelKind
from kernelblaster.errors import UsageError
from kernelblaster.models.base import Message, Purpose, Request
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger


def config(*stages: str, **changes: object) -> ModelConfig:
    given = {"kind": ModelKind.OPENAI_API, "name": "strong", "api_key": SecretStr("k"), "stages": ",".join(stages)}
    return ModelConfig(**given | changes)


def test_each_purpose_goes_to_its_model(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "ledger.jsonl", BudgetConfig())
    with serve(*[Step(body=completion())] * 3) as server:
        model = build_model(config("repair=Cheap", "verify=strong", base_url=server.url), tmp_path, ledger)

        async def go() -> None:
            for purpose in (Purpose.GENERATE, Purpose.REPAIR, Purpose.VERIFY):
                asked = Request(slot=purpose, purpose=purpose, messages=(Message(role="user", content="x"),))
                await model.complete(asked)

        asyncio.run(go())
        assert [body["model"] for body in server.bodies] == ["strong", "Cheap", "strong"]
    assert model.name == "strong"
    assert ledger.totals().calls == 3


def test_a_price_that_is_configured_is_that_of_the_general_model(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "ledger.jsonl", BudgetConfig(dollars=1.0))
    priced = {
        "dollars_per_million_prompt": 1.0,
        "dollars_per_million_completion": 1.0,
        "base_url": "http://localhost:1/v1",
    }
    build_model(config(**priced), tmp_path, ledger)
    with pytest.raises(UsageError, match="unpriced"):
        build_model(config("repair=unpriced", **priced), tmp_path, ledger)


@pytest.mark.parametrize("stage", ["repair", "mend=cheap", "repair="])
def test_a_stage_that_cannot_be_read_is_refused(tmp_path: Path, stage: str) -> None:
    with pytest.raises(UsageError, match=r"model\.stages") as refused:
        build_model(config(stage), tmp_path, CostLedger(tmp_path / "ledger.jsonl", BudgetConfig()))
    assert "repair" in refused.value.hint


def test_files_that_somebody_answers_have_no_stages(tmp_path: Path) -> None:
    exchanged = config("repair=cheap", kind=ModelKind.BATCH_EXCHANGE)
    with pytest.raises(UsageError):
        build_model(exchanged, tmp_path, CostLedger(tmp_path / "ledger.jsonl", BudgetConfig()))
