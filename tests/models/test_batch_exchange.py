from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from chat_server import completion

from kernelblaster.config import BudgetConfig, ModelConfig, ModelKind
from kernelblaster.errors import UsageError
from kernelblaster.models.base import Message, Purpose, Reply, ReplyPending, Request, RequestRejected
from kernelblaster.models.batch_exchange import BatchExchangeModel
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CapReached, CostLedger

CONFIG = ModelConfig(kind=ModelKind.BATCH_EXCHANGE, name="m", max_completion_tokens=99)


def ask(slot: str = "a") -> Request:
    return Request(slot=slot, purpose=Purpose.GENERATE, messages=(Message(role="user", content="größer 🚀\nx"),))


class Side:
    """The side that asks; made anew, it is the next start of the same run."""

    def __init__(self, root: Path, **caps: float) -> None:
        self.directory = root / "exchange"
        self.ledger = CostLedger(root / "ledger.jsonl", BudgetConfig(**caps))
        model = build_model(CONFIG, self.directory, self.ledger)
        assert isinstance(model, BatchExchangeModel)
        self.model = model

    def complete(self, slot: str = "a") -> Reply:
        return asyncio.run(self.model.complete(ask(slot)))

    def pending(self, slot: str = "a") -> ReplyPending:
        with pytest.raises(ReplyPending) as caught:
            self.complete(slot)
        return caught.value

    def id(self, slot: str) -> str:
        return self.model.custom_id(ask(slot))

    def asked(self) -> list[tuple[str, str]]:
        """(file, id) of every request line."""
        return [
            (path.name, json.loads(line)["custom_id"])
            for path in sorted(self.directory.glob("requests-*.jsonl"))
            for line in path.read_text().splitlines()
        ]

    def put(self, name: str, *lines: dict[str, Any] | str) -> None:
        text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
        (self.directory / name).write_text(text)

    def result(self, slot: str, text: str = "answer", status: int = 200, **changes: Any) -> dict[str, Any]:
        body = completion(text) if status == 200 else {"error": {"message": "busy"}}
        response = {"status_code": status, "request_id": "r", "body": body}
        return {"id": f"batch_{slot}", "custom_id": self.id(slot), "response": response, "error": None} | changes


@pytest.fixture
def side(tmp_path: Path) -> Side:
    return Side(tmp_path)


def test_a_request_is_one_batch_line_however_often_it_is_asked(side: Side, tmp_path: Path) -> None:
    first = side.pending()
    assert side.pending().request_id == Side(tmp_path).pending().request_id == first.request_id
    assert first.request_file == str(side.directory / "requests-001.jsonl")
    (line,) = Path(first.request_file).read_text().splitlines()
    assert json.loads(line) == {
        "custom_id": side.id("a"),
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {
            "model": "m",
            "messages": [{"role": "user", "content": "größer 🚀\nx"}],
            "max_completion_tokens": 99,
        },
    }


def test_replies_in_any_order_and_any_file_are_found_and_charged_once(side: Side, tmp_path: Path) -> None:
    for slot in "abc":
        side.pending(slot)
    side.put("replies-2.jsonl", side.result("c", "C"), side.result("a", "A"))
    side.put("batch_1_replies.jsonl", side.result("b", "B"))
    assert [side.complete(slot).text for slot in "abc"] == ["A", "B", "C"]
    again = Side(tmp_path)
    reply = again.complete("a")
    assert (reply.text, reply.model, reply.finish_reason) == ("A", "served-model", "stop")
    assert reply.usage.prompt_tokens == 100
    assert again.ledger.totals().calls == 3
    assert again.model.exchange.outstanding() == {}
    assert again.model.exchange.answered() == {side.id(slot) for slot in "abc"}


