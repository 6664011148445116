"""Samples of a policy on prompts, judged: what an evaluation rests on. Needs the extra `train`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kernelblaster.config.training import TrainConfig
from kernelblaster.training.judging import Completion, Scorer, judge_step
from kernelblaster.training.policy import Policy, prompt_ids
from kernelblaster.training.rollouts import Generation, RolloutStore, digest_of_tokens
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.stages import StagePlan, step_seed


def sample(
    policy: Policy,
    rows: Sequence[PromptRow],
    plan: StagePlan,
    config: TrainConfig,
    scorer: Scorer,
    store: RolloutStore,
) -> None:
    """Generate and judge `config.samples` completions of each row, into the store; what is there is not made again.

    A row is a step and a group of the store. Raises MachineError.
    """
    policy.model.eval()
    ends = _ends(policy)
    for step, row in enumerate(rows):
        prompt = prompt_ids(policy.tokenizer, row)
        digest = digest_of_tokens([prompt])
        found = store.generation(step, digest)
        if found is None:
            torch.manual_seed(step_seed(config, step))
            found = Generation(step=step, prompts=digest, completions=_generate(policy, prompt, plan, config))
            store.keep_generation(found)
        completions = [
            Completion.of_tokens(row, policy.tokenizer.decode(ids, skip_special_tokens=True), ids, ends)
            for ids in found.completions
        ]
        judge_step(step, completions, config.samples, scorer, store)


def _generate(policy: Policy, ids: list[int], plan: StagePlan, config: TrainConfig) -> list[list[int]]:
    asked = torch.tensor([ids] * config.samples, device=policy.model.device)
    with torch.no_grad():
        written = policy.model.generate(
            input_ids=asked,
            attention_mask=torch.ones_like(asked),
            do_sample=True,
            temperature=config.temperature,
            top_p=1.0,
            top_k=0,
            max_new_tokens=plan.completion_tokens,
            pad_token_id=policy.tokenizer.pad_token_id,
        )
    return [_until_end(one.tolist(), _ends(policy)) for one in written[:, len(ids) :].cpu()]


def _until_end(ids: list[int], ends: set[int]) -> list[int]:
    for place, token in enumerate(ids):
        if token in ends:
            return ids[: place + 1]
    return ids


def _ends(policy: Policy) -> set[int]:
    configured: Any = policy.model.generation_config.eos_token_id
    every = configured if isinstance(configured, list) else [configured, policy.tokenizer.eos_token_id]
    return {one for one in every if one is not None}
