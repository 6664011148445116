"""The sets that ship load with `datasets`, and a step of the trainers that their formats are made for runs on them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

import torch
from datasets import Dataset, load_dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import DPOConfig, DPOTrainer, KTOConfig, KTOTrainer, SFTConfig, SFTTrainer

from kernelblaster.training.policy import PROJECTIONS
from kernelblaster.training.tiny_model import write_model

SHIPPED = Path(__file__).parents[2] / "docs" / "results" / "h200_training_sets"
CHARACTERS = 80
"""Of each message: the tokens of the tiny model are bytes."""
TRAINERS: dict[str, tuple[type, type]] = {
    "sft": (SFTTrainer, SFTConfig),
    "preferences": (DPOTrainer, DPOConfig),
    "unpaired": (KTOTrainer, KTOConfig),
}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("base"))


def some_of(name: str, cache: Path) -> Dataset:
    """Rows of a shipped set, wanted and unwanted ones, their messages shortened."""
    loaded = load_dataset("json", data_files=str(SHIPPED / f"{name}.jsonl.xz"), split="train", cache_dir=str(cache))
    if "label" in loaded.column_names:
        wanted = [place for place, label in enumerate(loaded["label"]) if label][:4]
        unwanted = [place for place, label in enumerate(loaded["label"]) if not label][:4]
        loaded = loaded.select(wanted + unwanted)
    messages = [column for column in ("prompt", "completion", "chosen", "rejected") if column in loaded.column_names]

    def shortened(row: dict[str, Any]) -> dict[str, Any]:
        return {
            column: [{**one, "content": one["content"][-CHARACTERS:]} for one in row[column]] for column in messages
        }

    return loaded.select(range(min(8, len(loaded)))).map(shortened)


COMMANDS = {"dpo": ("preferences", "prompt, chosen, rejected"), "kto": ("unpaired", "prompt, completion, label")}
SETTINGS = """
model_name_or_path: {base}
output_dir: {out}
use_peft: true
max_steps: 1
per_device_train_batch_size: 2
max_length: 1024
use_cpu: true
bf16: false
gradient_checkpointing: false
report_to: none
datasets:
  - path: json
    data_files: {rows}
    columns: [{columns}]
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_of_trl_leaves_an_adapter(base: Path, tmp_path: Path, command: str) -> None:
    (name, columns), rows, out = COMMANDS[command], tmp_path / "rows.jsonl", tmp_path / "out"
    some_of(name, tmp_path).to_json(rows)
    settings = tmp_path / "settings.yaml"
    settings.write_text(SETTINGS.format(base=base, out=out, rows=rows, columns=columns))
    done = subprocess.run(
        [sys.executable, "-m", f"trl.scripts.{command}", "--config", str(settings)],
        capture_output=True, text=True, timeout=280, env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert (out / "adapter_model.safetensors").is_file()


@pytest.mark.parametrize("name", TRAINERS)
def test_a_step_of_its_trainer_moves_weights(base: Path, tmp_path: Path, name: str) -> None:
    trainer_of, config_of = TRAINERS[name]
    arguments = config_of(
        output_dir=str(tmp_path), max_steps=1, per_device_train_batch_size=4, learning_rate=1e-2, use_cpu=True,
        bf16=False, gradient_checkpointing=False, report_to=[], disable_tqdm=True, max_length=1024,
    )  # fmt: skip
    trainer = trainer_of(
        model=AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32),
        args=arguments,
        train_dataset=some_of(name, tmp_path),
        processing_class=AutoTokenizer.from_pretrained(base),
        peft_config=LoraConfig(r=4, target_modules=PROJECTIONS, task_type="CAUSAL_LM"),
    )
    trainer.train()
    (step, *_) = [entry for entry in trainer.state.log_history if "loss" in entry or "train_loss" in entry]
    assert torch.tensor(step.get("loss", step.get("train_loss"))).isfinite()
    moved = [value for key, value in trainer.model.named_parameters() if "lora_B" in key and value.abs().max() > 0]
    assert moved