def test_questions_that_were_not_answered_yet_count_towards_a_cap(tmp_path: Path) -> None:
    side = Side(tmp_path, tokens=40)
    for slot in "abcdefgh":
        try:
            side.complete(slot)
        except (ReplyPending, CapReached) as stopped:
            last = stopped
    assert isinstance(last, CapReached)
    asked = len(side.asked())
    assert 0 < asked < 8
    # Asked again, they are not counted again; answered, what they cost takes the place of what was held.
    side.pending("a")
    side.put("replies.jsonl", side.result("a", "A"))
    assert side.complete("a").text == "A"
    assert len(side.asked()) == asked


def test_the_first_of_several_replies_counts(side: Side) -> None:
    side.pending()
    side.put("replies-1.jsonl", side.result("a", "first"), side.result("a", "second"))
    side.put("replies-2.jsonl", side.result("a", "third"))
    assert side.complete().text == "first"


def test_what_cannot_be_used_is_named_and_skipped(side: Side, caplog: pytest.LogCaptureFixture) -> None:
    side.pending()
    stray = side.result("a") | {"custom_id": "nobody"}
    side.put("replies.jsonl", "{broken", "[]", stray, side.result("a"))
    assert side.complete().text == "answer"
    side.complete()
    for told in (
        "replies.jsonl, line 1,",
        "replies.jsonl, line 2,",
        "1 reply to what was not asked here, such as nobody",
    ):
        assert caplog.text.count(told) == 1


def test_a_last_line_without_line_end_counts_and_a_growing_file_is_read_again(side: Side) -> None:
    side.pending()
    whole = json.dumps(side.result("a"))
    path = side.directory / "replies.jsonl"
    path.write_text(whole[:50])
    side.pending()
    path.write_text(whole)
    assert side.complete().text == "answer"


@pytest.mark.parametrize(
    "changes",
    [
        {"status": 429},
        {"status": 500},
        {"response": None, "error": {"code": "batch_expired", "message": "not in time"}},
        {"response": {"status_code": 200, "body": {"choices": []}}},
        {"response": {"status_code": 200, "body": None}},
    ],
)
def test_an_error_result_is_asked_again_in_the_next_file(changes: dict[str, Any], side: Side, tmp_path: Path) -> None:
    side.pending()
    side.put("replies-1.jsonl", side.result("a", **changes))
    again = Side(tmp_path)
    for _ in range(2):
        assert again.pending().request_file.endswith("requests-002.jsonl")
    assert again.asked() == [("requests-001.jsonl", side.id("a")), ("requests-002.jsonl", side.id("a"))]
    assert list(again.model.exchange.outstanding()) == [side.id("a")]
    side.put("replies-2.jsonl", side.result("a", "at last"))
    assert again.complete().text == "at last"


def test_the_same_error_in_two_files_is_one_error(side: Side) -> None:
    side.pending()
    for name in ("replies-1.jsonl", "replies-copy.jsonl"):
        side.put(name, side.result("a", status=500))
    side.pending()
    assert len(side.asked()) == 2


def test_errors_without_end_end(side: Side) -> None:
    side.pending()
    for number in range(2):
        side.put(f"replies-{number}.jsonl", side.result("a", status=500, id=f"batch_{number}"))
        side.pending()
    side.put("replies-last.jsonl", side.result("a", status=500, id="batch_last"))
    with pytest.raises(RequestRejected) as caught:
        side.complete()
    assert "busy" in caught.value.message
    assert len(side.asked()) == 3


def test_new_requests_join_the_file_until_someone_has_answered_from_it(side: Side, tmp_path: Path) -> None:
    side.pending("a")
    again = Side(tmp_path)
    assert again.pending("b").request_file.endswith("001.jsonl")
    again.put("replies.jsonl", again.result("a"))
    assert again.pending("c").request_file.endswith("002.jsonl")
    assert again.pending("d").request_file.endswith("002.jsonl")
    assert again.pending("b").request_file.endswith("001.jsonl")
    files = {name: path.name for name, path in again.model.exchange.outstanding().items()}
    assert files == {
        side.id("b"): "requests-001.jsonl",
        side.id("c"): "requests-002.jsonl",
        side.id("d"): "requests-002.jsonl",
    }


