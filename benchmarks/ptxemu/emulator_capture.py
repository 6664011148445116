"""What a real GPU does with the conformance programs: outputs, times and Nsight Compute metrics, into one file.

    python benchmarks/ptxemu/emulator_capture.py [--output FILE.json.gz] [--samples 30] [--budget 440]
    python benchmarks/ptxemu/emulator_capture.py --missing --again copies:copy_float4 --output FILE.json.gz

Builds every program of `tests/conformance/kernels` with nvcc, then runs them one after the other: outputs and times of
all of them first, then their metrics. What fails is named in the file and on standard error and does not stop the rest;
the file is written again after each program, so that a run that is cut off leaves what it had. `--budget` bounds the
whole in seconds. `benchmarks/ptxemu/emulator_calibration.py` compares the emulated device with the file.

With `--missing` only programs are captured of which the capture of the tests has no case, or cases that were timed and
not profiled, which are replaced. Its other rows are written as they are, and the new ones beside them with the facts of
the session that they come from; the cases that `--again` names (otherwise those that the latest session named) are
captured once more and kept apart, which tells how far two sessions differ.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "conformance"))

from conformance_suite import (
    CAPTURE,
    FORMAT,
    KERNELS,
    MARKER,
    Capture,
    CapturedCase,
    CaseRun,
    Kernel,
    LaterSession,
    programs,
    read_capture,
    write_capture,
)
from pydantic import ValidationError

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.cuda.ncu import NcuFailure, ncu_command, parse_csv, unknown_metrics
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile

ARCH = "sm_90a"
_PIPES = ("alu", "cbu", "adu", "fma", "fmaheavy", "fmalite", "fp16", "fp64", "lsu", "tensor", "tma", "uniform", "xu")
_STALLS = ("branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss", "membar", "no_instruction",
           "not_selected", "selected", "sleeping", "tex_throttle", "misc")  # fmt: skip
EXTRA = (
    "smsp__thread_inst_executed.sum",
    "smsp__inst_issued.sum",
    "smsp__inst_executed_op_branch.sum",
    "smsp__cycles_active.avg",
    "sm__cycles_active.avg",
    "sm__cycles_active.max",
    "sm__cycles_elapsed.avg.per_second",
    "dram__cycles_elapsed.avg.per_second",
    "smsp__warps_launched.sum",
    "l1tex__data_pipe_lsu_wavefronts.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_lg.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    "lts__t_sectors_srcunit_tex.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_write.sum",
    "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
    "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum",
    "lts__t_sectors_op_atom.sum",
    "lts__t_sectors_op_red.sum",
    "lts__t_requests_srcunit_tex.sum",
    "smsp__warps_active.sum",
    *(f"l1tex__m_xbar2l1tex_read_{what}_mem_global_op_tma_ld.sum" for what in ("bytes", "sectors")),
    *(f"l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_{what}.sum" for what in ("st", "red")),
    "l1tex__m_xbar2l1tex_read_bytes_pipe_tma.sum",
    "l1tex__m_l1tex2xbar_write_bytes_pipe_tma.sum",
    "smsp__l1tex_tmain_requests.sum",
    *(f"smsp__sass_inst_executed_op_tma{what}.sum" for what in ("", "_ld", "_st", "_red")),
    "sm__pipe_tma_cycles_active.avg.pct_of_peak_sustained_active",
    *(f"sm__inst_executed_pipe_tensor_op_{kind}.sum" for kind in ("gmma", "hmma", "imma", "dmma")),
    "sm__pipe_tensor_op_gmma_cycles_active.avg.pct_of_peak_sustained_active",
    "smsp__inst_executed_op_shared_atom.sum",
    "smsp__inst_executed_op_shared_atom_dot_alu.sum",
    "smsp__inst_executed_op_shared_atom_dot_cas.sum",
    *(f"l1tex__data_bank_conflicts_pipe_lsu_mem_shared{what}.sum" for what in ("", "_op_atom", "_op_red")),
    *(f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{what}.sum" for what in ("atom", "red")),
    *(f"lts__t_sectors_op_{what}_lookup_{how}.sum" for what in ("read", "write") for how in ("hit", "miss")),
    *(f"sm__inst_executed_pipe_{pipe}.sum" for pipe in _PIPES),
    *(f"smsp__average_warps_issue_stalled_{why}_per_issue_active.ratio" for why in _STALLS),
)
"""Metrics beyond the product's, which tell where counted PTX and executed machine code part."""


