"""`kernelblaster answer`: the other end of a batch exchange, where the key and the network are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli.options import ModelTimeoutOption, PriceOption, ReplyTokensOption, environment, positive
from kernelblaster.config import ModelConfig, ModelKind
from kernelblaster.errors import ExitCode


def answer(
    exchange: Annotated[Path, typer.Argument(help="Folder with requests*.jsonl.", exists=True, file_okay=False)],
    watch: Annotated[bool, typer.Option("--watch", help="Keep answering until interrupted.")] = False,
    model: Annotated[str | None, typer.Option("--model", help="Model name. [env: MODEL]")] = None,
    base_url: Annotated[str | None, typer.Option("--base-url", help="Endpoint. [env: OPENAI_BASE_URL]")] = None,
    price: PriceOption = None,
    concurrency: Annotated[
        int, typer.Option("--model-concurrency", "--concurrency", min=1, help="Requests in flight at once.")
    ] = 8,
    model_timeout: ModelTimeoutOption = 600,
    max_completion_tokens: ReplyTokensOption = None,
    max_dollars: Annotated[float | None, typer.Option(callback=positive, help="Dollars to spend at most.")] = None,
) -> int:
    """Answer the requests of a batch exchange with a model, for a GPU machine without network or key.

    Ends when every request has a reply: exit code 0, also when all had one before. A folder in which nothing was asked
    is a mistake (exit code 2), unless --watch waits for requests.
    """
    from kernelblaster import answer_exchange, check_exchange, choose_model_config

    if not watch:
        check_exchange(exchange)
    env = environment()
    choice = choose_model_config(
        ModelConfig(
            kind=ModelKind.OPENAI_API,
            name=model or env.model,
            base_url=base_url or env.openai_base_url,
            api_key=env.openai_api_key,
            concurrency=concurrency,
            timeout_s=model_timeout,
            max_completion_tokens=max_completion_tokens,
            dollars_per_million_prompt=price[0] if price else None,
            dollars_per_million_completion=price[1] if price else None,
        )
    )
    typer.echo(f"model: {choice.reason}", err=True)
    answered = answer_exchange(exchange, choice.config, watch=watch, max_dollars=max_dollars)
    before = answered.asked - answered.now
    typer.echo(
        f"requests answered in {exchange}: {answered.now}" + (f"; {before} had replies before" if before else "")
    )
    return int(ExitCode.OK)
