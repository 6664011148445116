from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

import ptxemu
from ptxemu.core.build import BuiltCore, ensure_core
from ptxemu.files import default_cache_dir


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

    core: BuiltCore
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
            "PTXEMU_MODULE": str(self.module),
            "PTXEMU_REPORT": str(report),
            "PTXEMU_COUNT": str(int(count)),
            "PTXEMU_THREADS": str(threads),
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
def runner(tmp_path_factory, toolkit) -> Runner:
    program = ptxemu.build(Path(__file__).with_name("kernels.cu"))
    core = ensure_core(default_cache_dir())
    return Runner(core, program.built.program, program.module, tmp_path_factory.mktemp("kernels"))
