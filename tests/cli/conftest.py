"""Fixtures of the command line's tests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import SETTINGS, Done, make_dataset

from kernelblaster.cli.app import app
from kernelblaster.cli.errors import exit_code_of
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.errors import KernelBlasterError

sys.path.append(str(Path(__file__).parents[1] / "models"))

Invoke = Callable[..., Done]


@pytest.fixture
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty working directory, no settings, and no GPU."""
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("kernelblaster.devices.cuda.probe.detect_gpu", lambda: None)
    return tmp_path


@pytest.fixture
def invoke(clean: Path, capsys: pytest.CaptureFixture[str]) -> Invoke:
    """Calls the command line in this process, in an empty directory and without a GPU."""

    return _calling(capsys)


@pytest.fixture
def invoke_with_streams(clean: Path, capfd: pytest.CaptureFixture[str]) -> Invoke:
    """As `invoke`; what processes that the command starts write to its streams is heard as well."""
    return _calling(capfd)


def _calling(heard: pytest.CaptureFixture[str]) -> Invoke:
    def run(*arguments: object) -> Done:
        code = exit_code_of(
            lambda: app(list(map(str, arguments)), prog_name="kernelblaster", standalone_mode=False),
        )
        out, err = heard.readouterr()
        return Done(code, out, err)

    return run


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of one small problem."""
    return make_dataset(tmp_path_factory.mktemp("dataset"))


@pytest.fixture(scope="session")
def nvcc() -> Toolchain:
    """The toolchain; tests that need it are skipped where there is none."""
    try:
        return Toolchain.find()
    except KernelBlasterError as error:
        pytest.skip(f"needs nvcc: {error.message}")
