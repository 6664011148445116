"""On a GPU a sweep's times are those of the judge, and a variant costs little."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.cuda.probe import detect_gpu
from kernelblaster.runs.evaluations import find_problem, open_evaluator

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(detect_gpu() is None, reason="no NVIDIA GPU"),
]
KERNELS = Path(__file__).resolve().parents[2] / "docs" / "results" / "h200_kernels"
CASES = [
    ("level1/1", "level1_001_Square_matrix_multiplication", "full"),
    ("level1/23", "level1_023_Softmax", "medium"),
    ("level1/40", "level1_040_LayerNorm", "full"),
]
VARIANTS = 8
AGREEMENT = 0.04
SECONDS = 0.3
"""For one variant, after compilation."""


@pytest.mark.parametrize(("problem", "kernel", "size"), CASES, ids=[case[0] for case in CASES])
def test_a_sweep_says_what_the_judge_says(problem: str, kernel: str, size: str) -> None:
    config = RunConfig(device="cuda", size=size, evaluation=EvaluationConfig(max_seconds_timing=1.0))
    with open_evaluator(config, lambda _: None) as judge:
        found = find_problem(problem, config)
        source = (KERNELS / f"{kernel}.cu").read_text()
        judged = judge.evaluate(found, source, profile=False).timing
        swept = judge.sweep(found, [f"{source}\n// variant {number}\n" for number in range(VARIANTS)])
    assert judged is not None
    times = [one.median_us for one in swept.variants if one.median_us is not None]
    print(f"{problem} {size}: judged {judged.median_us:.2f} us, swept {sorted(times)}, {swept.seconds}")
    assert len(times) == VARIANTS
    assert min(times) == pytest.approx(judged.median_us, rel=AGREEMENT)
    assert swept.seconds["time"] <= SECONDS * VARIANTS
