"""Fixtures of the fault tests: the preloaded library, processes that start runs, and runs that nothing disturbed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

for directory in ("faults", "evaluation"):
    sys.path.append(str(Path(__file__).parents[1] / directory))

from fault_runs import Bench  # noqa: E402


@pytest.fixture
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether every place is wanted, not some of them: with --all."""
    return bool(request.config.getoption("--all"))


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Two processes that start runs."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    library = tmp_path_factory.mktemp("library") / "disk_faults.so"
    source = Path(__file__).with_name("disk_faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    with Bench(library) as opened:
        yield opened
