"""Runs conformance programs on the emulated device and keeps what they leave: outputs, exact counts, ptxas' figures."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from conformance_suite import KERNELS, MARKER, CaseRun
from pydantic import BaseModel, ConfigDict

from kernelblaster.paths import cache_dir
from ptxemu.counters.launch import LaunchRecord
from ptxemu.counters.machine_code import read_code, with_machine_counts
from ptxemu.counters.record import read_records
from ptxemu.errors import CoreFailure
from ptxemu.machine.ptxas import PtxasResources
from ptxemu.program.run import EmulatedProgram

TIMEOUT_S = 120.0
THREADS = 2


class EmulatedCase(BaseModel):
    """One case on the emulated device; `resources` has an entry for each launch."""

    model_config = ConfigDict(frozen=True)

    program: str
    run: CaseRun
    launches: list[LaunchRecord]
    resources: list[PtxasResources]
    seconds: float


class ConformanceFailure(Exception):
    """A conformance program did not run to its end on the emulated device."""


@dataclass(frozen=True)
class Emulator:
    """The built programs of one GPU model.

    Attributes:
        arch: what the programs are compiled for.
        keep: whether cases are taken from the cache when program, core and assembler are the same.
    """

    arch: str = "sm_90"
    keep: bool = True

    def cases(self, program: str, only: Sequence[str] = ()) -> list[EmulatedCase]:
        """Cases of a program, all or those named. Raises ConformanceFailure, and what a build raises."""
        built = EmulatedProgram.build(KERNELS / f"{program}.cu", arch=self.arch)
        names = _output(built, ["list"], {}).split()
        (unit,) = built.built.units
        code = read_code(unit.cubin, unit.ptx)
        cases = [self._case(built, program, name) for name in names if not only or name in only]
        return [one.model_copy(update={"launches": with_machine_counts(one.launches, code)}) for one in cases]

    def _case(self, built: EmulatedProgram, program: str, name: str) -> EmulatedCase:
        kept = cache_dir() / "conformance" / f"{_digest(built)}-{name}.json"
        if self.keep and kept.exists():
            return EmulatedCase.model_validate_json(kept.read_text(encoding="utf-8"))
        case = _run(built, program, name)
        kept.parent.mkdir(parents=True, exist_ok=True)
        partial = kept.with_suffix(f".{os.getpid()}")
        partial.write_text(case.model_dump_json(), encoding="utf-8")
        partial.replace(kept)
        return case


def _run(built: EmulatedProgram, program: str, name: str) -> EmulatedCase:
    with TemporaryDirectory(prefix="kernelblaster-") as scratch:
        report = Path(scratch) / "report.jsonl"
        before = os.times()
        text = _output(built, ["run", "--only", name], {"PTXEMU_REPORT": str(report)})
        after = os.times()
        records = read_records(report)
    launches = [one for one in records if isinstance(one, LaunchRecord) and MARKER not in one.kernel]
    known = {kernel.symbol: kernel for kernel in built.built.units[0].resources}
    return EmulatedCase(
        program=program,
        run=_printed(text),
        launches=launches,
        resources=[known[one.kernel] for one in launches],
        seconds=after.elapsed - before.elapsed,
    )


def _printed(text: str) -> CaseRun:
    """What a program prints of its one case, beside lines that kernels print."""
    (line,) = (line for line in text.splitlines() if line.startswith("{"))
    return CaseRun.model_validate_json(line)


def _output(built: EmulatedProgram, arguments: list[str], extra: dict[str, str]) -> str:
    environment = {
        **os.environ,
        "PTXEMU_MODULE": str(built.module),
        "PTXEMU_DEVICE": str(built.figures),
        "PTXEMU_THREADS": str(THREADS),
        **extra,
    }
    command = [str(built.built.program), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode != 0:
        raise ConformanceFailure(f"{built.source.stem} {' '.join(arguments)}: {done.stderr.strip()[-400:]}")
    return done.stdout


def _digest(built: EmulatedProgram) -> str:
    """Names everything that decides what a case leaves: program, core, module, GPU."""
    if not built.built.program.exists():
        raise CoreFailure(f"{built.built.program} is gone", hint="run the command again")
    content = hashlib.sha256()
    for path in (built.built.program, built.module, built.figures):
        content.update(path.read_bytes())
    return content.hexdigest()[:20]