def test_what_is_set_aside_is_asked_anew_and_counted_anew(side: Side, tmp_path: Path) -> None:
    first = {slot: side.pending(slot).request_id for slot in "abc"}
    side.put("replies.jsonl", side.result("a", "old"), side.result("c", "kept"))
    assert side.complete("a").text == "old"
    assert side.model.exchange.set_aside([first["a"], first["b"], "0" * 64]) == 2
    again = Side(tmp_path)
    second = {slot: again.pending(slot) for slot in "ab"}
    assert {pending.request_file for pending in second.values()} == {str(side.directory / "requests-002.jsonl")}
    assert set(again.model.exchange.outstanding()) == {pending.request_id for pending in second.values()}
    assert not set(first.values()) & {pending.request_id for pending in second.values()}
    assert all(len(pending.request_id) == 64 for pending in second.values())
    assert again.complete("c").text == "kept"
    again.put("late-replies.jsonl", again.result("b", "late") | {"custom_id": first["b"]})
    again.put("replies-2.jsonl", again.result("a", "new"))
    again.pending("b")
    for start in (again, Side(tmp_path)):
        assert start.complete("a").text == "new"
        assert start.ledger.totals().calls == 3
    assert again.model.exchange.set_aside([first["a"]]) == 1
    assert again.pending("a").request_id not in {first["a"], second["a"].request_id}


def test_a_damaged_list_of_what_is_set_aside_is_reported(side: Side) -> None:
    side.pending("a")
    (side.directory / "set-aside.jsonl").write_text("damage\n")
    with pytest.raises(UsageError) as caught:
        side.complete("a")
    assert caught.value.hint


def test_every_cut_of_the_request_file_heals(side: Side, tmp_path: Path) -> None:
    side.pending("a")
    side.pending("b")
    path = side.directory / "requests-001.jsonl"
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        again = Side(tmp_path)
        again.pending("a")
        again.pending("b")
        assert path.read_bytes() == whole


def test_a_damaged_request_file_is_reported(side: Side, tmp_path: Path) -> None:
    side.pending("a")
    path = side.directory / "requests-001.jsonl"
    path.write_bytes(b"damage\n" + path.read_bytes())
    with pytest.raises(UsageError, match="line 1"):
        Side(tmp_path).complete("b")


def test_missing_usage_is_estimated(side: Side) -> None:
    side.pending()
    body = completion("x" * 40, usage=None)
    side.put("replies.jsonl", side.result("a", response={"status_code": 200, "body": body}))
    usage = side.complete().usage
    assert usage.estimated
    assert usage.completion_tokens == 10
    assert usage.dollars is None


def test_a_cap_refuses_new_requests_but_not_replies(side: Side, tmp_path: Path) -> None:
    side.pending("a")
    side.put("replies.jsonl", side.result("a"))
    capped = Side(tmp_path, tokens=100)
    assert capped.complete("a").text == "answer"
    with pytest.raises(CapReached):
        capped.complete("b")
    assert len(capped.asked()) == 1


KILLED = """
import asyncio, itertools, sys
from pathlib import Path
from test_batch_exchange import ReplyPending, Side, ask
side = Side(Path(sys.argv[1]))
for number in itertools.count():
    try:
        asyncio.run(side.model.complete(ask(f"s{number}")))
    except ReplyPending:
        print(number, flush=True)
"""


def test_a_killed_process_leaves_every_request_it_had_reported(tmp_path: Path) -> None:
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parent)}
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment
    ) as child:
        assert child.stdout is not None
        told = [int(child.stdout.readline()) for _ in range(10)][-1]
        child.send_signal(signal.SIGKILL)
        told = max([told, *(int(line) for line in child.stdout if line.endswith("\n"))])
    side = Side(tmp_path)
    for number in range(told + 1):
        side.pending(f"s{number}")
    side.pending("after the kill")
    names = [name for _, name in side.asked()]
    assert len(names) == len(set(names))
    assert {side.id(f"s{number}") for number in range(told + 1)} < set(names)
