"""The first question to an endpoint: a wrong key, a dead address and a wrong name are told apart from odd servers."""

from __future__ import annotations

import pytest
from chat_server import NO_LISTING, Step, serve
from pydantic import SecretStr

from kernelblaster.config import ModelConfig
from kernelblaster.errors import UsageError
from kernelblaster.models import probe
from kernelblaster.models.base import BadKey, RequestRejected, Unreachable
from kernelblaster.models.endpoint import endpoint_of
from kernelblaster.models.probe import check_model, offered_models

KEY = "sk-test-3c0a-not-a-real-key"
LISTING = Step(body={"object": "list", "data": [{"id": "small", "object": "model"}, {"id": "large"}]})


def config(url: str, name: str = "small") -> ModelConfig:
    return ModelConfig(name=name, base_url=url, api_key=SecretStr(KEY))


def test_a_listing_is_read() -> None:
    with serve(listing=LISTING) as server:
        assert offered_models(config(server.url)) == {"small", "large"}
        check_model(config(server.url))


def test_a_refused_key_is_asked_once_and_never_shown() -> None:
    refusal = Step(status=401, body={"error": {"message": f"bad key {KEY}"}})
    with serve(listing=refusal) as server, pytest.raises(BadKey) as raised:
        check_model(config(server.url))
    assert server.listings == 1
    assert KEY not in raised.value.message
    assert "401" in raised.value.message


@pytest.mark.parametrize(
    "odd",
    [
        NO_LISTING,
        Step(status=403, body={"error": {"message": "missing scope: api.model.read"}}),
        Step(status=429, body={}),
        Step(status=500, body=b"oops", content_type="text/plain"),
        Step(body=b"<html>", content_type="text/html"),
        Step(body=[]),
        Step(body={"data": []}),
    ],
)
def test_servers_without_a_list_are_no_error(odd: Step) -> None:
    with serve(listing=odd) as server:
        check_model(config(server.url))
    assert server.listings == 1


def test_an_endpoint_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe, "WAIT_S", 0.01)
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1:9"):
        check_model(config("http://127.0.0.1:9/v1"))


def test_a_name_that_is_not_listed(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(listing=LISTING) as server:
        check_model(config(server.url, name="medium"))
        (warning,) = caplog.messages
        assert warning.index("medium") < warning.index("large, small")
        # At OpenAI the list is complete: an alias that a server resolves by itself does not exist there.
        monkeypatch.setattr(probe, "OPENAI_HOST", "127.0.0.1")
        with pytest.raises(RequestRejected, match="medium"):
            check_model(config(server.url, name="medium"))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (None, "https://api.openai.com/v1"),
        ("http://user:secret@host:8000/v1/?token=secret", "http://host:8000/v1/"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
    ],
)
def test_an_address_is_shown_without_what_is_secret_in_it(url: str | None, shown: str) -> None:
    assert endpoint_of(ModelConfig(base_url=url)) == shown


@pytest.mark.parametrize("url", ["localhost:8000/v1", "http://host:port/v1", "http://[::1/v1", "ftp://host", "http://"])
def test_what_is_no_address_is_named(url: str) -> None:
    with pytest.raises(UsageError, match="base URL"):
        endpoint_of(ModelConfig(base_url=url))
