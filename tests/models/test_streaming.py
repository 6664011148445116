"""Streamed replies: put together, cut short when they stall, asked for again, and told with what had come."""

from __future__ import annotations

import asyncio
import json
import time
from itertools import pairwise
from pathlib import Path

import pytest
from chat_server import DONE, USAGE, ChatServer, Step, chunk, completion, serve, streamed
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.config import BudgetConfig, ModelConfig
from kernelblaster.models.base import BadReply, CutShort, Message, Purpose, Reply, Request, Unreachable
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.openai_api import Backoff, OpenAiModel
from kernelblaster.models.prices import Price
from kernelblaster.models.streaming import PARTIAL_CHARACTERS, StreamedReply

PRICE = Price(prompt=10.0, completion=20.0)
REQUEST = Request(slot="s/attempt-0", purpose=Purpose.GENERATE, messages=(Message(role="user", content="faster"),))
STALLED = Step(pieces=((0.0, chunk("first half, ")), (30.0, chunk("never"))))


@pytest.fixture
def ledger(tmp_path: Path) -> CostLedger:
    return CostLedger(tmp_path / "ledger.jsonl", BudgetConfig())


def asked(server: ChatServer, ledger: CostLedger, **config: object) -> Reply:
    settings = {"name": "m", "base_url": server.url, "timeout_s": 10.0, "idle_timeout_s": 5.0} | config
    model = OpenAiModel(ModelConfig(**settings), ledger, PRICE, Backoff(first_s=0.01, longest_s=0.1))
    return asyncio.run(model.complete(REQUEST))


def test_a_streamed_reply_is_put_together_with_usage_and_reason(ledger: CostLedger) -> None:
    with serve(streamed("hel", "lo ", "🎉")) as server:
        reply = asked(server, ledger)
    assert (reply.text, reply.model, reply.finish_reason) == ("hello 🎉", "served-model", "stop")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.estimated) == (100, 50, False)
    assert server.bodies[0]["stream"] is True
    assert reply.cut_short == ()


def test_one_without_usage_is_estimated(ledger: CostLedger) -> None:
    with serve(Step(pieces=((0.0, chunk("abcd" * 10)), (0.0, DONE)))) as server:
        reply = asked(server, ledger)
    assert (reply.text, reply.usage.completion_tokens, reply.usage.estimated) == ("abcd" * 10, 10, True)


def test_a_stall_within_a_reply_is_cut_short_and_asked_for_again(ledger: CostLedger) -> None:
    with serve(STALLED, streamed("whole")) as server:
        began = time.monotonic()
        reply = asked(server, ledger, idle_timeout_s=0.3)
        assert time.monotonic() - began < 8
    assert reply.text == "whole"
    (cut,) = reply.cut_short
    assert (cut.text, cut.characters) == ("first half, ", 12)
    assert "nothing for 0.3 s" in cut.reason
    assert [call.outcome for call in ledger.calls] == ["CutShort", "ok"]
    assert ledger.calls[0].usage.completion_tokens == 3


def test_silence_before_the_first_word_is_thinking(ledger: CostLedger) -> None:
    thinking = Step(pieces=((0.0, chunk(delta={"role": "assistant"})), (0.8, chunk("thought")), (0.0, DONE)))
    with serve(thinking) as server:
        assert asked(server, ledger, idle_timeout_s=0.3).text == "thought"
    assert len(server.bodies) == 1


def test_the_whole_time_bounds_a_reply_that_keeps_coming(ledger: CostLedger) -> None:
    endless = Step(pieces=tuple((0.05, chunk("x")) for _ in range(400)))
    with serve(endless) as server, pytest.raises(CutShort) as caught:
        asked(server, ledger, timeout_s=0.5)
    assert len(server.bodies) == 2
    assert set(caught.value.partial) == {"x"}
    assert "0.5 s" in caught.value.message
    assert caught.value.hint
    assert isinstance(caught.value, Unreachable)
    assert len(caught.value.earlier) == 1


def test_a_connection_that_ends_within_a_reply_is_no_reply(ledger: CostLedger) -> None:
    broken = Step(pieces=((0.0, chunk("half")),))
    with serve(broken, streamed("whole")) as server:
        reply = asked(server, ledger)
    assert (reply.text, reply.cut_short[0].text) == ("whole", "half")


def test_a_long_partial_text_is_kept_by_its_end(ledger: CostLedger) -> None:
    with serve(Step(pieces=((0.0, chunk("a" * 9000 + "end")),)), streamed("whole")) as server:
        (cut,) = asked(server, ledger).cut_short
    assert cut.characters == 9003
    assert len(cut.text) == PARTIAL_CHARACTERS
    assert cut.text.endswith("end")


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize("said", ["your organization must be verified to stream this model", "unknown: stream_options"])
def test_an_endpoint_that_does_not_stream_is_asked_without(status: int, said: str, ledger: CostLedger) -> None:
    refused = Step(status=status, body={"error": {"message": said}}, when=lambda body: "stream" in body)
    with serve(refused, Step(body=completion("plain"))) as server:
        assert asked(server, ledger).text == "plain"
    assert [("stream" in body) for body in server.bodies] == [True, False]


def test_streams_can_be_switched_off(ledger: CostLedger) -> None:
    with serve(Step(body=completion("plain"))) as server:
        assert asked(server, ledger, stream=False).text == "plain"
    assert "stream" not in server.bodies[0]


@pytest.mark.parametrize(
    "piece", [b"data: {broken\n\n", b'data: {"error": {"message": "overloaded"}}\n\n', b"data: 7\n\n"]
)
def test_a_stream_that_is_none_is_a_bad_reply(piece: bytes, ledger: CostLedger) -> None:
    with serve(Step(pieces=((0.0, piece),))) as server, pytest.raises(BadReply) as caught:
        asked(server, ledger)
    assert caught.value.hint
    assert len(server.bodies) == 2


def test_a_stream_beyond_any_completion_is_refused() -> None:
    reply = StreamedReply(largest=60)
    piece = 'data: {"choices": [{"delta": {"content": "xxxxxxxx"}}]}'
    reply.feed(piece)
    with pytest.raises(BadReply):
        reply.feed(piece)


@given(st.text(max_size=60), st.lists(st.integers(0, 60), max_size=6))
def test_however_a_text_is_torn_it_comes_together(text: str, places: list[int]) -> None:
    reply = StreamedReply(largest=10**6)
    cuts = [0, *sorted(min(place, len(text)) for place in places), len(text)]
    for begin, end in pairwise(cuts):
        reply.feed("data: " + json.dumps({"choices": [{"delta": {"content": text[begin:end]}}], "usage": USAGE}))
        reply.feed(": keep-alive")
        reply.feed("")
    reply.feed('data: {"choices": [{"index": 1, "delta": {"content": "of another choice"}}]}')
    reply.feed("data: [DONE]")
    assert reply.over
    assert reply.text == text
