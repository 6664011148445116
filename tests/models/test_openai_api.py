from __future__ import annotations

import asyncio
import email.utils
import logging
import socket
import time
from pathlib import Path

import pytest
from chat_server import ChatServer, Step, completion, serve
from pydantic import SecretStr

from kernelblaster.config import BudgetConfig, ModelConfig
from kernelblaster.errors import ModelError
from kernelblaster.models.base import (
    BadKey,
    BadReply,
    Message,
    Purpose,
    RateLimited,
    Reply,
    Request,
    RequestRejected,
    Unreachable,
)
from kernelblaster.models.faults import retry_after
from kernelblaster.models.ledger import CapReached, CostLedger
from kernelblaster.models.openai_api import Backoff, OpenAiModel
from kernelblaster.models.prices import Price

KEY = "sk-test-8d1f0c-not-a-real-key"
PRICE = Price(prompt=10.0, completion=20.0, cached_prompt=1.0)
STREAMED = {"stream": True, "stream_options": {"include_usage": True}}
OK = Step(body=completion())


@pytest.fixture
def ledger(tmp_path: Path) -> CostLedger:
    return CostLedger(tmp_path / "ledger.jsonl", BudgetConfig())


def ask(slot: str = "level1/023/r0/rollout-0/step-0/attempt-0", text: str = "make it fast") -> Request:
    messages = (Message(role="system", content="be brief"), Message(role="user", content=text))
    return Request(slot=slot, purpose=Purpose.GENERATE, messages=messages, tags={"problem": "level1/023"})


def model_of(
    server: ChatServer | str, ledger: CostLedger, backoff: Backoff | None = None, **config: object
) -> OpenAiModel:
    url = server if isinstance(server, str) else server.url
    settings = {"name": "test-model", "base_url": url, "api_key": SecretStr(KEY), "timeout_s": 5.0} | config
    return OpenAiModel(ModelConfig(**settings), ledger, PRICE, Backoff(first_s=0.01, longest_s=2.0))


def run(model: OpenAiModel, *requests: Request) -> list[Reply]:
    async def go() -> list[Reply]:
        return await asyncio.gather(*(model.complete(request) for request in requests or (ask(),)))

    return asyncio.run(go())


def failure(model: OpenAiModel, kind: type[ModelError]) -> ModelError:
    with pytest.raises(kind) as caught:
        run(model)
    assert caught.value.hint
    assert KEY not in caught.value.message + caught.value.hint
    return caught.value


def test_an_answer_carries_text_usage_and_dollars(ledger: CostLedger) -> None:
    with serve(OK) as server:
        (reply,) = run(model_of(server, ledger))
    assert (reply.text, reply.model, reply.finish_reason) == ("hello", "served-model", "stop")
    usage = reply.usage
    assert (usage.prompt_tokens, usage.completion_tokens) == (100, 50)
    assert (usage.cached_prompt_tokens, usage.reasoning_tokens, usage.estimated) == (40, 20, False)
    assert usage.dollars == pytest.approx((60 * 10 + 40 * 1 + 50 * 20) / 1e6)
    assert ledger.totals().dollars == usage.dollars
    sent = server.bodies[0]
    assert sent == {"model": "test-model", "messages": [m.model_dump() for m in ask().messages], **STREAMED}
    assert {k.lower(): v for k, v in server.headers[0].items()}["authorization"] == f"Bearer {KEY}"


def test_only_configured_options_are_sent(ledger: CostLedger) -> None:
    with serve(OK) as server:
        run(model_of(server, ledger, temperature=0.0, max_completion_tokens=64))
    assert server.bodies[0]["temperature"] == 0.0
    assert server.bodies[0]["max_completion_tokens"] == 64


def test_a_server_without_max_completion_tokens_is_asked_with_max_tokens_from_then_on(ledger: CostLedger) -> None:
    error = {"error": {"message": "unrecognized field: max_completion_tokens", "type": "invalid_request_error"}}
    refuses = Step(400, error, when=lambda body: "max_completion_tokens" in body)
    with serve(refuses, OK) as server:
        model = model_of(server, ledger, max_completion_tokens=64, max_retries=0)
        run(model, ask("a"))
        run(model, ask("b"))
    assert [set(body) - {"model", "messages", *STREAMED} for body in server.bodies] == [
        {"max_completion_tokens"},
        {"max_tokens"},
        {"max_tokens"},
    ]
    assert ledger.totals().calls == 2


