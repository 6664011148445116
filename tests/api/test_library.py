"""The public library: its names, what importing it costs, and the examples of its page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from cli_support import FASTER, make_dataset

import kernelblaster

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", (DOCS / "library.md").read_text(), re.DOTALL | re.MULTILINE)
HEAVY = ("torch", "openai", "langgraph", "numpy", "pydantic", "typer", "rich")


@pytest.mark.parametrize("name", kernelblaster.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    found = getattr(kernelblaster, name)
    if isinstance(found, type) or callable(found):
        assert found.__doc__
    assert name in dir(kernelblaster)


def test_names_that_are_not_public_are_not_there() -> None:
    with pytest.raises(AttributeError):
        kernelblaster.no_such_name  # noqa: B018
    with pytest.raises(ImportError):
        from kernelblaster import no_such_name  # noqa: F401


def test_importing_the_package_is_quick_and_loads_nothing() -> None:
    check = (
        "import sys, time; began = time.process_time(); import kernelblaster; took = time.process_time() - began; "
        f"assert not [m for m in {HEAVY} if m in sys.modules], sys.modules; print(took)"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.3


def test_the_package_says_that_it_is_typed() -> None:
    assert Path(kernelblaster.__file__).with_name("py.typed").is_file()


def test_the_name_of_a_file_is_no_kernel() -> None:
    with pytest.raises(kernelblaster.UsageError, match="is text, not a path"):
        kernelblaster.evaluate("level1/23", "mine.cu", device="emulated")


@pytest.mark.nvcc
@pytest.mark.usefixtures("nvcc")
def test_the_examples_of_the_page_run(
    clean: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The page's problem, at extents that take a fifth of the time.
    make_dataset(clean / "kernelbench-cuda", small={"batch_size": 33, "dim": 517})
    monkeypatch.setattr("kernelblaster.api.problems.data_dir", lambda: clean)
    (clean / "mine.cu").write_text(FASTER)
    names: dict[str, object] = {}
    policies = set(kernelblaster.POLICIES)
    for number, example in enumerate(EXAMPLES):
        exec(compile(example, f"example {number + 1} of library.md", "exec"), names)
    for name in set(kernelblaster.POLICIES) - policies:
        kernelblaster.POLICIES.unregister(name)
    assert "finalized" in capsys.readouterr().out
