"""Variables and `.env` files, as people and compose files write them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import call, clean_environment

from kernelblaster.config import RunConfig
from kernelblaster.config.sources import load_config
from kernelblaster.errors import ExitCode
from kernelblaster.knowledge.schema import Lesson
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.problems.problem import Precision


def environment() -> RunConfig:
    """The configuration without a file or options."""
    return load_config().config


NAMES = ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MODEL", "GPU_TYPE", "DATASET", "PRECISION", "EXPERIMENT_NAME")


def test_a_variable_set_to_nothing_is_not_set(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unset = environment()
    for name in NAMES:
        monkeypatch.setenv(name, "")
    assert environment() == unset
    assert environment().model.api_key is None
    (clean / ".env").write_text("OPENAI_API_KEY=\nGPU_TYPE=h100\n")
    assert environment().model.api_key is None
    assert environment().gpu_type == "h100"


def test_files_with_quotes_comments_and_exports(clean: Path) -> None:
    (clean / ".env").write_text("# a comment\nexport MODEL='my model'  # why\nPRECISION=bf16 # short\n\nUNKNOWN=1\n")
    assert environment().model.name == "my model"
    assert environment().precision is Precision.BF16


def test_the_second_experiment_name_keeps_results_apart(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = environment().experiment
    monkeypatch.setenv("RL_EXPERIMENT_NAME", "second")
    assert environment().experiment == f"{first}-second"
    monkeypatch.setenv("EXPERIMENT_NAME", "mine")
    assert environment().experiment == "mine-second"


def test_a_locale_without_unicode_costs_no_result(clean: Path) -> None:
    store = KnowledgeStore(clean / "kb.json")
    store.create()
    text = "größer als 3 → 🚀"
    store.update(lambda known: known.model_copy(update={"lessons": (Lesson(id="x", text=text),)}))
    rendered = call(["kb", "render", store.path], clean, PYTHONIOENCODING="ascii")
    assert rendered.code == ExitCode.OK, rendered.err
    assert "gr\\xf6\\xdfer" in rendered.out
    shown = call(["kb", "show", store.path, "--json"], clean, PYTHONIOENCODING="latin-1")
    assert shown.code == ExitCode.OK, shown.err
    assert shown.json["lessons"][0]["text"] == text


def test_a_temporary_directory_that_does_not_exist_is_replaced(clean: Path) -> None:
    program = (
        "import os; from kernelblaster.cli.errors import prepare_process; "
        "prepare_process(); print(os.environ['TMPDIR'])"
    )
    for given in (str(clean / "missing"), str(clean)):
        environment = clean_environment(TMPDIR=given)
        done = subprocess.run(
            [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
        )
        assert Path(done.stdout.strip()).is_dir()
    assert done.stdout.strip() == str(clean)