@pytest.mark.parametrize("status", [401, 403])
def test_a_bad_key_stops_at_once_and_never_shows(
    status: int, ledger: CostLedger, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    body = {"error": {"message": f"Incorrect API key provided: {KEY}", "code": "invalid_api_key"}}
    with serve(Step(status, body)) as server:
        model = model_of(server, ledger)
        error = failure(model, BadKey)
    assert len(server.bodies) == 1
    assert "[key]" in error.message
    assert KEY not in repr(model) + repr(vars(model)) + caplog.text
    assert ledger.totals().calls == 0


def test_credentials_in_the_url_never_show(ledger: CostLedger) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://user:{KEY}@127.0.0.1:{unused.getsockname()[1]}/v1?token={KEY}"
        model = model_of(url, ledger, max_retries=0)
        failure(model, Unreachable)
    assert KEY not in repr(model)


def test_openai_itself_is_not_asked_without_a_key(ledger: CostLedger) -> None:
    with pytest.raises(BadKey) as caught:
        OpenAiModel(ModelConfig(api_key=None), ledger, None)
    assert "OPENAI_API_KEY" in caught.value.hint


def test_a_local_server_needs_no_key(ledger: CostLedger) -> None:
    with serve(OK) as server:
        assert run(model_of(server, ledger, api_key=None))[0].text == "hello"


def test_rate_limit_waits_as_long_as_the_server_asks(ledger: CostLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def wait(seconds: float) -> None:
        waits.append(seconds)

    with serve(Step(429, {"error": {"message": "slow down"}}, {"Retry-After": "1"}), OK) as server:
        monkeypatch.setattr(asyncio, "sleep", wait)
        run(model_of(server, ledger))
    assert len(server.bodies) == 2
    assert [seconds for seconds in waits if seconds > 0] == [1.0]


def test_what_fails_for_all_requests_is_told_once(ledger: CostLedger, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="kernelblaster")
    with serve(Step(500, {"error": {"message": "oops"}})) as server:
        model = model_of(server, ledger, max_retries=2, concurrency=8)

        async def go() -> list[object]:
            return await asyncio.gather(*(model.complete(ask(str(n))) for n in range(8)), return_exceptions=True)

        assert len(asyncio.run(go())) == 8
    told = [line for line in caplog.messages if "oops" in line]
    assert len(server.bodies) == 24
    assert [line.partition("; ")[2][:9] for line in told] == ["attempt 2", "attempt 3"]


def test_rate_limit_for_good_is_bounded(ledger: CostLedger) -> None:
    with serve(Step(429, {"error": {"message": "slow down"}})) as server:
        failure(model_of(server, ledger, max_retries=3), RateLimited)
    assert len(server.bodies) == 4
    assert ledger.totals().calls == 0


@pytest.mark.parametrize(
    "step",
    [
        Step(429, {"error": {"message": "come back tomorrow"}}, {"Retry-After": "86400"}),
        Step(429, {"error": {"message": "no credit", "code": "insufficient_quota"}}),
    ],
)
def test_rate_limit_that_no_waiting_cures_ends_at_once(step: Step, ledger: CostLedger) -> None:
    with serve(step) as server:
        failure(model_of(server, ledger), RateLimited)
    assert len(server.bodies) == 1


def test_server_error_then_answer(ledger: CostLedger) -> None:
    with serve(Step(500, {"error": {"message": "oops"}}), Step(503, b"busy", content_type="text/plain"), OK) as server:
        assert run(model_of(server, ledger))[0].text == "hello"
    assert len(server.bodies) == 3
    assert ledger.totals().calls == 1


def test_server_error_for_good_is_bounded(ledger: CostLedger) -> None:
    with serve(Step(500, {"error": {"message": "oops"}})) as server:
        failure(model_of(server, ledger, max_retries=2), Unreachable)
    assert len(server.bodies) == 3


def test_connection_refused(ledger: CostLedger) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        error = failure(model_of(f"http://127.0.0.1:{port}/v1", ledger, max_retries=1), Unreachable)
    assert str(port) in error.message


@pytest.mark.parametrize("status", [400, 404, 413, 422])
def test_a_rejected_request_is_not_repeated(status: int, ledger: CostLedger) -> None:
    with serve(Step(status, {"error": {"message": "the model `x` does not exist"}})) as server:
        error = failure(model_of(server, ledger), RequestRejected)
    assert "does not exist" in error.message
    assert len(server.bodies) == 1


BAD_BODIES = {
    "truncated json": Step(body=b'{"choices": [{"message": {"content": "he'),
    "empty": Step(body=b""),
    "no choices": Step(body=completion(choices=[])),
    "no content": Step(body=completion(None)),
    "a list": Step(body=b"[1, 2]"),
    "not text": Step(body=completion(choices=[{"message": {"content": 7}}])),
    "deep": Step(body=b"[" * 100_000),
    "html": Step(body=b"<html>gateway</html>", content_type="text/html; charset=utf-8"),
}


@pytest.mark.parametrize("step", BAD_BODIES.values(), ids=BAD_BODIES.keys())
def test_a_bad_reply_is_asked_for_once_more(step: Step, ledger: CostLedger) -> None:
    with serve(step, OK) as server:
        assert run(model_of(server, ledger))[0].text == "hello"
    assert [call.outcome for call in ledger.calls] == ["BadReply", "ok"]
    ledger.all_kept()
    with serve(step) as server:
        failure(model_of(server, ledger), BadReply)
    assert len(server.bodies) == 2


def test_html_is_named_as_such(ledger: CostLedger) -> None:
    with serve(BAD_BODIES["html"]) as server:
        error = failure(model_of(server, ledger), BadReply)
    assert "text/html" in error.message
    assert "/v1" in error.hint


def test_a_body_that_breaks_off_is_asked_for_again(ledger: CostLedger) -> None:
    with serve(Step(body=completion(), cut_to=20), OK) as server:
        assert run(model_of(server, ledger))[0].text == "hello"
    assert len(server.bodies) == 2


@pytest.mark.parametrize("slow", [Step(body=completion(), trickle_s=0.05), Step(body=completion(), delay_s=30)])
def test_slow_servers_hit_the_timeout(slow: Step, ledger: CostLedger) -> None:
    with serve(slow) as server:
        began = time.monotonic()
        error = failure(model_of(server, ledger, timeout_s=0.3), Unreachable)
        # A machine that is busy takes its time, too; the whole answer would take longer than this.
        assert time.monotonic() - began < 12
    assert "0.3 s" in error.message
    assert len(server.bodies) == 2
    assert [call.outcome for call in ledger.calls] == ["Unreachable"] * 2
    assert all(call.usage.estimated for call in ledger.calls)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None, "completion_tokens": 3}])
