"""Requests that no honest client sends: each is refused by name, the server goes on, and no slot is lost."""

from __future__ import annotations

import http.client
import json
import logging
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import urlparse

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import kernel
from soaking import Served, all_slots_come_back, ask, connected, drop, serving
from websockets.exceptions import ConnectionClosed

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.server import MOST_MESSAGE_BYTES
from kernelblaster.evaluation.results import Verdict

CODE = kernel(Verdict.CORRECT)
DEEP = b"[" * 50_000 + b"]" * 50_000
RESETS = {
    "seed is no number": b'{"problem_id": "L1_23", "seed": NaN}',
    "turns are no number": b'{"problem_id": "L1_23", "max_turns": NaN}',
    "turns without end": b'{"problem_id": "L1_23", "max_turns": 1e999}',
    "turns below one": b'{"problem_id": "L1_23", "max_turns": -1}',
    "more turns than any integer of a machine": b'{"problem_id": "L1_23", "max_turns": 99999999999999999999999}',
    "a number of thousands of digits": b'{"problem_id": "L1_23", "seed": ' + b"9" * 6000 + b"}",
    "no object": b"[1, 2]",
    "nothing": b"null",
    "no JSON": b"hello",
    "no UTF-8": b'{"problem_id": "\xff\xfe"}',
    "half a character": b'{"problem_id": "\\ud800"}',
    "control characters": b'{"problem_id": "L1\\n\\u0000\\u001b[31m"}',
    "nested without end": b'{"problem_id": ' + DEEP + b"}",
    "a name of megabytes": b'{"problem_id": "' + b"a" * (1 << 21) + b'"}',
    "another type": b'{"problem_id": ["L1_23"]}',
    "a field that is unknown, and no number": b'{"problem_id": "L1_23", "other": NaN}',
}
STEPS = {
    "a tier that is no number": b'{"action": {"code": "x", "tier": NaN}}',
    "a timeout that is no number": b'{"action": {"code": "x"}, "timeout_s": NaN}',
    "no episode": b'{"action": {"code": "x"}}',
    "no code": b'{"action": {}}',
    "code that is no text": b'{"action": {"code": 5}}',
    "no action": b"{}",
    "nested without end": b'{"action": ' + DEEP + b"}",
    "more code than is judged": b'{"action": {"code": "' + b"a" * (1 << 21) + b'", "problem_id": "L1_23"}}',
    "a language with control characters": b'{"action": {"code": "x", "language": "\\n\\u001b"}}',
}
FRAMES = {
    "an unknown type": '{"type": "other", "data": {}}',
    "a type that is none": '{"type": ["reset"], "data": {}}',
    "no type": "{}",
    "no object": "[]",
    "a number": "5",
    "no JSON": "hello",
    "bytes": b"\x00\xff",
    "a seed that is no number": '{"type": "reset", "data": {"seed": NaN}}',
    "a number of thousands of digits": '{"type": "reset", "data": {"seed": ' + "9" * 6000 + "}}",
    "nested without end": '{"type": "reset", "data": ' + DEEP.decode() + "}",
    "half a character": '{"type": "reset", "data": {"problem_id": "\\ud800"}}',
    "data that are a list": '{"type": "reset", "data": []}',
    "a step before a reset": json.dumps({"type": "step", "data": {"code": CODE}}),
}


@pytest.fixture(scope="module")
def served(catalogue: Catalogue) -> Iterator[Served]:
    with serving(catalogue) as found:
        yield found


def refusal(url: str, body: bytes) -> tuple[int, str]:
    """Status and text of an answer that is none of success."""
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(request, timeout=20)
    with refused.value as answer:
        return answer.code, answer.read().decode()


@pytest.mark.parametrize(
    ("path", "body"),
    [
        *(pytest.param("reset", body, id=f"reset: {name}") for name, body in RESETS.items()),
        *(pytest.param("step", body, id=f"step: {name}") for name, body in STEPS.items()),
    ],
)
def test_what_is_wrong_with_a_request_is_told(served: Served, path: str, body: bytes) -> None:
    status, text = refusal(f"{served.url}/{path}", body)
    assert 400 <= status < 500
    assert json.loads(text)["detail"]
    assert text.isprintable()
    assert len(text) < 1000, "nothing that was sent comes back whole"


@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_what_is_wrong_with_a_message_is_told(served: Served, frame: str | bytes) -> None:
    with connected(served) as client:
        client.send(frame)
        answer = json.loads(client.recv(20))
    assert answer["type"] == "error"
    assert answer["data"]["message"].isprintable()


def test_a_body_beyond_all_bounds_is_not_read(served: Served) -> None:
    place = urlparse(served.url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=20)
    connection.putrequest("POST", "/reset")
    connection.putheader("Content-Length", str(MOST_MESSAGE_BYTES + 1))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_a_frame_beyond_all_bounds_ends_its_session_alone(served: Served) -> None:
    client = connected(served)
    with suppress(ConnectionClosed):  # it may be closed before all is sent
        client.send("a" * (MOST_MESSAGE_BYTES + 1))
    with pytest.raises(ConnectionClosed):
        client.recv(20)
    assert all_slots_come_back(served)


def test_clients_that_leave_while_they_are_judged_are_no_error(
    served: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    judged = served.judge.evaluate
    monkeypatch.setattr(served.judge, "evaluate", lambda *args, **more: (time.sleep(0.3), judged(*args, **more))[1])
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            client = connected(served)
            ask(client, "reset", problem_id="L1_23")
            client.send(json.dumps({"type": "step", "data": {"code": f"// {number}\n{CODE}"}}))
            time.sleep(0.1)
            drop(client)
        assert all_slots_come_back(served)
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]
