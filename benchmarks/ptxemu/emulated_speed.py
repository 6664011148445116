"""Lane instructions per second of the emulated device, kernel by kernel, with every counter on.

    python benchmarks/ptxemu/emulated_speed.py [--threads 2] [--json] [--repeat 3]

A lane instruction is one PTX instruction of one thread. `G/s` is by the wall clock and so falls on a busy machine;
`G/CPU-s` divides by the processor time of all threads. Best of the repetitions. The last line is the assembler's.
With --json each kernel has digests of its output and of its counts, which tell whether two builds of the core agree.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from ptxemu.core.build import BuiltCore, ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.ptx.assembler import assemble
from ptxemu.toolkit import CudaToolkit

SOURCE = Path(__file__).with_suffix(".cu")


def build(core: BuiltCore, directory: Path) -> Path:
    """The program, linked with the stand-in runtime; its module lies beside it."""
    program = directory / "program"
    target = ["-gencode", "arch=compute_90a,code=compute_90a", "-O3", "-w", "--keep", "--keep-dir", str(directory)]
    linking = ["-cudart", "none", f"-L{core.library_dir}", f"-l{core.library_name}"]
    command = [str(CudaToolkit.find().nvcc), *target, str(SOURCE), *linking, "-o", str(program)]
    subprocess.run(command, check=True, cwd=directory, timeout=300)
    (ptx,) = directory.glob("*.ptx")
    assemble(ptx.read_text()).write(directory / "module")
    return program


def measure(core: BuiltCore, program: Path, threads: int) -> list[dict]:
    """One run: per kernel, its lane instructions and its times in seconds."""
    report = program.with_name("report.jsonl")
    report.unlink(missing_ok=True)
    environment = {
        "LD_LIBRARY_PATH": str(core.library_dir), "PTXEMU_MODULE": str(program.with_name("module")),
        "PTXEMU_REPORT": str(report), "PTXEMU_COUNT": "1", "PTXEMU_THREADS": str(threads),
    }  # fmt: skip
    done = subprocess.run([str(program)], env={**os.environ, **environment}, capture_output=True, text=True, check=True)
    records = [one for one in map(json.loads, report.read_text().splitlines()) if "kernel" in one]
    rows = []
    for line, record in zip(done.stdout.splitlines(), records, strict=True):
        name, wall, cpu, output = line.split()
        counts = hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest()[:16]
        rows.append(
            {
                "kernel": name,
                "lanes": record["thread_instructions"],
                "warps": record["warp_instructions"],
                "wall_s": float(wall),
                "cpu_s": float(cpu),
                "output": output,
                "counts": counts,
            }
        )
    return rows


def assembly_ms(program: Path) -> float:
    """Milliseconds of processor time that assembling the program's PTX takes, per 1,000 lines."""
    (ptx,) = program.parent.glob("*.ptx")
    text = ptx.read_text()
    began = time.process_time()
    assemble(text)
    return 1e6 * (time.process_time() - began) / len(text.splitlines())


def main() -> None:
    """Measure, print one line per kernel and the totals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    core = ensure_core(default_cache_dir())
    with TemporaryDirectory() as scratch:
        print("... building", file=sys.stderr)
        program = build(core, Path(scratch))
        runs = [measure(core, program, options.threads) for _ in range(options.repeat)]
        assembly = min(assembly_ms(program) for _ in range(options.repeat))
    rows = [min(same, key=lambda row: row["wall_s"]) for same in zip(*runs, strict=True)]
    least_cpu = [min(row["cpu_s"] for row in same) for same in zip(*runs, strict=True)]
    rows = [{**row, "cpu_s": cpu} for row, cpu in zip(rows, least_cpu, strict=True)]
    if options.json:
        print(json.dumps(rows))
        return
    for row in rows:
        rates = row["lanes"] / row["wall_s"] / 1e9, row["lanes"] / row["cpu_s"] / 1e9
        cost = row["cpu_s"] / row["warps"] * 1e9
        print(f"{row['kernel']:18} {rates[0]:6.2f} G/s  {rates[1]:6.2f} G/CPU-s  {cost:6.1f} ns per warp instruction")
    lanes, wall, cpu = (sum(row[key] for row in rows) for key in ("lanes", "wall_s", "cpu_s"))
    print(f"{'all':18} {lanes / wall / 1e9:6.2f} G/s  {lanes / cpu / 1e9:6.2f} G/CPU-s  ({options.threads} threads)")
    print(f"assembling: {assembly:.1f} ms of processor time per 1,000 lines of PTX")


if __name__ == "__main__":
    main()
