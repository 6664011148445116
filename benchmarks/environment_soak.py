"""Plays many episodes against a server of the environment and counts what it still holds afterwards.

    python benchmarks/environment_soak.py [--episodes 10000]

Episodes end in every way: judged, crashed, timed out, hacked, and with a socket that drops during a step. The judge is
not real, so that this is about the server: its slots, threads, files and processes. Needs the extra `env`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "environment"))

from soaking import CAPACITY, WARM_UP, serving, soak

from kernelblaster import environment_problems


def main() -> int:
    """Print what was held before and after; 1 when more than a pool of threads and its files has stayed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--episodes", type=int, default=10_000, help=f"more than {WARM_UP}")
    episodes = parser.parse_args().episodes
    began = time.monotonic()
    with serving(environment_problems()) as served:
        before, after = soak(served, episodes)
    seconds = time.monotonic() - began
    print(json.dumps({"episodes": episodes, "seconds": seconds, "before": asdict(before), "after": asdict(after)}))
    grown = after.threads > before.threads + CAPACITY or after.files > before.files + 3 * CAPACITY
    return int(grown or after.processes > before.processes)


if __name__ == "__main__":
    sys.exit(main())
