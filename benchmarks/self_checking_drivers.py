"""What becomes of candidates whose problem is judged by its own libtorch driver, on this machine's GPU.

    python benchmarks/self_checking_drivers.py [--problem DIR] [--sanitize] [CANDIDATE.cu ...]

Without arguments: the fixture of the tests, whose driver is an ordinary one, and its candidates, of which `honest` and
the start are right. One JSON line for each, against the problem's start.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.metrics import Metric
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.problems.loader import load_problem
from kernelblaster.runs.evaluations import open_evaluator

FIXTURE = Path(__file__).resolve().parents[1] / "tests" / "fixtures" / "self_checking"
SHOWN = (Metric.DURATION, Metric.DRAM_READ, Metric.DRAM_WRITE, Metric.SM_THROUGHPUT, Metric.REGISTERS_PER_THREAD)


def summary(found: Evaluation) -> dict[str, object]:
    """What matters of an evaluation, without its samples."""
    compared, profile = found.comparison, found.profile
    return {
        "verdict": found.verdict,
        "reason": found.reason,
        "weakly_verified": found.weakly_verified,
        "median_us": found.timing and found.timing.median_us,
        "interval_us": found.timing and [found.timing.low_us, found.timing.high_us],
        "samples": found.timing and found.timing.samples,
        "against_start": compared and [compared.speedup, compared.low, compared.high, compared.decision],
        "sessions": compared and [one.speedup for one in compared.sessions],
        "profile": profile
        and {
            "source": profile.source,
            "kernels": {one.name: {m.value: one.metrics.get(m) for m in SHOWN} for one in profile.kernels},
            "warnings": profile.warnings,
        },
        "isolation": found.isolation,
        "warnings": found.warnings,
        "seconds": found.seconds,
        "log": found.log[-300:],
    }


def main() -> None:
    """Judge all and print a line each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("candidates", nargs="*", type=Path)
    parser.add_argument("--problem", type=Path, default=FIXTURE / "level1" / "019_ReLU")
    parser.add_argument("--process-pairs", type=int, default=1)
    parser.add_argument("--sanitize", action="store_true", help="Also run the sanitizers on the start: a minute more.")
    options = parser.parse_args()
    problem = load_problem(options.problem)
    start = problem.init_path.read_text()
    files = options.candidates or [problem.init_path, *sorted((FIXTURE / "candidates").glob("*.cu"))]
    config = RunConfig(device="cuda", evaluation=EvaluationConfig(timeout_s=60))
    with open_evaluator(config, lambda _: None) as judge:
        for file in files:
            began = time.perf_counter()
            found = judge.evaluate(problem, file.read_text(), baseline=start, process_pairs=options.process_pairs)
            line = {"candidate": file.name, **summary(found), "wall_s": time.perf_counter() - began}
            print(json.dumps(line), flush=True)
        if not options.sanitize:
            return
        began = time.perf_counter()
        findings = [str(one) for one in judge.sanitize(problem, start)]
        print(json.dumps({"sanitizers": findings[:5], "wall_s": time.perf_counter() - began}), flush=True)


if __name__ == "__main__":
    main()
