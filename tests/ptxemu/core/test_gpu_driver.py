"""The way to a GPU's driver, tried on the emulated one: a kernel that is refused or fails costs no other its values."""

from __future__ import annotations

from pathlib import Path

import gpu_driver
import numpy as np
import pytest
from gpu_driver import NoGpu, Refused, named, require_gpu, run_on_gpu
from ptx_machine import HEAD, Launch

from ptxemu.core.build import ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.model.architecture import gpu_of_architecture
from ptxemu.program.loading import loader_command
from ptxemu.ptx.assembler import assemble

STORES = "ld.param.u64 %l, [out]; st.global.u32 [%l], {};"
BODIES = {
    "fine": STORES.format(7),
    "refused": "cvt.rni.s8.bf16 %h, %h;",
    "fails": "trap;",
    "also_fine": STORES.format(9),
}


def kernel(name: str, body: str) -> str:
    """Of one thread."""
    registers = ".reg .b16 %h; .reg .b32 %r; .reg .b64 %l;"
    return f".visible .entry {name}(.param .u64 out)\n{{\n{registers}\n{body}\nret;\n}}"


def launch(name: str) -> Launch:
    return Launch(name, [np.zeros(1, np.uint32)], block=(1, 1, 1))


@pytest.fixture
def emulated_driver(tmp_path: Path, toolkit: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """`libcuda.so.1` of the emulated device."""
    core, empty = ensure_core(default_cache_dir()), tmp_path / "module"
    (tmp_path / "libcuda.so.1").symlink_to(core.library)
    assemble(HEAD).write(empty)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    monkeypatch.setenv("PTXEMU_MODULE", str(empty))
    monkeypatch.setenv("PTXEMU_LOADER", loader_command(gpu_of_architecture("sm_90a"), tmp_path / "cache"))


@pytest.mark.nvcc
def test_kernels_that_are_refused_or_fail_cost_no_other_its_values(emulated_driver: None) -> None:
    kernels = [kernel(name, body) for name, body in BODIES.items()]
    found = dict(zip(BODIES, run_on_gpu(HEAD, kernels, [launch(name) for name in BODIES]), strict=True))
    assert [int(found[name].arrays[0][0]) for name in ("fine", "also_fine")] == [7, 9]
    assert not found["fine"].failure
    assert "does not assemble: Arguments mismatch" in found["refused"].failure
    assert "LAUNCH_FAILED" in found["fails"].failure


class Halving(gpu_driver.Gpu):
    """A driver that says nothing of which kernel it refuses."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def _module(self, ptx: str) -> str:
        self.texts.append(ptx)
        if "bad" in ptx:
            raise Refused("no reason")
        return f"module {len(self.texts)}"


def test_without_messages_kernels_are_refused_by_halves() -> None:
    gpu = Halving()
    modules, refused = gpu.load("", {number: "bad" if number == 11 else "good" for number in range(64)})
    assert refused == {11: "no reason"}
    assert sorted(modules) == [number for number in range(64) if number != 11]
    assert len(gpu.texts) == 13


def test_messages_are_of_the_kernels_in_whose_lines_they_are() -> None:
    log = "ptxas ptx input, line 4; error   : Unknown opcode\nptxas ptx input, line 2; fatal : No\n"
    assert named("head\n", {5: "one\ntwo", 8: "three"}, log) == {
        8: "does not assemble: Unknown opcode",
        5: "does not assemble: No",
    }


def test_without_a_driver_there_is_no_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "libcuda.so.1").write_text("no library")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    with pytest.raises(NoGpu):
        require_gpu()
