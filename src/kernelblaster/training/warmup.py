"""The warm-up: supervised fine-tuning on correct replies, which teaches the format. Needs the extra `train`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import PrinterCallback
from trl import SFTConfig, SFTTrainer

from kernelblaster.config.training import TrainConfig
from kernelblaster.training.checkpoints import MarksCheckpoints, OnMoment, last_checkpoint, telling_a_full_disk
from kernelblaster.training.policy import Policy, micro_batch
from kernelblaster.training.rows import SftRow

_BATCH = 4
"""Rows of an update."""
_CHECKPOINTS = 10
"""Of a warm-up, at most: an update takes less time than a checkpoint."""


def warm_up(
    policy: Policy,
    rows: Sequence[SftRow],
    config: TrainConfig,
    tokens: int,
    directory: Path,
    on_moment: OnMoment = lambda name, step: None,
) -> None:
    """Train on completions alone, for `config.steps` updates.

    Args:
        policy: trained in place.
        rows: prompts and replies; one at least.
        config: settings of the training.
        tokens: of prompt and reply together, at most: TRL would cut what is longer.
        directory: of the warm-up; a checkpoint in it is gone on from.
        on_moment: told `updated`, `saving` and `saved`, and the updates made.
    """
    samples = [_sample(row) for row in rows]
    on_gpu = torch.cuda.is_available()
    batch = min(_BATCH, len(samples))
    at_once = micro_batch(batch, config.micro_batch or batch)
    arguments = SFTConfig(
        output_dir=str(directory),
        max_steps=config.steps,
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=batch // at_once,
        learning_rate=config.warmup_learning_rate,
        lr_scheduler_type="constant",
        max_length=tokens,
        seed=config.seed,
        save_strategy="steps",
        save_steps=max(config.checkpoint_steps, config.steps // _CHECKPOINTS),
        save_total_limit=2,
        logging_steps=10,
        report_to=[],
        disable_tqdm=True,
        use_cpu=not on_gpu,
        bf16=on_gpu,
        gradient_checkpointing=on_gpu,
    )
    trainer = SFTTrainer(
        model=policy.model,
        args=arguments,
        train_dataset=Dataset.from_list(samples),
        processing_class=policy.tokenizer,
        callbacks=[MarksCheckpoints(directory, on_moment)],
    )
    trainer.remove_callback(PrinterCallback)
    with telling_a_full_disk(directory):
        trainer.train(resume_from_checkpoint=last_checkpoint(directory))


def _sample(row: SftRow) -> dict[str, Any]:
    return {
        "prompt": [message.model_dump() for message in row.prompt],
        "completion": [message.model_dump() for message in row.completion],
    }