def say(text: str) -> None:
    """Progress on standard error."""
    print(f"[{time.monotonic() - START:6.1f} s] {text}", file=sys.stderr, flush=True)


START = time.monotonic()


@dataclass
class Session:
    """One capture under way."""

    tools: Toolchain
    scratch: Path
    budget_s: float
    metrics: list[str] = field(default_factory=lambda: [*(metric.value for metric in Metric), *EXTRA])
    failures: list[str] = field(default_factory=list)

    @property
    def left_s(self) -> float:
        """Seconds until the budget is used."""
        return self.budget_s - (time.monotonic() - START)

    def fail(self, text: str) -> None:
        """Note a failure and go on."""
        self.failures.append(text)
        say(f"FAILED {text}")

    def run(self, argv: list[str], what: str, timeout_s: float) -> str | None:
        """Standard output of a command; None, with the failure noted, when it did not end well."""
        try:
            done = subprocess.run(argv, capture_output=True, text=True, timeout=max(1.0, timeout_s), check=False)
        except subprocess.TimeoutExpired:
            self.fail(f"{what}: more than {timeout_s:.0f} s")
            return None
        if done.returncode != 0:
            self.fail(f"{what}: exit code {done.returncode}: {(done.stderr or done.stdout).strip()[-400:]}")
            return None
        return done.stdout


def build(session: Session, program: str) -> Path | None:
    """The compiled program."""
    target = session.scratch / program
    target_of = f"-gencode=arch={ARCH.replace('sm', 'compute')},code={ARCH}"
    argv = [str(session.tools.nvcc), "-O3", "-std=c++17", target_of, "-lineinfo", str(KERNELS / f"{program}.cu")]
    built = session.run([*argv, "-o", str(target)], f"building {program}", min(240.0, session.left_s))
    return None if built is None else target


def opcodes(session: Session, program: Path) -> dict[str, str]:
    """Kernel -> machine opcodes in order; nothing where there is no cuobjdump."""
    if session.tools.cuobjdump is None:
        return {}
    text = session.run([str(session.tools.cuobjdump), "-sass", str(program)], f"listing {program.name}", 60.0)
    found: dict[str, str] = {}
    for part in re.split(r"^\s*Function : ", text or "", flags=re.MULTILINE)[1:]:
        name = part.split("\n", 1)[0].strip()
        lines = re.findall(r"/\*[0-9a-f]{4,}\*/\s+([^;]*);", part)
        words = [re.sub(r"^@!?U?P\w+\s+", "@", line.strip()).split()[0] for line in lines if line.strip()]
        found[name] = " ".join(words)
    return found


def runs(session: Session, program: Path, samples: int, only: Sequence[str] = ()) -> list[CaseRun]:
    """Outputs and times of every case, or of those named. A program that fails is tried case by case."""
    timed = [str(program), "run", "--time", str(samples), *_only(only)]
    text = session.run(timed, f"running {program.name}", min(120.0, session.left_s))
    if text is None:
        names = only or (session.run([str(program), "list"], f"listing {program.name}", 30.0) or "").split()
        parts = [session.run([*timed, "--only", name], f"running {name}", min(30.0, session.left_s)) for name in names]
        text = "".join(part for part in parts if part is not None)
    return case_runs(session, program.name, text)


def case_runs(session: Session, program: str, text: str) -> list[CaseRun]:
    """The cases among the lines of a program; one that does not read is noted, and lines that kernels print are not."""
    found = []
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            found.append(CaseRun.model_validate_json(line))
        except ValidationError as error:
            session.fail(f"reading a case of {program}: {error.errors()[0]['msg']}: {line[:80]}")
    return found


