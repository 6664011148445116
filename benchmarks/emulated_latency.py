"""Seconds per candidate on the emulated device, beyond nvcc: verify with 5 input sets, count, model.

    python benchmarks/emulated_latency.py [--problem-numbers 1,4,...] [--subset level1,level2,level3] [--json]

Every problem's start is evaluated at size small, fp16, in one process. The first evaluation of a problem also draws its
input sets and computes their references; the second, of the same kernel with a comment appended, is the figure for a
candidate. The build is listed apart: it is nvcc's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys

from kernelblaster.config import RunConfig
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.runs.single import open_evaluator


def say(stage: str) -> None:
    """Progress on standard error."""
    print(f"... {stage}", file=sys.stderr)


def main() -> None:
    """Measure, print one line per problem and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem-numbers", default=None)
    parser.add_argument("--subset", default=None)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    problems = Dataset(data_dir() / "kernelbench-cuda").select(subset=options.subset, numbers=options.problem_numbers)
    rows = []
    with open_evaluator(RunConfig(device="emulated"), say) as evaluator:
        for problem in problems:
            start = problem.init_path.read_text(encoding="utf-8")
            evaluator.evaluate(problem, start)
            evaluation = evaluator.evaluate(problem, f"{start}\n// again\n", rival=start)
            stages = evaluation.seconds
            beyond = sum(seconds for stage, seconds in stages.items() if stage != "build")
            rows.append({"problem": str(problem.id), "verdict": evaluation.verdict, "beyond_nvcc_s": beyond, **stages})
            if not options.json:
                print(f"{problem.id} {evaluation.verdict}: {beyond:.2f} s beyond nvcc, build {stages['build']:.2f} s")
    if options.json:
        print(json.dumps(rows))
        return
    figures = [row["beyond_nvcc_s"] for row in rows]
    print(f"median {statistics.median(figures):.2f} s, worst {max(figures):.2f} s, n = {len(figures)}")


if __name__ == "__main__":
    main()
