"""Trains a model with TRL's GRPOTrainer on a served environment: it calls the tool `submit` and reads the feedback.

    kernelblaster env serve --device emulated          # in another shell; on a machine with a GPU without --device
    python examples/trl_grpo.py --model Qwen/Qwen3-0.6B --problems L1_19 L1_23 --steps 100
    python examples/trl_grpo.py --model tiny --problems L1_19 --steps 2

`tiny` is a decoder with random weights whose vocabulary holds a few whole submissions: it needs no download, runs on
any processor, and learns which of them is best. Needs the extras `env` and `train`; docs/environment.md says how
to install them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM
from trl import GRPOConfig, GRPOTrainer
from trl.chat_template_utils import qwen3_chat_template

from kernelblaster import Tier
from kernelblaster.environment.client import kernrl_env
from kernelblaster.environment.trl_client import KernelTools

ASK = "Write the fastest kernel that you can. Submit it with the tool, read what comes back, and submit better ones."
END = "<|im_end|>"


def tool_call(code: str) -> str:
    """A call of `submit`, as Qwen3 writes it."""
    return f"<tool_call>\n{json.dumps({'name': 'submit', 'arguments': {'code': code}})}\n</tool_call>"


def tiny_policy(submissions: Sequence[str], seed: int = 0) -> tuple[Qwen3ForCausalLM, PreTrainedTokenizerFast]:
    """A model with random weights that can say these submissions and nothing else, and its tokenizer."""
    words = ["<|unknown|>", "<|pad|>", END, *(tool_call(code) for code in submissions)]
    core = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token=words[0]))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    core.add_tokens([AddedToken(word, normalized=False) for word in words[3:]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, unk_token=words[0], pad_token=words[1], eos_token=END, padding_side="left"
    )
    tokenizer.chat_template = qwen3_chat_template
    torch.manual_seed(seed)
    shape: dict[str, Any] = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "head_dim": 16}
    config = Qwen3Config(
        vocab_size=len(words), num_attention_heads=2, num_key_value_heads=2, pad_token_id=1, eos_token_id=2, **shape
    )
    model = Qwen3ForCausalLM(config)
    model.generation_config.update(pad_token_id=1, eos_token_id=2, suppress_tokens=[0, 1])
    return model, tokenizer


def trainer(
    url: str,
    problems: Sequence[str],
    policy: str | Qwen3ForCausalLM,
    tokenizer: PreTrainedTokenizerFast | None,
    **settings: Any,
) -> GRPOTrainer:
    """TRL's trainer, whose rollouts are episodes of the server; each has one of the problems."""
    rows = [{"prompt": [{"role": "user", "content": ASK}], "problem_id": problem} for problem in problems]
    return GRPOTrainer(
        model=policy,
        args=GRPOConfig(**settings),
        train_dataset=Dataset.from_list(rows),
        processing_class=tokenizer,
        environment_factory=partial(KernelTools, url, tier=Tier.QUICK),
    )


def main() -> None:
    """Parse arguments and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--model", required=True, help="a name of the Hub, a folder, or tiny")
    parser.add_argument("--problems", nargs="+", required=True)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", type=Path, default=Path("out/trl_grpo"))
    given = parser.parse_args()
    policy, tokenizer, tokens = given.model, None, 8192
    if given.model == "tiny":
        with kernrl_env(given.url).sync() as env:
            start = env.reset(problem_id=given.problems[0]).observation.start_code
        policy, tokenizer = tiny_policy(["not a kernel", start, start.replace("fmaxf", "fminf")])
        tokens = 2
    trainer(
        given.url, given.problems * given.steps, policy, tokenizer, output_dir=str(given.out), max_steps=given.steps,
        per_device_train_batch_size=4, num_generations=4, max_completion_length=tokens, logging_steps=1,
        save_strategy="no", report_to="none", learning_rate=1e-6 if tokenizer is None else 1e-2,
        use_cpu=not torch.cuda.is_available(), bf16=torch.cuda.is_available(), max_tool_calling_iterations=3,
    ).train()  # fmt: skip


if __name__ == "__main__":
    main()
