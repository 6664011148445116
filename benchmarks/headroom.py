"""Makes data/baselines/h200/headroom.json: how much a well-written kernel should gain over each problem's start.

    python benchmarks/headroom.py [RECORDS...]

Records are those of `problems check` on an H200 at size full: the shipped ones, and RECORDS, which count where both
speak. A row that was made with other files of its problem than the present ones is left out. Of several precisions the
first in which a problem is meant counts. Needs no GPU: what is attainable is reckoned from an H200's figures.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from kernelblaster import RunConfig
from kernelblaster.api.evaluating import open_evaluator
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.environment.headroom import Headroom, HeadroomTable, headroom_path
from kernelblaster.evaluation.attainable import attainable
from kernelblaster.evaluation.results import Verdict
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.problems.start import read_start
from kernelblaster.runs.problem_checks import CheckRecord, problem_digest, read_checks
from kernelblaster.storage.atomic import write_atomically

GPU, WORKLOAD = "NVIDIA H200", StandardWorkload.FULL
DATASETS = ("kernelbench-cuda", "kernrl")
Known = Mapping[tuple[str, Precision], CheckRecord]
"""The start's record by the digest of the problem's files."""


def main() -> None:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="*", type=Path)
    known = known_starts(parser.parse_args().records)
    with open_evaluator(RunConfig(device=DeviceKind.EMULATED, gpu_type="h200")) as evaluator:
        facts = evaluator.facts
    problems = [problem for name in DATASETS for problem in Dataset(data_dir() / name).problems()]
    found = {problem.definition_digest: one for problem in problems for one in headrooms(problem, known, facts)}
    table = HeadroomTable(gpu=GPU, workload=WORKLOAD, problems=dict(sorted(found.items())))
    write_atomically(headroom_path(), table.model_dump_json(indent=1).encode() + b"\n")
    print(f"{len(found)} of {len({problem.definition_digest for problem in problems})} problems")


def known_starts(files: list[Path]) -> Known:
    """Records of starts that are correct on an H200, the shipped ones first."""
    shipped = sorted((data_dir() / "baselines" / "h200" / "starts").glob("*.jsonl"))
    records = [record for file in (*shipped, *files) for record in read_checks(file)]
    timed = [one for one in records if one.verdict == Verdict.CORRECT and one.median_us is not None]
    return {(one.digest, one.precision): one for one in timed if (one.device, one.workload) == (GPU, WORKLOAD)}


def headrooms(problem: Problem, known: Known, facts: DeviceFacts) -> Iterator[Headroom]:
    """That of a problem in the first precision in which its present start was measured; none where it was in none."""
    digest = problem_digest(problem, read_start(problem))
    for precision in problem.precisions:
        record = known.get((digest, precision))
        if record is not None and record.median_us is not None:
            yield Headroom(
                problem=str(problem.id),
                name=problem.name,
                precision=precision,
                start_us=round(record.median_us, 2),
                attainable_us=round(attainable(problem, WORKLOAD, precision, facts).us, 3),
            )
            return


if __name__ == "__main__":
    main()
