"""`kernelblaster answer`: the other end of a batch exchange, where the key and the network are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli.options import ModelTimeoutOption, PriceOption, ReplyTokensOption, positive
from kernelblaster.cli.settings import ConfigOption, SetOption, configured, setting
from kernelblaster.config import ModelKind
from kernelblaster.errors import ExitCode


def answer(
    exchange: Annotated[Path, typer.Argument(help="Folder with requests*.jsonl.", exists=True, file_okay=False)],
    watch: Annotated[bool, typer.Option("--watch", help="Keep answering until interrupted.")] = False,
    model: Annotated[str | None, setting("model")] = None,
    base_url: Annotated[str | None, setting("base_url")] = None,
    price: PriceOption = None,
    model_concurrency: Annotated[
        int | None, setting("model_concurrency", "--model-concurrency", "--concurrency", min=1)
    ] = None,
    model_timeout: ModelTimeoutOption = None,
    max_completion_tokens: ReplyTokensOption = None,
    max_dollars: Annotated[float | None, setting("max_dollars", callback=positive)] = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
) -> int:
    """Answer the requests of a batch exchange with a model, for a GPU machine without network or key.

    Ends when every request has a reply: exit code 0, also when all had one before. A folder in which nothing was asked
    is a mistake (exit code 2), unless --watch waits for requests.
    """
    given = dict(locals())
    from kernelblaster import answer_exchange, check_exchange, choose_model_config

    if not watch:
        check_exchange(exchange)
    effective = configured(given, file=config, assignments=assignments).config
    choice = choose_model_config(effective.model.model_copy(update={"kind": ModelKind.OPENAI_API}))
    typer.echo(f"model: {choice.reason}", err=True)
    answered = answer_exchange(exchange, choice.config, watch=watch, max_dollars=effective.budget.dollars)
    before = answered.asked - answered.now
    typer.echo(
        f"requests answered in {exchange}: {answered.now}" + (f"; {before} had replies before" if before else "")
    )
    return int(ExitCode.OK)