def test_missing_usage_is_estimated_and_marked(usage: dict | None, ledger: CostLedger) -> None:
    with serve(Step(body=completion("x" * 400, usage=usage))) as server:
        (reply,) = run(model_of(server, ledger))
    assert reply.usage.estimated
    assert reply.usage.completion_tokens == 100
    assert reply.usage.prompt_tokens > 0
    assert ledger.totals().estimated


@pytest.mark.parametrize("text", ["größer 大きい 🚀 \x00 end", "a" * 8_000_000], ids=["unicode", "huge"])
def test_texts_come_through_unchanged(text: str, ledger: CostLedger) -> None:
    with serve(Step(body=completion(text))) as server:
        assert run(model_of(server, ledger))[0].text == text


def test_stray_surrogates_are_replaced(ledger: CostLedger) -> None:
    with serve(Step(body=completion("a\ud800b"))) as server:
        assert run(model_of(server, ledger))[0].text == "a?b"


def test_a_reply_beyond_any_completion_is_refused(ledger: CostLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelblaster.models.openai_api.LARGEST_REPLY", 1000)
    with serve(Step(body=completion("a" * 2000))) as server:
        failure(model_of(server, ledger), BadReply)


@pytest.mark.parametrize(("finish", "text"), [("length", "half a ker"), ("length", None), ("content_filter", None)])
def test_cut_off_replies_say_why(
    finish: str, text: str | None, ledger: CostLedger, caplog: pytest.LogCaptureFixture
) -> None:
    with serve(Step(body=completion(text, finish=finish))) as server:
        (reply,) = run(model_of(server, ledger))
    assert (reply.text, reply.finish_reason) == (text or "", finish)
    assert finish in caplog.text


def test_a_refusal_is_the_reply(ledger: CostLedger) -> None:
    refused = [{"message": {"content": None, "refusal": "I will not"}, "finish_reason": "stop"}]
    with serve(Step(body=completion(choices=refused))) as server:
        assert run(model_of(server, ledger))[0].text == "I will not"


def test_concurrency_is_bounded(ledger: CostLedger) -> None:
    with serve(Step(body=completion(), delay_s=0.05)) as server:
        run(model_of(server, ledger, concurrency=2), *(ask(slot=f"s{i}") for i in range(6)))
    assert len(server.bodies) == 6
    assert server.most_at_once == 2


def test_a_model_serves_one_event_loop_after_another(ledger: CostLedger) -> None:
    with serve(OK) as server:
        model = model_of(server, ledger, concurrency=1)

        async def both(*slots: str) -> None:
            await asyncio.gather(*(model.complete(ask(slot)) for slot in slots))

        asyncio.run(both("a", "b"))
        asyncio.run(both("c", "d"))
    assert ledger.totals().calls == 4


def test_a_cap_refuses_before_the_call_and_between_retries(tmp_path: Path) -> None:
    capped = CostLedger(tmp_path / "l.jsonl", BudgetConfig(tokens=20))
    with serve(BAD_BODIES["truncated json"]) as server, pytest.raises(CapReached):
        run(model_of(server, capped))
    assert len(server.bodies) == 1
    with serve(OK) as server, pytest.raises(CapReached):
        run(model_of(server, capped))
    assert server.bodies == []


def test_calls_side_by_side_do_not_pass_a_cap_together(tmp_path: Path) -> None:
    """Eight calls of 120 tokens under a cap of 500: what is in flight is held, and the others wait."""
    capped = CostLedger(tmp_path / "l.jsonl", BudgetConfig(tokens=500))
    usage = {"prompt_tokens": 20, "completion_tokens": 100}

    async def all_at_once(model: OpenAiModel) -> list[Reply | BaseException]:
        return await asyncio.gather(*(model.complete(ask(f"s{i}")) for i in range(8)), return_exceptions=True)

    with serve(Step(body=completion(usage=usage), delay_s=0.02)) as server:
        results = asyncio.run(all_at_once(model_of(server, capped, concurrency=8)))
    answered = [result for result in results if isinstance(result, Reply)]
    assert all(isinstance(result, Reply | CapReached) for result in results)
    assert len(answered) == len(server.bodies) == 4
    assert capped.totals().tokens == 480


def test_wall_time_cuts_a_call_off(tmp_path: Path) -> None:
    capped = CostLedger(tmp_path / "l.jsonl", BudgetConfig(minutes=0.4 / 60))
    with serve(Step(body=completion(), delay_s=30)) as server, pytest.raises(CapReached) as caught:
        run(model_of(server, capped))
    assert caught.value.cap == "minutes"


def test_a_call_that_is_cancelled_is_counted(ledger: CostLedger) -> None:
    with serve(Step(body=completion(), delay_s=30)) as server:
        model = model_of(server, ledger)

        async def interrupted() -> None:
            call = asyncio.create_task(model.complete(ask()))
            while not server.bodies:
                await asyncio.sleep(0.01)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

        asyncio.run(interrupted())
    (call,) = ledger.calls
    assert (call.outcome, call.usage.estimated) == ("Cancelled", True)
    assert call.usage.prompt_tokens > 0
    assert not ledger.knows(ask())


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": email.utils.formatdate(1060, usegmt=True)}, 60.0),
        ({"retry-after": email.utils.formatdate(900, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_retry_after_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=lambda: 1000.0) == seconds


def test_backoff_doubles_within_bounds() -> None:
    backoff = Backoff(first_s=1.0, longest_s=10.0)
    for number, top in enumerate([1, 2, 4, 8, 10, 10]):
        assert top / 2 <= backoff.wait_s(number, None) <= top
    assert backoff.wait_s(0, 5.0) == 5.0


def again(ledger_path: Path) -> CostLedger:
    """What the next start of a run opens."""
    return CostLedger(ledger_path, BudgetConfig())


def test_a_kill_before_the_reply_is_kept_costs_nothing_more(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with serve(OK) as server:
        (first,) = run(model_of(server, again(path)))
        (second,) = run(model_of(server, again(path)))
        assert len(server.bodies) == 1
    assert first == second
    assert again(path).totals().calls == 1


def test_a_kill_before_the_reply_is_counted_loses_no_cost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "ledger.jsonl"
    opened = again(path)

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with serve(OK) as server:
        with monkeypatch.context() as patched:
            patched.setattr("kernelblaster.models.ledger.append_line", die)
            with pytest.raises(KeyboardInterrupt):
                run(model_of(server, opened))
        (reply,) = run(model_of(server, again(path)))
        assert len(server.bodies) == 1
    for later in (again(path), again(path)):
        assert (later.totals().calls, later.totals().dollars) == (1, reply.usage.dollars)


def test_replies_that_were_kept_are_asked_for_again_when_somebody_wants_them_anew(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    with serve(OK) as server:
        for _ in range(2):
            opened = again(path)
            run(model_of(server, opened))
            opened.all_kept()
        assert len(server.bodies) == 2
    assert again(path).totals().calls == 2
