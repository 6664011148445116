"""Answers the requests of a batch exchange with a live model: what a controller with key and network runs."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelblaster.config import BudgetConfig, ModelConfig, ModelKind
from kernelblaster.errors import KernelBlasterError, UsageError
from kernelblaster.models.base import ChatModel, Message, Purpose, Reply, Request
from kernelblaster.models.batch_exchange import REQUESTS_GLOB, ExchangeFolder
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger
from kernelblaster.storage.jsonl import append_line, complete_lines

REPLIES = "replies.jsonl"
POLL_SECONDS = 2.0


@dataclass(frozen=True)
class Answered:
    """What came of answering once: how many requests got a reply now, and how many the exchange holds."""

    now: int
    asked: int


def check_exchange(folder: Path) -> None:
    """Raise UsageError when nobody has asked anything in a folder."""
    if any(folder.glob(REQUESTS_GLOB)):
        return
    inside = sorted({path.parent for path in folder.glob(f"*/{REQUESTS_GLOB}")})
    named = (
        f"name the folder that holds them: {inside[0]}" if inside else "name the folder that the waiting run printed"
    )
    raise UsageError(f"{folder} holds no {REQUESTS_GLOB}", hint=f"{named}; or wait for requests with --watch")


def answer_exchange(folder: Path, config: ModelConfig, *, watch: bool, max_dollars: float | None) -> Answered:
    """Answer what is outstanding, once or for ever.

    Raises ModelError and BudgetExceeded; replies obtained until then are kept.
    """
    ledger = CostLedger(folder / "answer_ledger.jsonl", BudgetConfig(dollars=max_dollars))
    model = build_model(config.model_copy(update={"kind": ModelKind.OPENAI_API}), folder, ledger)
    exchange = ExchangeFolder(folder)
    while True:
        now = asyncio.run(_answer_outstanding(exchange, model, config.concurrency))
        ledger.all_kept()
        if not watch:
            return Answered(now, len(exchange.asked()))
        time.sleep(POLL_SECONDS)


async def _answer_outstanding(exchange: ExchangeFolder, model: ChatModel, at_once: int) -> int:
    requests = list(_outstanding(exchange))
    slots = asyncio.Semaphore(at_once)
    errors: list[KernelBlasterError] = []

    async def one(request: Request) -> None:
        async with slots:
            if errors:
                return
            try:
                reply = await model.complete(request)
            except KernelBlasterError as error:
                # What is in flight beside it is paid for: it is waited for, and nothing more is asked.
                errors.append(error)
                return
            # Written at once: a reply that was paid for survives whatever happens to the others.
            append_line(exchange.directory / REPLIES, json.dumps(_batch_line(request.slot, reply)).encode())

    await asyncio.gather(*(one(request) for request in requests))
    if errors:
        raise errors[0]
    return len(requests)


def _outstanding(exchange: ExchangeFolder) -> Iterator[Request]:
    """Requests without a reply. The custom_id stands in for the slot, which a Batch file does not carry."""
    wanted = exchange.outstanding()
    for path in sorted(set(wanted.values())):
        for line in complete_lines(path.read_bytes()):
            entry = json.loads(line.data)
            if wanted.get(entry["custom_id"]) == path:
                messages = tuple(Message.model_validate(message) for message in entry["body"]["messages"])
                yield Request(slot=entry["custom_id"], purpose=Purpose.GENERATE, messages=messages)


def _batch_line(custom_id: str, reply: Reply) -> dict[str, Any]:
    """A line of OpenAI's Batch output format."""
    usage = {
        "prompt_tokens": reply.usage.prompt_tokens,
        "completion_tokens": reply.usage.completion_tokens,
        "total_tokens": reply.usage.prompt_tokens + reply.usage.completion_tokens,
    }
    body = {
        "model": reply.model,
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": reply.text}, "finish_reason": reply.finish_reason}
        ],
        "usage": usage,
    }
    return {
        "id": f"answer-{custom_id[:16]}",
        "custom_id": custom_id,
        "response": {"status_code": 200, "body": body},
        "error": None,
    }
