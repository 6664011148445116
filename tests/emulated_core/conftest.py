from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.errors import MachineError
from kernelblaster.paths import cache_dir
from ptxemu.core.build import Core, ensure_core
from ptxemu.ptx.assembler import assemble


@dataclass
class Outcome:
    """What one kernel launch left behind."""

    code: int
    stdout: str
    stderr: str
    data: bytes = b""
    record: dict = field(default_factory=dict)
    transfers: list[dict] = field(default_factory=list)

    def array(self, dtype: str) -> np.ndarray:
        """The output bytes as numbers."""
        assert self.code == 0, self.stderr
        return np.frombuffer(self.data, dtype)

    def accesses(self, space: str, op: str) -> list[dict]:
        """Memory instructions of the launch record."""
        return [one for one in self.record["memory"] if (one["space"], one["op"]) == (space, op)]


@dataclass
class Runner:
    """Runs the kernels of `kernels.cu` on the emulator."""

    core: Core
    program: Path
    module: Path
    scratch: Path

    def __call__(self, kernel, grid, block, inputs=(), out_bytes=4, n=0, shared=0, threads=2, count=True) -> Outcome:
        paths = []
        for k, array in enumerate(inputs):
            paths.append(self.scratch / f"in{k}.bin")
            paths[-1].write_bytes(np.ascontiguousarray(array).tobytes())
        report, out = self.scratch / "report.jsonl", self.scratch / "out.bin"
        report.unlink(missing_ok=True)
        out.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(self.core.library_dir),
            "KB_EMU_MODULE": str(self.module),
            "KB_EMU_REPORT": str(report),
            "KB_EMU_COUNT": str(int(count)),
            "KB_EMU_THREADS": str(threads),
        }
        command = [self.program, kernel, grid, block, shared, out_bytes, n, *paths]
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.scratch,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
        lines = [json.loads(line) for line in report.read_text().splitlines()] if report.exists() else []
        record = next((line for line in lines if "kernel" in line), {})
        transfers = [line for line in lines if "transfer" in line]
        data = out.read_bytes() if out.exists() else b""
        return Outcome(done.returncode, done.stdout, done.stderr, data, record, transfers)


@pytest.fixture(scope="session")
def runner(tmp_path_factory) -> Runner:
    try:
        toolchain = Toolchain.find()
    except MachineError as error:
        pytest.skip(f"needs nvcc: {error.message}")
    core = ensure_core(cache_dir())
    build = tmp_path_factory.mktemp("kernels")
    source = Path(__file__).with_name("kernels.cu")
    common = [str(toolchain.nvcc), "-arch=sm_90a", "-lineinfo", str(source)]
    subprocess.run([*common, "-ptx", "-o", str(build / "kernels.ptx")], check=True, timeout=300)
    linking = ["-cudart", "none", f"-L{core.library_dir}", f"-l{core.library_name}", "-o", str(build / "kernels")]
    subprocess.run([*common, *linking], check=True, timeout=300)
    module = build / "kernels.module"
    assemble((build / "kernels.ptx").read_text()).write(module)
    return Runner(core, build / "kernels", module, build)
