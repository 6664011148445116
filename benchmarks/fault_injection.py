"""Disturbs whole runs at every event and at many writes, and counts the runs that end otherwise than a sound one.

    python benchmarks/fault_injection.py [--disk 150] [--at-once 2] [--only WORDS]

For each scenario: killed after every event, then killed before, torn inside and refused room at so many calls that
change a file, spread evenly over the run. No GPU and no nvcc are needed; a C compiler is.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "evaluation"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "faults"))

import fault_runs
from fault_runs import Bench
from fault_starts import Disk, Fault
from test_killed_runs import BY_FILES, MANY_CHAINS, ONE_CHAIN

SCENARIOS = {"one chain": ONE_CHAIN, "two problems, three rollouts each": MANY_CHAINS, "replies by file": BY_FILES}


def spread(calls: int, points: int) -> list[int]:
    """So many numbers from 1 to `calls`, evenly."""
    return sorted({1 + place * (calls - 1) // max(1, points - 1) for place in range(points)})


def main() -> None:
    """Parse the command line, disturb, and print one line per scenario and kind of fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--disk", type=int, default=150)
    parser.add_argument("--at-once", type=int, default=2)
    parser.add_argument("--only", default="", help="scenarios whose name holds this")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as root:
        library = Path(root, "disk_faults.so")
        source = Path(fault_runs.__file__).with_name("disk_faults.c")
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
        with Bench(library, arguments.at_once) as workspace:
            chosen = {name: scenario for name, scenario in SCENARIOS.items() if arguments.only in name}
            for number, (name, scenario) in enumerate(chosen.items()):
                sound = workspace.undisturbed(scenario, Path(root, str(number), "sound"))
                kinds = {"killed after an event": [Fault(event=event) for event in range(1, sound.events + 1)]}
                for how in (Disk.KILL, Disk.TEAR, Disk.FULL):
                    places = spread(sound.disk_calls, arguments.disk)
                    kinds[f"disk: {how.name.lower()}"] = [Fault(disk=how, at=place) for place in places]
                for kind, faults in kinds.items():
                    began = time.monotonic()
                    odd = workspace.differences(sound, Path(root, str(number), kind.replace(" ", "-")), faults)
                    seconds = time.monotonic() - began
                    print(f"{name}, {kind}: {len(faults)} runs, {len(odd)} differ, {seconds:.0f} s", flush=True)
                    for fault, found in odd.items():
                        print(f"  {fault.name}: {found[0][:300]}", flush=True)


if __name__ == "__main__":
    main()
