"""The model that is trained: base, adapter, and the weights that a stage leaves. Needs the extra `train`.

With an adapter a stage leaves the adapter alone; without one (`lora_rank` 0) the whole model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer

from kernelblaster.config.training import Generator, TrainConfig
from kernelblaster.errors import MachineError, UsageError
from kernelblaster.models.base import Message
from kernelblaster.storage.atomic import write_atomically
from kernelblaster.training.rows import PromptRow

PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
"""Attention and MLP of most decoders; what the adapter is on."""
_REASON_CHARACTERS = 300
_MANY = 10_000_000
"""Parameters from which on a CPU's threads are worth more than it costs to wait for each other: with 0.12 million
an update on 8 x 600 tokens took 0.15 s of CPU in one thread, 0.4 to 2.1 s in two (2 processors, one of them busy)."""
COMPLETE = "complete"
"""A file that is written last: without it a directory of weights counts for nothing."""


@dataclass(frozen=True)
class Policy:
    """A model with its tokenizer.

    Attributes:
        model: a `PeftModel` with an adapter, else the plain model.
        tokenizer: pads on the left, so that prompts end where completions begin.
    """

    model: Any
    tokenizer: Any


def load_policy(config: TrainConfig, weights: Path | None) -> Policy:
    """The policy that a stage begins with.

    Args:
        config: where the base model is, and the adapter's shape.
        weights: left by an earlier stage; None begins with a fresh adapter.

    Raises UsageError when there is no model.
    """
    base = _base_of(config, weights)
    torch.manual_seed(config.seed)
    # Without an adapter the weights themselves are trained, and an update of 1e-6 is less than bfloat16 resolves.
    narrow = torch.cuda.is_available() and config.lora_rank > 0
    try:
        tokenizer = AutoTokenizer.from_pretrained(base, padding_side="left", local_files_only=True)
        plain = AutoModelForCausalLM.from_pretrained(
            base, dtype=torch.bfloat16 if narrow else torch.float32, local_files_only=True
        )
    except (OSError, ValueError, SafetensorError) as error:
        reason = " ".join(str(error).split())[:_REASON_CHARACTERS]
        raise UsageError(f"{base} cannot be loaded: {reason}", hint="name a causal language model") from error
    if tokenizer.chat_template is None:
        raise UsageError(f"the tokenizer in {base} has no chat template", hint="take a model that was trained to chat")
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    if torch.cuda.is_available():
        plain = plain.to("cuda")
    elif plain.num_parameters() < _MANY:
        torch.set_num_threads(1)
    if config.lora_rank == 0:
        return Policy(plain, tokenizer)
    if weights is not None:
        return Policy(PeftModel.from_pretrained(plain, str(weights), is_trainable=True), tokenizer)
    return Policy(get_peft_model(plain, _adapter(config)), tokenizer)


def prompt_ids(tokenizer: Any, row: PromptRow) -> list[int]:
    """The tokens of a prompt, up to where the completion begins."""
    return ids_of_messages(tokenizer, row.prompt)


def ids_of_messages(tokenizer: Any, messages: Sequence[Message]) -> list[int]:
    """The tokens of messages, up to where the reply begins."""
    told = [message.model_dump() for message in messages]
    encoded = tokenizer.apply_chat_template(told, add_generation_prompt=True, tokenize=True, return_dict=True)
    found: list[int] = encoded["input_ids"]
    return found


def micro_batch(samples: int, most: int) -> int:
    """The most samples, up to `most`, that the samples of an update divide into."""
    return max(size for size in range(1, min(samples, most) + 1) if samples % size == 0)


def save_policy(policy: Policy, directory: Path) -> None:
    """Write the weights that later stages and servers load; `COMPLETE` last. Raises OSError."""
    (directory / COMPLETE).unlink(missing_ok=True)
    policy.model.save_pretrained(str(directory))
    policy.tokenizer.save_pretrained(str(directory))
    write_atomically(directory / COMPLETE, "")


def is_complete(directory: Path) -> bool:
    """Whether all weights of a directory were written."""
    return (directory / COMPLETE).is_file()


def _adapter(config: TrainConfig) -> Any:
    return LoraConfig(
        r=config.lora_rank,
        lora_alpha=config.lora_alpha,
        lora_dropout=config.lora_dropout,
        target_modules=PROJECTIONS,
        task_type="CAUSAL_LM",
    )


def require_generator(config: TrainConfig) -> None:
    """Raise MachineError where the generator that is configured is not installed."""
    if config.generator is not Generator.TRANSFORMERS and find_spec("vllm") is None:
        raise MachineError(
            f"train.generator={config.generator} needs vLLM, which is not installed",
            hint="pip install vllm, or --set train.generator=transformers",
        )


def require_model(config: TrainConfig) -> None:
    """Raise UsageError where no base model is named, or what is named is none."""
    if config.model is None or not (config.model / "config.json").is_file():
        raise UsageError(
            "no base model: " + ("none was named" if config.model is None else f"{config.model} holds no config.json"),
            hint="name the directory of a model in transformers' format, --model DIRECTORY",
        )


def _base_of(config: TrainConfig, weights: Path | None) -> str:
    return str(weights if config.lora_rank == 0 and weights is not None else config.model)
