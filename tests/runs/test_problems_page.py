"""The page on problems keeps what it said where no record says more, unless files have changed since."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.start import read_start
from kernelblaster.runs.check_records import CheckRecord, problem_digest
from kernelblaster.runs.problem_audits import CHECKS, AuditRecord, audit_digest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from problems_page import STALE, Column, EarlierPage, audited, page, table

NUMBERS = (19, 20)
HALF = Column("NVIDIA H200", "fp16", "full")


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    root = tmp_path / "set"
    for source in (data_dir() / "kernelbench-cuda" / "level1").iterdir():
        if int(source.name[:3]) in NUMBERS:
            shutil.copytree(source, root / "level1" / source.name)
    return root


def judged(problem: Problem, precision: Precision) -> CheckRecord:
    return CheckRecord(
        problem=str(problem.id),
        name=problem.name,
        precision=precision,
        workload=HALF.workload,
        device=HALF.device,
        device_kind=DeviceKind.CUDA,
        digest=problem_digest(problem, read_start(problem)),
        verdict="correct",
        median_us=12.5,
        low_us=12.4,
        high_us=12.6,
        seconds=1.0,
        at=0.0,
    )


def cells(problems: list[Problem], records: list[CheckRecord], earlier: EarlierPage) -> list[list[str]]:
    rows = list(table(problems, records, earlier))[2:]
    return [[part.strip() for part in row.strip("|").split("|")][3:] for row in rows]


def test_a_page_that_is_replaced_leaves_what_records_do_not_say(dataset: Path) -> None:
    first, second = problems = list(Dataset(dataset).problems())
    written = dataset.parent / "page.md"
    records = [judged(problem, Precision.FP16) for problem in problems]
    written.write_text("\n".join(page(problems, records, EarlierPage())))
    git = ["git", "-C", str(dataset.parent), "-c", "user.name=t", "-c", "user.email=t@example.invalid"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "page"]):
        subprocess.run([*git, *command], check=True)
    second.reference_path.write_text(second.reference_path.read_text() + "\n# changed\n")

    problems = list(Dataset(dataset).problems())
    earlier = EarlierPage.read(written, dataset)
    assert earlier.columns == {HALF}
    said = "12.5 [12.4, 12.6]"
    assert cells(problems, [judged(first, Precision.FP32)], earlier) == [[said, said], [STALE, "-"]]
    assert cells(problems, records, EarlierPage()) == [[said], [STALE]]


def test_an_audit_speaks_for_the_references_that_it_saw(dataset: Path) -> None:
    first, second = problems = list(Dataset(dataset).problems())
    audits = [
        AuditRecord(
            problem=str(one.id), name=one.name, precisions=(), digest=audit_digest(one), faults=faults, checks=CHECKS
        )
        for one, faults in ((first, ("zeros would pass",)), (second, ()))
    ]
    told = "\n".join(page(problems, [], EarlierPage(), audits))
    assert "1 of 2 problems are sound" in " ".join(told.split())
    assert f"- 1/{first.id.number} {first.name}: zeros would pass" in told
    first.reference_path.write_text(first.reference_path.read_text() + "\n# changed\n")
    told = "\n".join(page(problems, [], EarlierPage(), audits))
    assert "zeros would pass" not in told
    assert f"Not audited as they are: 1/{first.id.number}." in told


def test_what_kernels_may_leave_out_is_told_together(dataset: Path) -> None:
    (problem, *_) = list(Dataset(dataset).problems())
    ignored = tuple(f"a kernel that ignores bias{number} passes in bf16" for number in range(9))
    faults = (*ignored, "a kernel without clamp 1 passes in fp16", "zeros would pass")
    record = AuditRecord(
        problem=str(problem.id),
        name=problem.name,
        precisions=(),
        digest=audit_digest(problem),
        faults=faults,
        checks=CHECKS,
    )
    told = [line for line in audited([problem], [record]) if line.startswith("- ")]
    together, alone, other = (line.partition(": ")[2] for line in told)
    assert together == "a kernel that ignores bias0, bias1, bias2 or one of 6 more passes in bf16"
    assert (alone, other) == faults[-2:]
