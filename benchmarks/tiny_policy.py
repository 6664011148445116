"""A model made on the spot: a tokenizer of bytes and a decoder of the Qwen3 shape with random weights, no download."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from kernelblaster.models.base import Message

SPECIAL = ("<|pad|>", "<|im_start|>", "<|im_end|>")
TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'][0] }}{{ message['content'] }}<|im_end|>{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>a{% endif %}"
)


@dataclass(frozen=True)
class Shape:
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


TINY = Shape(hidden=64, layers=2, inner=128, heads=2, kv_heads=2, head_dim=32, vocabulary=259, spread=0.2)
MIDDLE = Shape(hidden=1024, layers=8, inner=3072, heads=16, kv_heads=8, head_dim=64, vocabulary=20_000)
"""Large enough to stand for a large one where a GPU is not at hand."""
QWEN3_8B = Shape(hidden=4096, layers=36, inner=12288, heads=32, kv_heads=8, head_dim=128, vocabulary=151_936)


def byte_tokenizer(vocabulary: int) -> PreTrainedTokenizerFast:
    """One token per byte and three special ones; what is left of the vocabulary decodes to nothing."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = [*SPECIAL, *alphabet, *(f"<|unused{n}|>" for n in range(vocabulary - len(SPECIAL) - len(alphabet)))]
    core = Tokenizer(models.BPE(vocab={name: place for place, name in enumerate(names)}, merges=[]))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    core.add_special_tokens(list(SPECIAL))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token=SPECIAL[0], bos_token=SPECIAL[1], eos_token=SPECIAL[2], padding_side="left"
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def decoder(shape: Shape, seed: int) -> Qwen3ForCausalLM:
    """A model with random weights, in torch's default type and device."""
    torch.manual_seed(seed)
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=shape.vocabulary,
            hidden_size=shape.hidden,
            num_hidden_layers=shape.layers,
            intermediate_size=shape.inner,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.kv_heads,
            head_dim=shape.head_dim,
            max_position_embeddings=40_960,
            tie_word_embeddings=False,
            initializer_range=shape.spread,
            pad_token_id=0,
            bos_token_id=1,
            eos_token_id=2,
        )
    )
    model.generation_config.eos_token_id, model.generation_config.pad_token_id = 2, 0
    return model


def write_policy(directory: Path, shape: Shape = TINY, seed: int = 0) -> Path:
    """Write model and tokenizer as transformers loads them; returns the directory."""
    decoder(shape, seed).save_pretrained(directory)
    byte_tokenizer(shape.vocabulary).save_pretrained(directory)
    return directory


def name_letters(
    model: Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    prompts: Sequence[Sequence[Message]],
    letters: str,
    lead: float = 4.0,
) -> None:
    """Change the head of random weights: after these prompts the letters are equally likely, and hardly anything else.

    The head's rows of the letters become the smallest one with the wanted logit at the states after the prompts.

    Args:
        model: changed in place.
        tokenizer: a token per letter.
        prompts: that are to be answered by letter.
        letters: replies.
        lead: logit of a letter beyond the logarithm of the sum of exponentials of all other tokens.
    """
    states = []
    for prompt in prompts:
        messages = [message.model_dump() for message in prompt]
        asked = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=True)
        with torch.no_grad():
            found = model.model(torch.tensor([asked["input_ids"]], device=model.device))
        states.append(found.last_hidden_state[0, -1].float())
    hidden = torch.stack(states)
    head = model.lm_head.weight
    with torch.no_grad():
        logit = (hidden @ head.float().T).logsumexp(1).max() + lead
        row = torch.linalg.pinv(hidden) @ torch.full((len(hidden),), float(logit), device=hidden.device)
        head[[tokenizer.convert_tokens_to_ids(one) for one in letters]] = row.to(head.dtype)
