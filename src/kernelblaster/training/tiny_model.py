"""A model made on the spot: a tokenizer of bytes and a decoder of Qwen3's shape with random weights, no download.

With 0.1 million weights it writes no code. It learns to name one of a few kernels, which is enough to see a training
work from end to end. Needs the extra `train`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

_SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'][0] }}{{ message['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>a{% endif %}"
)
_POSITIONS = 40_960


@dataclass(frozen=True)
class DecoderShape:
    """Extents of a decoder."""

    hidden: int
    layers: int
    inner: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    spread: float = 0.02
    """Standard deviation of the random weights."""


TINY = DecoderShape(hidden=64, layers=2, inner=128, heads=2, kv_heads=2, head_dim=32, vocabulary=259, spread=0.2)


def byte_tokenizer(vocabulary: int) -> Any:
    """One token per byte and three special ones; what is left of the vocabulary are names that no text holds."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*_SPECIAL, *alphabet, *(f"<|unused{n}|>" for n in range(vocabulary - len(_SPECIAL) - len(alphabet)))]
    core = Tokenizer(models.BPE(vocab={name: place for place, name in enumerate(names)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(list(_SPECIAL))
    pad, begin, end = _SPECIAL
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=pad, bos_token=begin, eos_token=end, padding_side="left"
    )
    tokenizer.chat_template = _TEMPLATE
    return tokenizer


def decoder(shape: DecoderShape, seed: int) -> Any:
    """A model with random weights, in torch's default type and device."""
    torch.manual_seed(seed)
    pad, begin, end = range(len(_SPECIAL))
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            num_hidden_layers=shape.layers,
            intermediate_size=shape.inner,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            max_position_embeddings=_POSITIONS,
            tie_word_embeddings=False,
            initializer_range=shape.spread,
            pad_token_id=pad,
            bos_token_id=begin,
            eos_token_id=end,
        )
    )
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = end, pad
    return model


def write_model(directory: Path, shape: DecoderShape = TINY, seed: int = 0) -> Path:
    """Write model and tokenizer as transformers loads them; returns the directory. Raises OSError."""
    decoder(shape, seed).save_pretrained(directory)
    byte_tokenizer(shape.vocabulary).save_pretrained(directory)
    return directory
