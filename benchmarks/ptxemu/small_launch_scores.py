"""Small launches on the emulator beside those that were captured on an H200: errors per class of launch.

    python benchmarks/ptxemu/small_launch_scores.py        # prints the tables of docs/emulator_scores.md

A class is what `small_launches.cu` calls its launches: the first word of a launch's name, and the type of sums. The
program runs here now; the capture is `docs/results/ptxemu_small_launches_h200.json`.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from calibration_page import spearman
from small_launches import OUTPUT, SOURCE, launched

import ptxemu

LEAST = {"dram": 2_000_000.0, "lts": 10_000.0}
"""What counts at least in the denominator of an error, as on the page of the calibration."""
TRAFFIC = {
    "L2 read sectors": "lts__t_sectors_op_read.sum",
    "L2 write sectors": "lts__t_sectors_op_write.sum",
    "DRAM bytes read": "dram__bytes_read.sum",
    "DRAM bytes written": "dram__bytes_write.sum",
}
SUMS = {"warp instructions": "smsp__inst_executed.sum", "time": "gpu__time_duration.sum"}
_TIMEOUT_S = 600.0


@dataclass(frozen=True)
class Launched:
    """One launch on both sides: Nsight's metrics by name."""

    name: str
    real: Mapping[str, float]
    emulated: Mapping[str, float]

    @property
    def kind(self) -> str:
        """`copy`, or `add half`."""
        words = self.name.split()
        return " ".join(words[:2]) if words[0] == "add" else words[0]

    def error(self, metric: str) -> float:
        """|emulated - real| / real; small values count as `LEAST` of them."""
        real = self.real[metric]
        return abs(self.emulated[metric] - real) / max(real, LEAST[metric.split("_")[0]])

    def factor(self, metric: str) -> float:
        """By how much it is too much or too little, 1 at best."""
        real, emulated = self.real[metric], self.emulated[metric]
        return max(real / emulated, emulated / real)


def launches(part: str) -> list[Launched]:
    """All launches of a part of the program, `traffic` or `atomics`, in its order."""
    captured = json.loads(OUTPUT.read_text(encoding="utf-8"))[part]
    with tempfile.TemporaryFile() as told:
        streams = ptxemu.Streams(stdout=told, stderr=subprocess.DEVNULL)
        result = ptxemu.build(SOURCE).run([part], timeout_s=_TIMEOUT_S, streams=streams)
        told.seek(0)
        names = launched(told.read().decode())
    if result.exit_code != 0 or names != [one["launch"] for one in captured] or len(result.launches) != len(names):
        raise SystemExit(f"{part}: the program and its capture are not of the same launches")
    return [
        Launched(one["launch"], one["metrics"], here.metrics)
        for one, here in zip(captured, result.launches, strict=True)
    ]


def by_kind(found: Sequence[Launched]) -> dict[str, list[Launched]]:
    """Launches by their class, in the order of the program."""
    kinds: defaultdict[str, list[Launched]] = defaultdict(list)
    for one in found:
        kinds[one.kind].append(one)
    return dict(kinds)


def traffic_table(found: Sequence[Launched]) -> list[str]:
    """Median and worst error of each counter, per class and of all."""
    lines = [f"| launches | how many | {' | '.join(TRAFFIC)} |", "|---|" + "---|" * (1 + len(TRAFFIC))]
    for kind, ones in [*by_kind(found).items(), ("all", list(found))]:
        errors = [[100 * one.error(metric) for one in ones] for metric in TRAFFIC.values()]
        cells = [f"{statistics.median(one):.1f} %, {max(one):.1f} %" for one in errors]
        lines.append(f"| {kind} | {len(ones)} | {' | '.join(cells)} |")
    return lines


def sums_table(found: Sequence[Launched]) -> list[str]:
    """Median and worst factor, and how well the order of times is kept, per type and of all."""
    lines = [f"| sums of | how many | {' | '.join(SUMS)} | Spearman of time |", "|---|" + "---|" * (2 + len(SUMS))]
    for kind, ones in [*by_kind(found).items(), ("all", list(found))]:
        factors = [[one.factor(metric) for one in ones] for metric in SUMS.values()]
        cells = [f"{statistics.median(one):.2f}, {max(one):.2f}" for one in factors]
        lines.append(
            f"| {kind.removeprefix('add ')} | {len(ones)} | {' | '.join(cells)} | {_order_of_times(ones):.3f} |"
        )
    return lines


def _order_of_times(ones: Sequence[Launched]) -> float:
    times = SUMS["time"]
    return spearman([one.real[times] for one in ones], [one.emulated[times] for one in ones])


def main() -> None:
    """Print both tables."""
    print("\n".join([*traffic_table(launches("traffic")), "", *sums_table(launches("atomics"))]))


if __name__ == "__main__":
    main()
