"""What Nsight Compute counts of small launches on a GPU: carve-outs, traffic nobody asked for, retried atomics.

    python benchmarks/ptxemu/small_launches.py [--output FILE.json] [--budget 110]

Profiles the parts of `small_launches.cu` one after the other; the file is written after each, and a part that is there
already is left out the next time, so that a run that is cut off is continued. `occupancy` and `traffic` of the
emulator's model were read off it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.cuda.ncu import NcuFailure, ncu_command, parse_csv, unknown_metrics

SOURCE = Path(__file__).with_suffix(".cu")
OUTPUT = Path(__file__).resolve().parents[2] / "docs" / "results" / "ptxemu_small_launches_h200.json"
_LAUNCH = (
    "launch__shared_mem_config_size",
    "launch__shared_mem_per_block",
    "launch__registers_per_thread",
    "launch__occupancy_limit_shared_mem",
    "launch__occupancy_limit_registers",
    "launch__occupancy_limit_warps",
)
_TRAFFIC = (
    "dram__bytes_read.sum",
    "dram__bytes_write.sum",
    "lts__t_sector_hit_rate.pct",
    "lts__t_sectors.sum",
    "lts__t_sectors_op_read.sum",
    "lts__t_sectors_op_write.sum",
    "lts__t_sectors_srcunit_tex_op_read.sum",
    "lts__t_sectors_srcunit_tex_op_read_lookup_hit.sum",
    "lts__t_sectors_srcunit_tex_op_read_lookup_miss.sum",
    "lts__t_sectors_lookup_hit.sum",
    "lts__t_sectors_lookup_miss.sum",
)
_ATOMICS = (
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed.sum",
    "gpu__time_duration.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_atom.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
    "lts__t_sectors_op_atom.sum",
    "lts__t_sectors_op_read.sum",
)
PARTS = {"atomics": _ATOMICS, "traffic": _TRAFFIC, "carveout": _LAUNCH}


class Capture:
    """The file, part by part."""

    def __init__(self, output: Path, budget_s: float) -> None:
        self._output = output
        self._ends = time.monotonic() + budget_s
        self.tools = Toolchain.find()
        self.content: dict[str, list[dict[str, object]]] = json.loads(output.read_text()) if output.exists() else {}

    @property
    def left_s(self) -> float:
        """Seconds until the budget is used."""
        return self._ends - time.monotonic()

    def keep(self, part: str, rows: list[dict[str, object]]) -> None:
        """Write what one part has found."""
        self.content[part] = rows
        self._output.parent.mkdir(parents=True, exist_ok=True)
        self._output.write_text(json.dumps(self.content, indent=1) + "\n")

    def profile(self, program: Path, part: str) -> list[dict[str, object]]:
        """One row for each launch: its name and metrics. Raises NcuFailure."""
        if self.tools.ncu is None:
            raise NcuFailure("ncu is not installed")
        metrics = list(PARTS[part])
        log = program.with_suffix(f".{part}.csv")
        while True:
            command = [*ncu_command(self.tools.ncu, metrics), "--log-file", str(log), str(program), part]
            done = subprocess.run(command, capture_output=True, text=True, timeout=max(1.0, self.left_s), check=False)
            text = log.read_text(errors="replace") if log.exists() else done.stderr
            unknown = unknown_metrics(text + done.stdout + done.stderr) & set(metrics)
            if not unknown:
                break
            print(f"ncu does not know {', '.join(sorted(unknown))}", file=sys.stderr)
            metrics = [name for name in metrics if name not in unknown]
        names = launched(done.stdout)
        kernels = parse_csv(text, metrics)
        if len(names) != len(kernels):
            raise NcuFailure(f"{len(kernels)} launches were profiled of {len(names)}")
        return [
            {"launch": name, "kernel": one.name, "grid": one.grid, "block": one.block, "metrics": one.metrics}
            for name, one in zip(names, kernels, strict=True)
        ]


def launched(printed: str) -> list[str]:
    """Names of the launches that took place; `refused` stands behind the name of one that did not."""
    names: list[str] = []
    for line in printed.splitlines():
        if line == "refused":
            names.pop()
        elif line and not line.startswith("=="):
            names.append(line)
    return names


def main() -> None:
    """Profile what the file lacks."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--budget", type=float, default=110.0, help="seconds")
    options = parser.parse_args()
    capture = Capture(options.output, options.budget)
    with TemporaryDirectory(prefix="ptxemu-") as scratch:
        program = Path(scratch) / "small_launches"
        build = [str(capture.tools.nvcc), "-O3", "-arch=sm_90a", str(SOURCE), "-o", str(program)]
        subprocess.run(build, check=True)
        for part in PARTS:
            if part in capture.content:
                continue
            try:
                capture.keep(part, capture.profile(program, part))
                print(f"{part}: {len(capture.content[part])} launches", file=sys.stderr)
            except (NcuFailure, subprocess.TimeoutExpired) as failure:
                print(f"{part}: {failure}", file=sys.stderr)
    if missing := sorted(PARTS.keys() - capture.content.keys()):
        sys.exit(f"not captured: {', '.join(missing)}")


if __name__ == "__main__":
    main()
