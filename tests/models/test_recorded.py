from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import pytest

from kernelblaster.config import BudgetConfig, ModelConfig, ModelKind
from kernelblaster.errors import UsageError
from kernelblaster.models.base import Message, NoRecordedReply, Purpose, Reply, Request, Usage
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.recorded import RecordedModel, RecordingHeader, RecordingModel, read_recording

HEADER = RecordingHeader.now(model="writer", how="openai_api", device="NVIDIA H200")
USAGE = Usage(prompt_tokens=100, completion_tokens=50, dollars=0.25)


def ask(slot: str, text: str = "", purpose: Purpose = Purpose.GENERATE, **tags: str) -> Request:
    messages = (Message(role="user", content=text or f"asked at {slot}"),)
    known = {"problem": "level1/023", "precision": "fp16", "parent_sha256": "P", "technique": "tiling"}
    merged = {name: value for name, value in (known | tags).items() if value}
    return Request(slot=slot, purpose=purpose, messages=messages, tags=merged)


class Writer:
    """A model that answers with the slot it was asked at."""

    name = "writer"

    def answerable(self, tags: dict[str, str]) -> None:
        return None

    async def complete(self, request: Request) -> Reply:
        return Reply(text=f"from {request.slot}", usage=USAGE, model="writer-1", finish_reason="stop")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "recording.jsonl"


def record(path: Path, *requests: Request) -> None:
    recorder = RecordingModel(Writer(), path, HEADER)
    for request in requests:
        asyncio.run(recorder.complete(request))


def replay(path: Path, ledger: str = "ledger.jsonl") -> RecordedModel:
    return RecordedModel(path, CostLedger(path.with_name(ledger), BudgetConfig()))


def answer(model: RecordedModel, request: Request) -> str:
    return asyncio.run(model.complete(request)).text


def test_a_recording_is_known_by_what_was_recorded(path: Path) -> None:
    record(path, ask("a/attempt-0"))
    packed = path.with_name("packed.jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    before = replay(path).identity
    assert replay(packed).identity == before
    record(path, ask("b/attempt-0"))
    assert replay(path).identity != before


def test_a_recording_answers_what_was_asked(path: Path) -> None:
    requests = [ask(f"s{number}/attempt-0") for number in range(5)]
    record(path, *requests)
    model = replay(path)
    assert model.header.device == "NVIDIA H200"
    assert [answer(model, request) for request in reversed(requests)] == [
        f"from {request.slot}" for request in reversed(requests)
    ]
    reply = asyncio.run(model.complete(requests[0]))
    assert (reply.model, reply.finish_reason) == ("writer-1", "stop")
    assert reply.usage == USAGE.model_copy(update={"dollars": 0.0})


def test_gzipped_and_continued_and_torn_recordings(path: Path) -> None:
    record(path, ask("a"))
    record(path, ask("a"), ask("b"))
    path.write_bytes(path.read_bytes() + b'{"slot": "torn')
    assert len(read_recording(path).exchanges) == 2
    packed = path.with_suffix(".jsonl.gz")
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert answer(replay(packed), ask("b")) == "from b"
    record(path, ask("c"))
    assert [exchange.slot for exchange in read_recording(path).exchanges] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("request_", "recorded", "found"),
    [
        pytest.param(ask("new", "same"), [ask("new", "other"), ask("old", "same")], "old", id="messages before slot"),
        pytest.param(ask("s"), [ask("x"), ask("s", "other")], "s", id="slot and parent before tags"),
        pytest.param(
            ask("s/attempt-1"),
            [ask("x/attempt-0"), ask("s/attempt-1", "o", parent_sha256="Q"), ask("y/attempt-1")],
            "y/attempt-1",
            id="attempt",
        ),
        pytest.param(
            ask("s/attempt-0"),
            [ask("s/attempt-0", "o", technique="unrolling"), ask("z/attempt-0")],
            "z/attempt-0",
            id="the slot of another technique does not count",
        ),
        pytest.param(
            ask("s", parent_sha256="new"),
            [ask("x", precision="bf16"), ask("y"), ask("z", technique="unrolling")],
            "y",
            id="problem and technique, same precision first",
        ),
        pytest.param(
            ask("s/attempt-1", purpose=Purpose.REPAIR, failed_sha256="F"),
            [
                ask("s/attempt-1", purpose=Purpose.REPAIR, failed_sha256="G"),
                ask("y/attempt-2", "o", purpose=Purpose.REPAIR, failed_sha256="F", problem="level1/001"),
            ],
            "y/attempt-2",
            id="repair of the same failed source",
        ),
        pytest.param(
            ask("s/attempt-1", purpose=Purpose.REPAIR),
            [ask("s/attempt-1", "o"), ask("y/attempt-1", "o", purpose=Purpose.REPAIR)],
            "y/attempt-1",
            id="only the same purpose",
        ),
    ],
)
def test_matching_order(request_: Request, recorded: list[Request], found: str, path: Path) -> None:
    record(path, *recorded)
    assert answer(replay(path), request_) == f"from {found}"


def test_unused_replies_come_first_and_slots_keep_theirs(path: Path) -> None:
    record(path, ask("x"), ask("y"))
    model = replay(path)
    new = [ask(f"new{number}", parent_sha256="other") for number in range(3)]
    assert [answer(model, request) for request in new] == ["from x", "from y", "from x"]
    assert answer(model, new[1]) == "from y"
    assert answer(model, new[0]) == "from x"


