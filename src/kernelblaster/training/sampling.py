"""Samples of a policy on prompts, judged: what an evaluation rests on. Needs the extra `train`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kernelblaster.config.training import TrainConfig
from kernelblaster.training.judging import Completion, Scorer
from kernelblaster.training.policy import Policy, prompt_ids
from kernelblaster.training.rollouts import Generation, Rollout, RolloutStore, digest_of_tokens
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.stages import StagePlan


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
    for step, row in enumerate(rows):
        ids = prompt_ids(policy.tokenizer, row)
        found = store.generation(step, digest_of_tokens([ids]))
        if found is None:
            torch.manual_seed(config.seed * 1_000_003 + step)
            found = Generation(
                step=step, prompts=digest_of_tokens([ids]), completions=_generate(policy, ids, plan, config)
            )
            store.keep_generation(found)
        _judge(policy, row, found, scorer, store)


def _judge(policy: Policy, row: PromptRow, found: Generation, scorer: Scorer, store: RolloutStore) -> None:
    missing = [n for n in range(len(found.completions)) if store.rollout(found.step, n) is None]
    ends = _ends(policy)
    completions = [
        Completion(
            row,
            policy.tokenizer.decode(found.completions[n], skip_special_tokens=True),
            not found.completions[n] or found.completions[n][-1] not in ends,
        )
        for n in missing
    ]
    for n, completion, judged in zip(missing, completions, scorer.score(completions), strict=True):
        store.keep(
            Rollout(
                **judged.model_dump(),
                step=found.step,
                index=n,
                group=0,
                problem=row.problem,
                prompt=row.digest,
                completion=completion.text,
                tokens=len(found.completions[n]),
                truncated=completion.truncated,
            )
        )


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