def _only(names: Sequence[str]) -> list[str]:
    """Arguments that restrict a program to some of its cases."""
    return [word for name in names for word in ("--only", name)]


def profiled(session: Session, argv: list[str], what: str, timeout_s: float) -> list[KernelProfile] | None:
    """Launches as ncu sees them. Metrics that this ncu does not know are left out from then on."""
    log = session.scratch / "ncu.csv"
    ncu = session.tools.ncu
    if ncu is None:
        session.fail(f"profiling {what}: ncu is not installed")
        return None
    for _ in range(12):
        log.unlink(missing_ok=True)
        command = [*ncu_command(ncu, session.metrics), "--log-file", str(log), *argv]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(1.0, timeout_s), check=False)
        except subprocess.TimeoutExpired:
            session.fail(f"profiling {what}: more than {timeout_s:.0f} s")
            return None
        text = log.read_text(errors="replace") if log.exists() else done.stdout + done.stderr
        unknown = unknown_metrics(text + done.stdout + done.stderr) & set(session.metrics)
        if not unknown:
            break
        say(f"ncu does not know {', '.join(sorted(unknown))}")
        session.metrics = [name for name in session.metrics if name not in unknown]
    try:
        return parse_csv(text, session.metrics)
    except (NcuFailure, ValueError, KeyError) as error:
        session.fail(f"profiling {what}: {error}")
        return None


def by_case(kernels: list[KernelProfile]) -> dict[int, list[Kernel]]:
    """Number of a case -> its launches, told apart by the markers between them."""
    found: dict[int, list[Kernel]] = {}
    number = -1
    for one in kernels:
        if MARKER in one.name:
            number = one.grid[0] - 1
            found[number] = []
        elif number >= 0:
            found[number].append(Kernel(name=one.name, grid=one.grid, block=one.block, metrics=one.metrics))
    return found


def profiles(
    session: Session, program: Path, cases: list[CaseRun], only: Sequence[str] = ()
) -> dict[int, list[Kernel]]:
    """Launches of every case, or of those named; case by case when they cannot be profiled together."""
    argv = [str(program), "run", *_only(only)]
    whole = profiled(session, argv, program.name, min(150.0, session.left_s - 15.0))
    if whole is not None:
        return by_case(whole)
    if session.tools.ncu is None:
        return {}
    found: dict[int, list[Kernel]] = {}
    for one in cases:
        if session.left_s < 30.0:
            session.fail(f"profiling {one.case}: no time left")
            continue
        alone = profiled(session, [str(program), "run", "--only", one.case], one.case, min(40.0, session.left_s - 15.0))
        found |= by_case(alone or [])
    return found


def device(session: Session) -> dict[str, str]:
    """Facts of the GPU, its driver and the tools."""
    names = ["name", "driver_version", "clocks.sm", "clocks.mem", "clocks.max.sm", "temperature.gpu", "memory.total"]
    smi = shutil.which("nvidia-smi")
    facts = {"nvcc": session.tools.version_text}
    if session.tools.ncu is not None:
        version = session.run([str(session.tools.ncu), "--version"], "asking ncu", 30.0) or ""
        facts["ncu"] = version.strip().splitlines()[-1] if version.strip() else ""
    if smi is not None:
        query = [smi, f"--query-gpu={','.join(names)}", "--format=csv,noheader", "--id=0"]
        text = session.run(query, "asking nvidia-smi", 30.0) or ""
        facts |= dict(zip(names, (part.strip() for part in text.split(",")), strict=False))
    return facts


