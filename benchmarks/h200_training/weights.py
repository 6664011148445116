"""Random weights of a large shape that name letters, and a tokenizer that reads the first letter of a long text."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Regex, decoders

from kernelblaster.models.base import Message
from kernelblaster.training.template import LETTERS
from kernelblaster.training.tiny_model import TINY, DecoderShape, byte_tokenizer, decoder

MIDDLE = DecoderShape(hidden=1024, layers=8, inner=3072, heads=16, kv_heads=8, head_dim=64, vocabulary=20_000)
"""Large enough to stand for a large one where a GPU is not at hand."""
QWEN3_8B = DecoderShape(hidden=4096, layers=36, inner=12288, heads=32, kv_heads=8, head_dim=128, vocabulary=151_936)
SHAPES = {"tiny": TINY, "middle": MIDDLE, "8b": QWEN3_8B}
Prompts = Sequence[Sequence[Message]]


def write_base(directory: Path, shape: DecoderShape, prompts: Prompts) -> Path:
    """Write random weights that answer these prompts with letters, in bf16 but for the smallest shape."""
    if (directory / "config.json").is_file():
        return directory
    if shape is not TINY:
        torch.set_default_dtype(torch.bfloat16)
    with torch.device("cuda" if torch.cuda.is_available() else "cpu"):
        model = decoder(shape, seed=0)
    torch.set_default_dtype(torch.float32)
    tokenizer = byte_tokenizer(shape.vocabulary)
    name_letters(model, tokenizer, prompts)
    tokenizer.save_pretrained(directory)
    model.generation_config.save_pretrained(directory)
    model.save_pretrained(directory)
    return directory


def of_long_texts(base: Path, shape: DecoderShape) -> Path:
    """The same weights with a tokenizer that decodes a text to its first character; returns their directory.

    What follows the letter is written and trained on as any text is, and says nothing.
    """
    directory = base.with_name(f"{base.name}-long")
    if directory.is_dir():
        return directory
    directory.mkdir()
    for path in base.glob("*.safetensors*"):
        (directory / path.name).symlink_to(path.resolve())
    for name in ("config.json", "generation_config.json"):
        (directory / name).write_bytes((base / name).read_bytes())
    tokenizer = byte_tokenizer(shape.vocabulary)
    rest = decoders.Replace(Regex(r"(?<=\A.)(?m:.)*"), "")
    tokenizer.backend_tokenizer.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Fuse(), rest])
    tokenizer.save_pretrained(directory)
    return directory


def name_letters(model: Any, tokenizer: Any, prompts: Prompts, letters: str = LETTERS, lead: float = 4.0) -> None:
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
