"""Samples of a policy on prompts, judged: what an evaluation rests on. Needs the extra `train`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch

from kernelblaster.config.training import TrainConfig
from kernelblaster.training.dialogues import Dialogues, OnProgress, Written, next_turns_of
from kernelblaster.training.fitting import fits
from kernelblaster.training.judging import Scorer
from kernelblaster.training.policy import Policy
from kernelblaster.training.rollouts import RolloutStore
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.stages import StagePlan, step_seed
from kernelblaster.training.turns import Asked


@dataclass(frozen=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        temperature: 0 for the likeliest ones.
        top_p: share of the probability that is drawn from.
    """

    temperature: float
    top_p: float = 1.0


def sample(
    policy: Policy,
    rows: Sequence[PromptRow],
    plan: StagePlan,
    config: TrainConfig,
    scorer: Scorer,
    store: RolloutStore,
    *,
    greedy: bool = False,
    on_progress: OnProgress = lambda name, step: None,
) -> None:
    """Hold and judge `config.samples` dialogues on each row, into the store; what is there is not made again.

    A row is a step of the store. With `greedy` it is one dialogue, of the likeliest tokens. Raises MachineError.
    """
    samples = 1 if greedy else config.samples
    policy.model.eval()
    dialogues = Dialogues(
        tokenizer=policy.tokenizer,
        ends=ends_of(policy),
        group=samples,
        turns=config.turns,
        next_turns=next_turns_of(scorer, config, partial(fits, policy, plan.prompt_tokens)),
        scorer=scorer,
        store=store,
        on_progress=on_progress,
    )
    for step, row in enumerate(rows):
        dialogues.hold(step, [Asked(row)] * samples, partial(_write, policy, plan, config, step, greedy))


def _write(
    policy: Policy,
    plan: StagePlan,
    config: TrainConfig,
    step: int,
    greedy: bool,
    prompts: list[list[int]],
    turn: int,
) -> Written:
    torch.manual_seed(step_seed(config, step, turn))
    how = Sampling(0.0 if greedy else config.temperature)
    return Written(write_completions(policy, prompts, plan.completion_tokens, how))


def write_completions(policy: Policy, prompts: list[list[int]], tokens: int, how: Sampling) -> list[list[int]]:
    """Has prompts, as tokens, answered by so many tokens at most, up to the one that ends a completion."""
    longest, pad = max(map(len, prompts)), policy.tokenizer.pad_token_id
    asked = torch.tensor([[pad] * (longest - len(ids)) + ids for ids in prompts], device=policy.model.device)
    seen = torch.tensor([[0] * (longest - len(ids)) + [1] * len(ids) for ids in prompts], device=policy.model.device)
    drawn = {"do_sample": True, "temperature": how.temperature, "top_p": how.top_p, "top_k": 0}
    with torch.no_grad():
        written = policy.model.generate(
            input_ids=asked,
            attention_mask=seen,
            **(drawn if how.temperature > 0 else {"do_sample": False}),
            max_new_tokens=tokens,
            pad_token_id=pad,
        )
    ends = ends_of(policy)
    return [_until_end(one.tolist(), ends) for one in written[:, longest:].cpu()]


def _until_end(ids: list[int], ends: set[int]) -> list[int]:
    for place, token in enumerate(ids):
        if token in ends:
            return ids[: place + 1]
    return ids


def ends_of(policy: Policy) -> set[int]:
    """Tokens that end a completion."""
    configured: Any = policy.model.generation_config.eos_token_id
    every = configured if isinstance(configured, list) else [configured, policy.tokenizer.eos_token_id]
    return {one for one in every if one is not None}