def capture(session: Session, options: argparse.Namespace) -> Capture:
    """Build, run, profile; the file is written after every program."""
    known = read_capture() if options.missing else None
    captured = {case.program for case in known.cases} - _unprofiled(known) if known else set()
    names = [name for name in programs() if name not in captured and (not options.only or name in options.only)]
    again = _by_program(options.again or _repeated_before(known))
    with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
        wanted = [*names, *(name for name in again if name not in names)]
        built = [program for program in pool.map(lambda name: build(session, name), wanted) if program is not None]
        say(f"built {len(built)} of {len(wanted)} programs")
        sass = {program.name: listing for program, listing in zip(built, pool.map(
            lambda program: opcodes(session, program), built), strict=True)}  # fmt: skip
    facts = device(session)
    repeated = [program for program in built if program.name in again]
    fresh = [program for program in built if program.name in names]
    old = {program: runs(session, program, options.samples, again[program.name]) for program in repeated}
    cases: dict[Path, list[CaseRun]] = {}
    launches: dict[Path, dict[int, list[Kernel]]] = {}

    def state() -> Capture:
        found = Capture(
            format=FORMAT,
            device=facts,
            compile_arch=ARCH,
            cases=_captured(cases, launches),
            failures=session.failures,
            sass={name: listing for name, listing in sass.items() if name in names},
        )
        return found if known is None else _added(known, found, _captured(old, launches))

    for program in fresh:
        say(f"timing {program.name}")
        cases[program] = runs(session, program, options.samples)
        write_capture(state(), options.output)
    for program in (*fresh, *repeated):
        if session.left_s < 30.0:
            session.fail(f"profiling {program.name}: no time left")
            continue
        say(f"profiling {program.name}")
        launches[program] = profiles(session, program, [*old.get(program, []), *cases.get(program, [])],
                                     again.get(program.name, ()))  # fmt: skip
        write_capture(state(), options.output)
    ended = state()
    write_capture(ended, options.output)  # with what failed since
    return ended


def _repeated_before(known: Capture | None) -> list[str]:
    """What the latest session that added something has captured once more: without any, sessions cannot be compared."""
    later = known.later[-1:] if known else []
    return [f"{one.program}:{one.run.case}" for session in later for one in session.again]


def _unprofiled(known: Capture) -> set[str]:
    """Programs of which no case was profiled, or not every one: they are captured anew."""
    return {case.program for case in known.cases if not case.kernels}


def _by_program(chosen: Sequence[str]) -> dict[str, list[str]]:
    """Program -> cases of `PROGRAM:CASE` arguments."""
    found: dict[str, list[str]] = {}
    for one in chosen:
        program, _, case = one.partition(":")
        found.setdefault(program, []).append(case)
    return found


def _captured(
    cases: Mapping[Path, Sequence[CaseRun]], launches: Mapping[Path, Mapping[int, list[Kernel]]]
) -> list[CapturedCase]:
    return [
        CapturedCase(program=program.name, run=run, kernels=launches.get(program, {}).get(run.number, []))
        for program, found in cases.items()
        for run in found
    ]


def _added(known: Capture, found: Capture, again: list[CapturedCase]) -> Capture:
    """What was known, with what this session has found beside it."""
    anew = {one.program for one in found.cases}
    session = LaterSession(device=found.device, programs=sorted(anew), again=again)
    return known.model_copy(
        update={
            "cases": [*(one for one in known.cases if one.program not in anew), *found.cases],
            "failures": [
                *(one for one in known.failures if not any(f" {name}:" in one for name in anew)),
                *found.failures,
            ],
            "sass": known.sass | found.sass,
            "later": [*known.later, session],
        }
    )


def main() -> None:
    """Capture, write, and tell how much there is."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=CAPTURE)
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--budget", type=float, default=440.0)
    parser.add_argument("--only", action="append", help="a program; may be given several times")
    parser.add_argument(
        "--missing", action="store_true", help="add the programs that the known capture lacks or has no profiles of"
    )
    parser.add_argument("--again", action="append", default=[], metavar="PROGRAM:CASE", help="with --missing")
    options = parser.parse_args()
    with TemporaryDirectory(prefix="kernelblaster-") as scratch:
        session = Session(Toolchain.find(), Path(scratch), options.budget)
        found = capture(session, options)
    bytes_written = options.output.stat().st_size
    complete = sum(1 for one in found.cases if one.kernels)
    say(f"{len(found.cases)} cases, {complete} profiled, {len(found.failures)} failures, {bytes_written} bytes")
    sys.exit(0 if found.cases else 1)


if __name__ == "__main__":
    main()
