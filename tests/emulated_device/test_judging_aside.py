"""Real kernels judged in processes of their own say what they say when they are judged here."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulated_bench import needs_tools

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.errors import UsageError
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.problem import StandardWorkload
from kernelblaster.problems.start import read_start
from kernelblaster.records.run_record import new_record
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.judges import opened_judge, refuse_given_device


@pytest.mark.slow
@pytest.mark.nvcc
@needs_tools
def test_a_start_is_judged_alike_here_and_there(tmp_path: Path) -> None:
    problem = find_problem("level1/019", data_dir() / "kernelbench-cuda")
    found = []
    for processes in (1, 2):
        settings = EvaluationConfig(input_sets=2, processes=processes)
        config = RunConfig(device="emulated", gpu_type="h200", out=tmp_path, evaluation=settings)
        device = choose_device(config, lambda stage: None).device
        record = new_record(config, StandardWorkload.SMALL, device.facts, "", "")
        with opened_judge(record, device, lambda stage: None) as judge:
            judged = judge.evaluate(problem, read_start(problem), baseline=None, profile=True, process_pairs=1)
            found.append((judged.verdict, judged.timing, judged.profile))
    assert found[0] == found[1]
    assert found[0][1] is not None


def test_a_device_that_only_this_process_has_is_refused() -> None:
    with pytest.raises(UsageError):
        refuse_given_device(RunConfig(evaluation=EvaluationConfig(processes=2)))
    with pytest.raises(UsageError):
        refuse_given_device(RunConfig(evaluation=EvaluationConfig(gpus=("1",))))
