"""Figures that mislead although each kernel was judged rightly: means, dropped failures, weak baselines, luck."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter
from results_table import better_baseline, render
from runs_samples import FACTS, row, summary, timing
from trust_texts import REPORTING

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.devices.base import TimingSample
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.evaluation.results import Decision, Timing
from kernelblaster.evaluation.timing.clock_agreement import ImpossibleTime
from kernelblaster.evaluation.timing.statistics import SampleBlock, decide, speedup_interval
from kernelblaster.evaluation.timing.stopwatch import Stopwatch
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.records.baselines import BaselineRow, Ratio

TESTS = Path(__file__).resolve().parents[1]
ELSEWHERE = {
    "R04": ("evaluation/test_baseline_timing.py", "test_both_kernels_see_the_same_values_and_none_twice"),
    "R07": ("knowledge/test_statistics_sums.py", "test_kinds_of_device_never_mix"),
    "D01": ("evaluation/test_admission.py", "test_stand_ins_that_pass_are_named"),
}
"""Rows that are tested beside the code that they are about."""
DOCS = Path(__file__).resolve().parents[2] / "docs"
GPU = FACTS.model_copy(update={"kind": DeviceKind.CUDA})


def baseline(times: dict[str, float], *, failures: dict[str, str] | None = None) -> BaselineRow:
    final = times.get("final")
    others = {name: us for name, us in times.items() if name != "final"}
    against = (
        {name: Ratio(speedup=us / final, low=us / final, high=us / final) for name, us in others.items()}
        if final
        else {}
    )
    measured = {name: timing(us).model_copy(update={"modelled": False}) for name, us in times.items()}
    return BaselineRow(
        problem="level1/023", name="Softmax", precision=Precision.FP16, workload=StandardWorkload.FULL, device=GPU,
        torch="2.11",
        timings=measured, final_against=against, failures=failures or {},
    )  # fmt: skip


def test_every_row_about_figures_has_a_rule_and_a_test() -> None:
    here = {name[5:8].upper() for name in globals() if re.match(r"test_r\d\d_", name)}
    assert {f"R{n:02}" for n in range(1, 9)} | {"D01"} == set(REPORTING) == here | set(ELSEWHERE)
    for path, name in ELSEWHERE.values():
        assert f"def {name}(" in (TESTS / path).read_text()


def test_r04_a_baseline_names_the_gpu_and_the_version_it_was_measured_with() -> None:
    assert all(BaselineRow.model_fields[name].is_required() for name in ("device", "torch", "precision", "workload"))


def test_r01_one_large_speedup_does_not_carry_the_mean() -> None:
    run = summary(row(OutcomeStatus.IMPROVED, 100.0), *(row(OutcomeStatus.IMPROVED, 1.0) for _ in range(3)))
    assert run.geometric_mean == pytest.approx(100 ** (1 / 4))


@pytest.mark.parametrize("status", [OutcomeStatus.FAILED, OutcomeStatus.NO_IMPROVEMENT, OutcomeStatus.BUDGET])
def test_r02_failures_stay_in_the_mean(status: OutcomeStatus) -> None:
    assert summary(row(OutcomeStatus.IMPROVED, 4.0), row(status)).geometric_mean == pytest.approx(2.0)


def test_r02_problems_without_a_final_kernel_keep_their_row_and_count_as_one() -> None:
    rows = [baseline({"start": 100, "final": 25, "eager": 50, "compile": 50}), baseline({"start": 100, "eager": 50})]
    page = render(rows)
    assert page.count("level1/023 Softmax") == 2
    assert "over the start: 2.00 " in page


def test_r02_a_kernel_that_failed_shows_its_failure() -> None:
    page = render([baseline({"start": 100, "eager": 50}, failures={"final": "wrong_values"})])
    assert "wrong_values" in page


def test_r03_the_better_baseline_counts() -> None:
    assert better_baseline(baseline({"start": 90, "final": 10, "eager": 80, "compile": 20})) == pytest.approx(2.0)


def test_r05_a_start_faster_than_any_final_is_not_credited_to_the_search() -> None:
    assert better_baseline(baseline({"start": 40, "eager": 20})) == pytest.approx(0.5)


def test_r05_the_shipped_results_name_the_baselines_beside_the_start() -> None:
    page = (DOCS / "results" / "h200.md").read_text()
    heads = [line for line in page.splitlines() if line.startswith("| problem")]
    assert any(all(word in head for word in ("over start", "over eager", "over compile")) for head in heads)


@pytest.mark.parametrize("us", [0.0, -1.0, float("nan"), 0.001, 84.0])
def test_r06_and_t17_times_below_the_floor_are_refused(us: float) -> None:
    class Session:
        def time_calls(self, *_: object, **__: object) -> list[TimingSample]:
            return [TimingSample(device_us=us, host_us=None)]

    watch = Stopwatch(facts=FACTS, floor_us=100.0, max_seconds=0.1)
    with pytest.raises(ImpossibleTime):
        watch.time_alone(Session())


def test_r08_the_shipped_table_is_what_its_measurements_say() -> None:
    measured = DOCS / "results" / "h200_baseline.json"
    rows = TypeAdapter(list[BaselineRow]).validate_json(measured.read_bytes())
    assert render(rows) in (DOCS / "results" / "h200.md").read_text()


def test_r08_every_final_kernel_of_the_shipped_results_is_shipped() -> None:
    page = (DOCS / "results" / "h200.md").read_text()
    shipped = {path.stem for path in (DOCS / "results" / "h200_kernels").glob("*.cu")}
    rows = re.findall(r"^\| (level\d)/(\d+) (\S+) \| [^|]+ \| (\d[^|]*) \|", page, re.MULTILINE)
    assert len(rows) >= 19
    assert {f"{level}_{number}_{name}" for level, number, name, _ in rows} <= shipped


def test_t22_submitting_the_same_kernel_often_does_not_make_it_faster() -> None:
    """1 % noise, equal kernels, 300 comparisons: few may be decided, and none may be far from 1."""
    draws = np.random.default_rng(7)
    decisions = []
    for number in range(300):
        times = draws.lognormal(np.log(100.0), 0.01, size=(20, 2, 2))
        blocks = [SampleBlock(tuple(pair[0]), tuple(pair[1])) for pair in times.tolist()]
        decisions.append(decide(speedup_interval(blocks, seed=number), 0.01))
    assert decisions.count(Decision.FASTER) <= 3


def test_modelled_times_say_so_wherever_they_are_written() -> None:
    assert Timing.model_fields["modelled"].is_required()
    assert '"modelled":true' in timing(3.0).model_dump_json()