def test_a_restart_goes_on_with_the_unused(path: Path) -> None:
    record(path, ask("x"), ask("y"))
    first, second = (ask(f"new{number}", parent_sha256="other") for number in range(2))
    assert answer(replay(path), first) == "from x"
    again = replay(path)
    assert answer(again, second) == "from y"
    assert answer(again, first) == "from x"
    assert CostLedger(path.with_name("ledger.jsonl"), BudgetConfig()).totals().calls == 2


@pytest.mark.parametrize("purpose", [Purpose.CLASSIFY, Purpose.REFLECT, Purpose.VERIFY])
def test_opinions_are_not_borrowed_from_elsewhere(purpose: Purpose, path: Path) -> None:
    record(path, ask("x", purpose=purpose))
    with pytest.raises(NoRecordedReply) as caught:
        answer(replay(path), ask("s", purpose=purpose))
    assert caught.value.hint
    assert answer(replay(path, "other.jsonl"), ask("x", purpose=purpose)) == "from x"


def test_nothing_recorded_for_another_problem(path: Path) -> None:
    record(path, ask("x"))
    with pytest.raises(NoRecordedReply, match="tiling"):
        answer(replay(path), ask("s", problem="level1/001"))


def test_answerable(path: Path) -> None:
    record(
        path,
        ask("a"),
        ask("b", technique="unrolling"),
        ask("c", technique="fusion", parent_sha256="Q"),
        ask("d", technique="repaired", purpose=Purpose.REPAIR),
        ask("e", technique="widening", precision="fp32"),
    )
    model = replay(path)
    where = {"problem": "level1/023", "precision": "fp16"}
    assert model.answerable(where | {"parent_sha256": "P"}) == {"tiling", "unrolling"}
    assert model.answerable(where | {"parent_sha256": "Q"}) == {"fusion"}
    assert model.answerable(where | {"parent_sha256": "new"}) == {"tiling", "unrolling", "fusion"}
    assert model.answerable(where | {"problem": "level1/001"}) == frozenset()
    assert RecordingModel(Writer(), path, HEADER).answerable(where) is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{}\n", b"junk\n", b'{"format": "kernelblaster-recording-2"}\n', HEADER.model_dump_json().encode()],
)
def test_what_is_no_recording_is_refused(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_recording(path)
    assert caught.value.hint


@pytest.mark.parametrize("content", [b"junk", gzip.compress(b"x" * 1000, mtime=0)[:30], b""])
def test_broken_gzip_is_refused(content: bytes, tmp_path: Path) -> None:
    packed = tmp_path / "r.jsonl.gz"
    packed.write_bytes(content)
    with pytest.raises(UsageError):
        read_recording(packed)


def test_factory_replays_and_records(path: Path) -> None:
    ledger = CostLedger(path.with_name("l.jsonl"), BudgetConfig(dollars=1))
    record(path, ask("a"))
    replaying = build_model(ModelConfig(kind=ModelKind.RECORDED, recording=path), path.parent, ledger)
    assert isinstance(replaying, RecordedModel)
    for config in (
        ModelConfig(kind=ModelKind.RECORDED, recording=path.parent / "none.jsonl"),
        ModelConfig(kind=ModelKind.BATCH_EXCHANGE, name="of-my-own"),
        ModelConfig(kind=ModelKind.BATCH_EXCHANGE, name="gpt-5", recording=path.parent / "new.jsonl.gz"),
    ):
        with pytest.raises(UsageError):
            build_model(config, path.parent, ledger)
    new = path.parent / "new.jsonl"
    config = ModelConfig(kind=ModelKind.BATCH_EXCHANGE, name="gpt-5", recording=new)
    assert isinstance(build_model(config, path.parent, ledger, device="NVIDIA H200"), RecordingModel)
    assert read_recording(new).header.how == "batch_exchange"


def test_a_recording_before_another_answers_alone_for_its_problems(path: Path) -> None:
    record(path, ask("old"), ask("other", problem="level1/012"))
    before = path.with_name("before.jsonl")
    recorder = RecordingModel(Writer(), before, HEADER.model_copy(update={"archive": True}))
    asyncio.run(recorder.complete(ask("new")))
    model = RecordedModel(path, CostLedger(path.with_name("ledger.jsonl"), BudgetConfig()), before=before)
    assert answer(model, ask("old")) == "from new"
    assert answer(model, ask("s", problem="level1/012")) == "from other"
    assert (model.of_archive("level1/023"), model.of_archive("level1/012")) == (True, False)
    for problem, asked in (("level1/023", before), ("level1/012", path)):
        with pytest.raises(NoRecordedReply, match=asked.name):
            answer(model, ask("verify", purpose=Purpose.VERIFY, problem=problem))


def test_an_archive_has_as_many_replies_at_once_as_were_recorded(path: Path) -> None:
    recorder = RecordingModel(Writer(), path, HEADER.model_copy(update={"archive": True}))
    for slot in ("r1/rollout-0/step-1/attempt-0", "r1/rollout-1/step-1/attempt-0", "r1/rollout-0/step-2/attempt-0"):
        asyncio.run(recorder.complete(ask(slot)))
    assert replay(path).width("level1/023") == 2
    assert replay(path).width("level1/012") is None
