"""No command waits for libraries that it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import clean_environment

from kernelblaster.knowledge.store import seed_path

MARK = "imported:"
HEAVY = ("torch", "openai", "langgraph", "numpy")
SEED = str(seed_path())
PROGRAM = f"""\
import sys
from kernelblaster.cli.app import app
from kernelblaster.cli.errors import exit_code_of
for command in sys.argv[1:]:
    code = exit_code_of(lambda: app(command.split(), prog_name="kernelblaster", standalone_mode=False))
    print("{MARK}", code, *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""
NOTHING = ("--help", "problems list", "doctor", "answer .", "evaluate 999 missing.cu", "import . problems", "config")
NUMPY = ("config --set search.policy=none_such", f"kb diff {SEED} {SEED}", "report .", "emulate missing.cu")
MORE_WITH_NUMPY = (
    *(f"kb show {SEED}", f"kb check {SEED}", f"kb render {SEED}", f"kb merge missing.json {SEED}"),
    *("kb import missing.json new.json", "reprofile .", "baseline --problem-numbers 999"),
)


@pytest.mark.parametrize(
    ("commands", "needs"),
    [
        (NOTHING, ()),
        (NUMPY, ("numpy",)),
        (("run --problem-numbers 999",), ("numpy", "langgraph")),
        pytest.param(MORE_WITH_NUMPY, ("numpy",), marks=pytest.mark.slow),
    ],
    ids=["nothing", "numpy", "a search", "more with numpy"],
)
def test_commands_import_what_they_need(tmp_path: Path, commands: tuple[str, ...], needs: tuple[str, ...]) -> None:
    """In one process, for modules once imported stay: the first command with one too many is the one to blame."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *commands],
        cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    told = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith(MARK)]
    assert len(told) == len(commands), done.stderr
    for command, (code, *imported) in zip(commands, told, strict=True):
        assert code in ("0", "2"), f"{command}: {done.stderr}"
        assert set(imported) <= set(needs), command
