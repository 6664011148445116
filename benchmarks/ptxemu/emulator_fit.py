"""Fits the figures of the emulated device to half of what was captured of the conformance programs on a real GPU.

    python benchmarks/ptxemu/emulator_fit.py [--cross-validate]

Writes `expansion.json` of the package, machine instructions per PTX operation, and in `architectures.json` latencies
and weights of the timing model (`timing_fit.py`): those of sm_90. The other architectures get its
weights, and keep latencies of their own. The other half of the cases is not looked at;
`benchmarks/ptxemu/emulator_calibration.py` judges the figures with it.

Each mean of the expansion is the least-squares solution, not below zero, over the relative error of each case, drawn
towards the expected means of `expansion.json` by a ridge (PULL). Relative errors beyond OUTLIER count by their size
instead of their square. Both were chosen by five-fold cross-validation within the half that is fitted.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "conformance"))

from conformance_emulated import EmulatedCase, Emulator
from conformance_suite import UNFITTED, CapturedCase, Half, comparable, halves, pairs, read_capture
from timing_fit import cross_validate, fit_timing

import ptxemu.model.expansion
from ptxemu.model.architecture import GpuModel, gpu_model
from ptxemu.model.expansion import ExpansionFile, Means, executed, read_expansion

EXPANSION = Path(ptxemu.model.expansion.__file__).with_name("expansion.json")
ARCHITECTURES = EXPANSION.with_name("architectures.json")
GPU = "h200"
PULL = {"instructions": 0.05, "alu": 0.1, "fma": 0.1, "xu": 0.03}
OUTLIER = 0.05
LEAST_SCALE = {"instructions": 0.3, "alu": 0.1, "fma": 0.1, "xu": 0.1}
"""The ridge is relative to the expected mean, or to this where that is less."""
MEASURED = {
    "instructions": "smsp__inst_executed.sum",
    "alu": "sm__inst_executed_pipe_alu.sum",
    "fma": "sm__inst_executed_pipe_fma.sum",
    "xu": "sm__inst_executed_pipe_xu.sum",
}
Vector = NDArray[np.float64]


def ridge(design: Vector, target: Vector, prior: Vector, scale: Vector, pull: float) -> Vector:
    """Non-negative least squares drawn towards `prior`, with the weight of outliers reduced."""
    scaled, rest, lowest = design * scale, target - design @ prior, -prior / scale
    step = np.zeros_like(prior)
    for _ in range(40):
        weight = 1 / np.maximum(1, np.abs(rest - scaled @ step) / OUTLIER)
        new = _bounded(scaled, rest, weight, lowest, pull)
        if np.abs(new - step).max() < 1e-6:
            break
        step = new
    return np.maximum(0.0, prior + scale * step)


def _bounded(design: Vector, target: Vector, weight: Vector, lowest: Vector, pull: float) -> Vector:
    """Weighted ridge solution with each coefficient at least `lowest`, by taking the violating ones out in turn."""
    free = np.ones(design.shape[1], dtype=bool)
    while True:
        part, left = design[:, free], target - design[:, ~free] @ lowest[~free]
        weighted = part * weight[:, None]
        solution = lowest.copy()
        solution[free] = np.linalg.solve(weighted.T @ part + pull**2 * np.eye(free.sum()), weighted.T @ left)
        violating = free & (solution < lowest - 1e-12)
        if not violating.any():
            return solution
        free &= ~violating


def fit_expansion(
    real: Sequence[CapturedCase], emulated: Sequence[EmulatedCase], known: ExpansionFile
) -> ExpansionFile:
    """Means fitted to cases that were both captured and emulated."""
    counts = [_operations(case) for case in emulated]
    names = sorted({name for count in counts for name in count})
    total = np.array([_measured(case, MEASURED["instructions"]) for case in real])
    design = np.array([[count[name] for name in names] for count in counts]) / total[:, None]
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    for kind, metric in MEASURED.items():
        prior = np.array([getattr(known.expected_of(name), kind) for name in names])
        target = np.array([_measured(case, metric) for case in real]) / total
        solution = ridge(design, target, prior, np.maximum(prior, LEAST_SCALE[kind]), PULL[kind])
        for name, value in zip(names, solution, strict=True):
            found[name][kind] = round(float(value), 3)
    fitted = {name: Means(**values) for name, values in found.items()}
    return ExpansionFile(known.format, source=known.source, fitted=fitted, expected=known.expected)


def _operations(case: EmulatedCase) -> Counter[str]:
    found: Counter[str] = Counter()
    for record in case.launches:
        for name, count in executed(record):
            found[name] += count
    return found


def _measured(case: CapturedCase, metric: str) -> float:
    return sum(kernel.metrics[metric] for kernel in case.kernels)


def write_expansion(expansion: ExpansionFile, path: Path) -> None:
    """One entry a line."""
    fitted = ",\n".join(f"    {json.dumps(name)}: {json.dumps(asdict(one))}" for name, one in expansion.fitted.items())
    expected = ",\n".join(f"    {json.dumps(asdict(one))}" for one in expansion.expected)
    path.write_text(
        f'{{\n  "format": {json.dumps(expansion.format)},\n  "source": {json.dumps(expansion.source)},\n'
        f'  "fitted": {{\n{fitted}\n  }},\n  "expected": [\n{expected}\n  ]\n}}\n',
        encoding="utf-8",
    )


def write_figures(gpu: GpuModel, path: Path) -> None:
    """Latencies of the GPU's architecture, and weights of all."""
    text = path.read_text(encoding="utf-8")
    latency, timing = (json.dumps(asdict(one)) for one in (gpu.architecture.latency, gpu.architecture.timing))
    text = re.sub(r'"timing": \{[^}]*\}', f'"timing": {timing}', text)
    begin = text.index(f'"{gpu.gpu.arch}": {{')
    text = text[:begin] + re.sub(r'"latency": \{[^}]*\}', f'"latency": {latency}', text[begin:], count=1)
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Fit and write, or only judge the way of fitting."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cross-validate", action="store_true", help="print how well left-out programs are modelled")
    options = parser.parse_args()
    captured = [one for one in comparable(read_capture()) if one.program not in UNFITTED]
    half = halves(case.run.case for case in captured)
    real = {case.run.case: case for case in captured if half[case.run.case] is Half.FIT}
    emulator = Emulator()
    emulated = [
        case
        for name in sorted({one.program for one in real.values()})
        for case in emulator.cases(name, list(real))
        if case.run.case in real
    ]
    matching = [real[case.run.case] for case in emulated]
    if options.cross_validate:
        print(cross_validate(gpu_model(GPU), matching, emulated, pairs()))
        return
    write_expansion(fit_expansion(matching, emulated, read_expansion()), EXPANSION)
    gpu, loss = fit_timing(gpu_model(GPU), matching, emulated, pairs())
    write_figures(gpu, ARCHITECTURES)
    print(f"fitted to {len(emulated)} cases, loss of the times {loss:.4f}")


if __name__ == "__main__":
    main()
