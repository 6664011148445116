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
from kernelblaster.models.calls import SpendingTotals
from kernelblaster.models.default_caps import with_default_cap
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.prices import Price, price_of
from kernelblaster.models.staged import Mixture
from kernelblaster.models.stages import check_models, models_of, price_of_drafts


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


LOCAL = "http://localhost:1/v1"
MIXED = "generate=strong*3+org/cheap*1"


def test_each_model_may_have_a_price_of_its_own(tmp_path: Path) -> None:
    ledger = CostLedger(tmp_path / "ledger.jsonl", BudgetConfig(dollars=1.0))
    half = config(MIXED, base_url=LOCAL, prices="strong=4:8")
    with pytest.raises(UsageError, match="org/cheap") as refused:
        build_model(half, tmp_path, ledger)
    assert "model.prices=org/cheap=" in refused.value.hint
    whole = config(MIXED, base_url=LOCAL, prices="strong=4:8, org/cheap=0:4:0")
    assert build_model(whole, tmp_path, ledger).name == "strong"
    assert {name: price_of(one) for name, one in models_of(whole).items()} == {
        "strong": Price(prompt=4, completion=8),
        "org/cheap": Price(prompt=0, completion=4, cached_prompt=0),
    }
    assert price_of_drafts(whole) == Price(prompt=3, completion=7)
    assert price_of_drafts(half) is None
    assert with_default_cap(BudgetConfig(), whole, SpendingTotals()).dollars is not None
    assert with_default_cap(BudgetConfig(), half, SpendingTotals()).dollars is None


def test_one_price_holds_for_the_dated_snapshots_of_the_model() -> None:
    single = {"dollars_per_million_prompt": 1.0, "dollars_per_million_completion": 2.0}
    stages = "repair=strong-2030-01-02,verify=other-2030-01-02"
    priced = config(stages, base_url=LOCAL, prices="other=3:4", **single)
    assert [price_of(one) for one in models_of(priced).values()] == [
        Price(prompt=1, completion=2),
        Price(prompt=3, completion=4),
        Price(prompt=1, completion=2),
    ]


@pytest.mark.parametrize("price", ["m", "m=1", "m=1:x", "m=1:nan", "m=-1:2", "m=1:2:3:4", "=1:2", "m=1:2,m=1:3"])
def test_a_price_that_cannot_be_read_is_refused(price: str) -> None:
    with pytest.raises(UsageError, match=r"model\.prices"):
        check_models(config(prices=price))


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
