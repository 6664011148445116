"""Rows that are short enough: what is longer than a limit is left out, and where all are, the limit is named."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

from kernelblaster.errors import UsageError
from kernelblaster.training.policy import Policy, prompt_ids
from kernelblaster.training.rows import PromptRow, SftRow
from kernelblaster.training.stages import StagePlan


def fits(policy: Policy, most: int, row: PromptRow) -> bool:
    """Whether a prompt has at most so many tokens: TRL cuts none."""
    return len(prompt_ids(policy.tokenizer, row)) <= most


def fitting_prompts(policy: Policy, rows: Sequence[PromptRow], most: int) -> list[PromptRow]:
    """The rows whose prompts have at most so many tokens. Raises UsageError where none has."""
    lengths = [len(prompt_ids(policy.tokenizer, row)) for row in rows]
    found = [row for row, length in zip(rows, lengths, strict=True) if length <= most]
    if not found:
        raise _nothing_fits(
            f"none of {len(rows)} prompts has train.prompt_tokens={most} tokens or less", lengths, least=0
        )
    return found


def fitting_replies(policy: Policy, rows: Sequence[SftRow], plan: StagePlan) -> list[SftRow]:
    """Rows whose prompt and reply fit together: what is cut teaches no format. Raises UsageError where none do."""
    most = plan.prompt_tokens + plan.completion_tokens
    lengths = [_length(policy.tokenizer, row) for row in rows]
    found = [row for row, length in zip(rows, lengths, strict=True) if length <= most]
    if not found:
        raise _nothing_fits(
            f"none of {len(rows)} replies and their prompts has {most} tokens or less "
            f"(train.prompt_tokens={plan.prompt_tokens} and train.completion_tokens={plan.completion_tokens})",
            lengths,
            least=plan.completion_tokens,
        )
    return found


def _nothing_fits(what: str, lengths: Sequence[int], *, least: int) -> UsageError:
    """Tells what would fit. `least` tokens of the length have a limit of their own."""
    if not lengths:
        return UsageError("there is nothing to learn from", hint="make data with `train data`")
    half = 1 << max(0, round(statistics.median_low(lengths)) - least - 1).bit_length()
    return UsageError(
        f"{what}: the shortest has {min(lengths)}",
        hint=f"half fit with --set train.prompt_tokens={half}, which is the one deviation of --preset seed from its "
        "report then; or make shorter ones (`train data --form short`), or take template problems "
        "(`train data --template`)",
    )


def _length(tokenizer: Any, row: SftRow) -> int:
    told = [message.model_dump() for message in (*row.prompt, *row.completion)]
    ids: list[int] = tokenizer.apply_chat_template(told, tokenize=True, return_dict=True)["input_ids"]
    return len(ids)
