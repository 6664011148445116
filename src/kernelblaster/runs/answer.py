"""Answers the requests of a batch exchange with a live model: what a controller with key and network runs."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from kernelblaster.config import BudgetConfig, ModelConfig
from kernelblaster.models.batch_exchange import ExchangeFolder
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger

POLL_SECONDS = 2.0


def answer_exchange(folder: Path, config: ModelConfig, *, watch: bool, max_dollars: float | None) -> int:
    """Answer what is outstanding, once or for ever; returns how many requests were answered. Raises ModelError."""
    ledger = CostLedger(folder / "ledger.jsonl", BudgetConfig(dollars=max_dollars))
    model = build_model(config, folder, ledger)
    exchange = ExchangeFolder(folder)
    answered = 0

    async def answer_all() -> int:
        requests = exchange.outstanding()

        async def one(request_id: str) -> None:
            reply = await model.complete(requests[request_id])
            exchange.put_reply(request_id, reply)

        await asyncio.gather(*(one(request_id) for request_id in requests))
        return len(requests)

    while True:
        answered += asyncio.run(answer_all())
        if not watch:
            return answered
        time.sleep(POLL_SECONDS)
