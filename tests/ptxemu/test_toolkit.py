"""Finding nvcc: the first that works, and what is said where none does."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ptxemu.errors import ToolkitMissing
from ptxemu.toolkit import CudaToolkit


def tools_without_nvcc(folder: Path) -> Path:
    """A directory for PATH that has the host's tools alone."""
    folder.mkdir()
    for name in ("g++", "c++filt"):
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"needs {name}")
        (folder / name).symlink_to(found)
    return folder


def script(folder: Path, text: str) -> Path:
    """An nvcc that is a shell script."""
    folder.mkdir(parents=True)
    path = folder / "nvcc"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_demangled_names_are_readable(toolkit: CudaToolkit) -> None:
    assert toolkit.demangle(["_Z5saxpyfPKfPfi", "plain"]) == ["saxpy(float, float const*, float*, int)", "plain"]
    assert toolkit.demangle([]) == []
    assert any((path / "cuda_runtime_api.h").is_file() for path in toolkit.include_dirs)


def test_a_broken_nvcc_is_passed_over(tmp_path: Path, toolkit: CudaToolkit, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "broken", "echo no version")
    monkeypatch.setenv("PATH", f"{tmp_path / 'broken'}{os.pathsep}{os.environ['PATH']}")
    assert CudaToolkit.find() == toolkit


def test_a_wrapper_is_asked_for_its_toolkit(
    tmp_path: Path, toolkit: CudaToolkit, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper = script(tmp_path / "wrapped" / "bin", f'exec "{toolkit.nvcc}" "$@"')
    monkeypatch.setenv("PATH", str(tools_without_nvcc(tmp_path / "tools")) + ":/usr/bin:/bin")
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    found = CudaToolkit.find()
    assert found.nvcc == wrapper
    assert (found.version, found.include_dirs) == (toolkit.version, toolkit.include_dirs)


def test_without_a_host_compiler_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolkitMissing, match=r"g\+\+"):
        CudaToolkit.find()


def test_an_nvcc_without_headers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nvcc = script(tmp_path / "cuda" / "bin", f"echo 'release 13.0, V13.0.1'; echo '#$ TOP={tmp_path}'")
    tools = tools_without_nvcc(tmp_path / "tools")
    monkeypatch.setenv("PATH", f"{nvcc.parent}:{tools}")
    monkeypatch.setattr("ptxemu.toolkit._nvccs", lambda: iter([nvcc]))
    with pytest.raises(ToolkitMissing, match=r"cuda_runtime_api\.h"):
        CudaToolkit.find()
