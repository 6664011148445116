"""Seconds per candidate on the emulated device, beyond nvcc: verify with 5 input sets, count, model.

    python benchmarks/emulated_latency.py [--size medium] [--problem-numbers 1,4,...] [--subset level1,level2] [--json]

Every problem's start is evaluated at one size, fp16, in one process. The first evaluation of a problem also draws its
input sets and computes their references; the second, of the same kernel with a comment appended, is the figure for a
candidate. The build is listed apart: it is nvcc's.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys

from kernelblaster.config import RunConfig
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.problem import StandardWorkload
from kernelblaster.runs.evaluations import open_evaluator


def say(stage: str) -> None:
    """Progress on standard error."""
    print(f"... {stage}", file=sys.stderr)


def beyond_nvcc(evaluation: Evaluation) -> float:
    """Seconds of all stages but the build."""
    return sum(seconds for stage, seconds in evaluation.seconds.items() if stage != "build")


def main() -> None:
    """Measure, print one line per problem and the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problem-numbers", default=None)
    parser.add_argument("--subset", default=None)
    parser.add_argument("--size", type=StandardWorkload, default=StandardWorkload.SMALL)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    problems = Dataset(data_dir() / "kernelbench-cuda").select(subset=options.subset, numbers=options.problem_numbers)
    rows = []
    with open_evaluator(RunConfig(device="emulated", size=options.size), say) as evaluator:
        for problem in problems:
            start = problem.init_path.read_text(encoding="utf-8")
            first = beyond_nvcc(evaluator.evaluate(problem, start))
            evaluation = evaluator.evaluate(problem, f"{start}\n// again\n", baseline=start)
            beyond, build = beyond_nvcc(evaluation), evaluation.seconds["build"]
            share = evaluation.timing.executed_share if evaluation.timing else None
            blocks = "none" if share is None else f"{share:.3g}"
            rows.append(
                {
                    "problem": str(problem.id),
                    "verdict": evaluation.verdict,
                    "first_beyond_nvcc_s": first,
                    "beyond_nvcc_s": beyond,
                    "executed_share": share,
                    **evaluation.seconds,
                }
            )
            if not options.json:
                print(
                    f"{problem.id} {evaluation.verdict}: {beyond:.2f} s beyond nvcc, build {build:.2f} s; "
                    f"with inputs to be drawn {first:.2f} s; share of blocks {blocks}",
                    flush=True,
                )
    if options.json:
        print(json.dumps(rows))
        return
    figures = [row["beyond_nvcc_s"] for row in rows]
    firsts = [row["first_beyond_nvcc_s"] for row in rows]
    print(f"with inputs to be drawn: median {statistics.median(firsts):.2f} s, worst {max(firsts):.2f} s")
    print(f"median {statistics.median(figures):.2f} s, worst {max(figures):.2f} s, n = {len(figures)}")


if __name__ == "__main__":
    main()
