"""What is configured of sampling and prices reaches the endpoint and the ledger; what is not is left to the server."""

from __future__ import annotations

import pytest

from kernelblaster.config import ModelConfig
from kernelblaster.models.base import Message, Purpose, Request
from kernelblaster.models.completion import request_body
from kernelblaster.models.prices import price_of

REQUEST = Request(slot="s", purpose=Purpose.GENERATE, messages=(Message(role="user", content="x"),))
OPTIONS = {"temperature": 0.7, "top_p": 0.9, "reasoning_effort": "high"}


def test_options_are_sent_when_they_are_set_and_not_otherwise() -> None:
    assert request_body(ModelConfig(), REQUEST).keys() == {"model", "messages"}
    body = request_body(ModelConfig(**OPTIONS), REQUEST)
    assert {name: body[name] for name in OPTIONS} == OPTIONS


def test_cached_tokens_have_a_price_of_their_own() -> None:
    prices = {"dollars_per_million_prompt": 2.0, "dollars_per_million_completion": 8.0}
    plain, cheap = (
        price_of(ModelConfig(**prices)),
        price_of(ModelConfig(**prices, dollars_per_million_cached_prompt=0.2)),
    )
    assert plain.dollars(1_000_000, 0, 500_000) == pytest.approx(2.0)
    assert cheap.dollars(1_000_000, 0, 500_000) == pytest.approx(1.1)
