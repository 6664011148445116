"""Each purpose is asked of the model that is named for it, and everything else of the general one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

import pytest
from chat_server import Step, completion, serve
from pydantic import SecretStr

from kernelblaster.config import BudgetConfig, ModelConfig, ModelKind
from kernelblaster.errors import UsageError
from kernelblaster.models.base import Message, Purpose, Request
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.staged import Mixture


def config(*stages: str, **changes: object) -> ModelConfig:
    given = {"kind": ModelKind.OPENAI_API, "name": "strong", "api_key": SecretStr("k"), "stages": ",".join(stages)}
    return ModelConfig(**given | changes)


@dataclass(frozen=True)
class Named:
    """A model that is never asked."""

    name: str


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


@pytest.mark.parametrize(
    "stage",
    ["repair", "mend=cheap", "repair=", "repair=a*0", "repair=a*x", "repair=a*inf", "repair=a+a*2", "repair=a+"],
)
def test_a_stage_that_cannot_be_read_is_refused(tmp_path: Path, stage: str) -> None:
    with pytest.raises(UsageError, match=r"model\.stages") as refused:
        build_model(config(stage), tmp_path, CostLedger(tmp_path / "ledger.jsonl", BudgetConfig()))
    assert "repair" in refused.value.hint


def test_files_that_somebody_answers_have_no_stages(tmp_path: Path) -> None:
    exchanged = config("repair=cheap", kind=ModelKind.BATCH_EXCHANGE)
    with pytest.raises(UsageError):
        build_model(exchanged, tmp_path, CostLedger(tmp_path / "ledger.jsonl", BudgetConfig()))


def test_models_of_a_purpose_share_it_by_weight_and_a_slot_keeps_its_model() -> None:
    asked = [f"level1/{number:03d}/r1/rollout-{rollout}" for number in range(250) for rollout in range(4)]
    one, other = Named("one"), Named("other")
    mixture = Mixture((one, other), (1.0, 3.0))
    drawn = [mixture.of(slot).name for slot in asked]
    assert 0.20 < drawn.count("one") / len(drawn) < 0.30
    assert drawn == [mixture.of(slot).name for slot in asked]


def test_a_mixture_may_hold_the_general_model(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "ledger.jsonl", BudgetConfig())
    with serve(*[Step(body=completion())] * 20) as server:
        model = build_model(config("generate=strong+cheap * 2", base_url=server.url), tmp_path, ledger)

        async def go() -> None:
            for number in range(20):
                slot = f"r1/rollout-{number}"
                asked = Request(slot=slot, purpose=Purpose.GENERATE, messages=(Message(role="user", content="x"),))
                await model.complete(asked)

        asyncio.run(go())
        assert {body["model"] for body in server.bodies} == {"strong", "cheap"}
