"""No command waits for libraries that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import clean_environment

from kernelblaster.knowledge.store import seed_path

HEAVY = ("torch", "openai", "langgraph", "numpy")
SEED = str(seed_path())
PROGRAM = f"""\
import sys
from kernelblaster.cli.app import app
from kernelblaster.cli.errors import exit_code_of
code = exit_code_of(lambda: app(sys.argv[1:], prog_name="kernelblaster", standalone_mode=False))
print(code, *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""
MORE_WITH_NUMPY = (
    *(f"kb show {SEED}", f"kb check {SEED}", f"kb render {SEED}", f"kb merge missing.json {SEED}"),
    *("kb import missing.json new.json", "reprofile .", "baseline --problem-numbers 999"),
)


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        ("--help", ""), ("problems list", ""), ("doctor", ""), ("answer .", ""), ("evaluate 999 missing.cu", ""),
        (f"kb diff {SEED} {SEED}", "numpy"), ("import . problems", ""), ("report .", "numpy"),
        ("run --problem-numbers 999", "numpy langgraph"), ("emulate missing.cu", "numpy"),
        *(pytest.param(command, "numpy", marks=pytest.mark.slow) for command in MORE_WITH_NUMPY),
    ],
)  # fmt: skip
def test_a_command_imports_what_it_needs(tmp_path: Path, command: str, needs: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *command.split()],
        cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    code, *imported = done.stderr.splitlines()[-1].split()
    assert code in ("0", "2"), done.stderr
    assert set(imported) <= set(needs.split())
