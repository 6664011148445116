"""Runs the planted programs under compute-sanitizer, and compares its verdicts with those of the emulated device.

    python benchmarks/ptxemu/sanitizer_agreement.py capture FILE      # on a machine with a GPU and compute-sanitizer
    python benchmarks/ptxemu/sanitizer_agreement.py compare FILE      # anywhere with nvcc

`capture` runs every case of tests/ptxemu/program/planted under memcheck, initcheck, racecheck and synccheck, and
writes what each found. `compare` runs the same cases on the emulated device and prints one line per case. A case agrees
when both call it clean, or both find something with the tool that its bug belongs to.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.cuda.sanitizer import TOOLS, parse_report, sanitizer_command, tool_failure
from ptxemu.program.run import EmulatedProgram, Streams

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "ptxemu" / "program"))
from planted_programs import PlantedCase, captured_tools, planted_cases

TIMEOUT_S = 30


def main() -> None:
    """Capture or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("capture", "compare"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--jobs", type=int, default=8, help="cases under compute-sanitizer at once")
    options = parser.parse_args()
    if options.action == "capture":
        capture(options.file, options.jobs)
    else:
        compare(options.file)


def capture(file: Path, jobs: int) -> None:
    """Write what compute-sanitizer finds. Cases that hang are stopped, and say so."""
    tools = Toolchain.find()
    if tools.sanitizer is None:
        raise SystemExit("compute-sanitizer was not found")
    cases = planted_cases()
    with TemporaryDirectory(prefix="kernelblaster-") as scratch:
        programs = _build(tools, {case.program for case in cases}, Path(scratch))
        work = [(case, tool) for case in cases for tool in TOOLS]
        with ThreadPoolExecutor(jobs) as pool:
            results = list(pool.map(lambda pair: _sanitize(tools.sanitizer, programs, Path(scratch), *pair), work))
    found: dict[str, dict[str, object]] = {}
    for (case, tool), result in zip(work, results, strict=True):
        found.setdefault(str(case), {})[tool] = result
    document = {"gpu": _first_line(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]),
                "sanitizer": _first_line([str(tools.sanitizer), "--version"], -1),
                "nvcc": tools.version_text, "cases": found}  # fmt: skip
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    print(f"{len(cases)} cases, {len(work)} runs -> {file}")


def _build(tools: Toolchain, sources: set[Path], scratch: Path) -> dict[Path, Path]:
    """Programs for the GPU of this machine."""

    def build(source: Path) -> tuple[Path, Path]:
        target = scratch / source.stem
        command = [str(tools.nvcc), "-arch=native", "-O3", "-std=c++17", "-lineinfo", str(source), "-o", str(target)]
        subprocess.run(command, check=True, timeout=300)
        return source, target

    with ThreadPoolExecutor(4) as pool:
        return dict(pool.map(build, sorted(sources)))


def _sanitize(
    sanitizer: Path, programs: dict[Path, Path], scratch: Path, case: PlantedCase, tool: str
) -> dict[str, object]:
    """Findings of one tool over one case, what the program printed, and whether it hung or the tool failed."""
    log = scratch / f"{case.program.stem}-{case.name}-{tool}.log"
    command = [*sanitizer_command(sanitizer, tool, log), str(programs[case.program]), case.name]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        printed, hung = process.communicate(timeout=TIMEOUT_S)[0], False
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        printed, hung = process.communicate()[0], True
    text = log.read_text(errors="replace") if log.exists() else ""
    result: dict[str, object] = {
        "findings": [finding.model_dump(exclude={"tool"}) for finding in parse_report(tool, text)],
        "printed": printed.strip()[-200:],
    }
    if hung:
        result["hung"] = True
    if failure := tool_failure(text) or (None if text or hung else "it wrote no report"):
        result["failure"] = failure
    return result


def _first_line(command: list[str], which: int = 0) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    lines = done.stdout.strip().splitlines()
    return lines[which].strip() if lines else "unknown"


def compare(file: Path) -> None:
    """Print both verdicts of every case, and how many agree."""
    captured = json.loads(file.read_text(encoding="utf-8"))
    programs = {source: EmulatedProgram.build(source) for source in {case.program for case in planted_cases()}}
    quiet = Streams(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    agreeing = 0
    for case in planted_cases():
        findings = programs[case.program].run([case.name], timeout_s=TIMEOUT_S, checks=True, streams=quiet).findings
        emulated = sorted({finding.tool for finding in findings or ()})
        real = captured_tools(captured["cases"][str(case)])
        agree = emulated == real or (case.tool in emulated and case.tool in real)
        agreeing += agree
        print(f"{'agree ' if agree else 'DIFFER'} {case!s:45} {_list(emulated):24} {captured['gpu']}: {_list(real)}")
    print(f"{agreeing} of {len(planted_cases())} agree")


def _list(tools: list[str]) -> str:
    return ", ".join(tools) or "clean"


if __name__ == "__main__":
    main()
