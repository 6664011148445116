"""Batches of calls of a CUDA kernel that the emulated device executes; its sessions offer none to the judge."""

from __future__ import annotations

from dataclasses import replace

import emulated_kernels as kernels
import numpy as np
import pytest
import torch
from emulated_bench import TIMEOUT_S, Bench, needs_tools

from kernelblaster.devices.base import Job, PerturbationKind
from kernelblaster.devices.harness.session import ProcessSession
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation

pytestmark = [pytest.mark.nvcc, needs_tools]

PERTURBATIONS = [5, 6, 1 << 62, 77]
SKIPS = kernels.COPY.replace(
    "void launch_gpu_implementation(void* output, void* x, int64_t n) {",
    "void launch_gpu_implementation(void* output, void* x, int64_t n) {\n    static int calls = 0;\n"
    "    if (calls++ % 2) return;",
)


def right_slots(bench: Bench, source: str, x: np.ndarray) -> list[bool]:
    """Which slots of one batch hold the copy of their own values."""
    build, job = bench.build(source), changing(bench.job(x))
    device = bench.device
    env, view = device._environment(build), device._view(build)
    with ProcessSession(build, job, env=env, view=view, timeout_s=TIMEOUT_S) as running:
        running.prepare_batch(PERTURBATIONS)
        running.run_batch(len(PERTURBATIONS), 1)
        right = []
        for slot, perturbation in enumerate(PERTURBATIONS):
            running.select_slot(slot)
            assert running.fetch().mutated_inputs == ()
            values = apply_perturbation(torch.from_numpy(x), PerturbationKind.SHIFT, 1, perturbation).numpy()
            right.append(np.array_equal(bench.output(x), values))
    return right


def changing(job: Job) -> Job:
    """The job, whose input has other values in every slot."""
    output, x = job.tensors
    return replace(job, tensors=(output, replace(x, change=PerturbationKind.SHIFT)))


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(3).normal(size=(64, 64)).astype(np.float32)


def test_every_slot_holds_the_result_of_its_values(bench: Bench, x: np.ndarray) -> None:
    assert right_slots(bench, kernels.COPY, x) == [True] * 4


@pytest.mark.slow
def test_calls_left_out_of_a_batch_are_seen_in_their_slots(bench: Bench, x: np.ndarray) -> None:
    assert SKIPS != kernels.COPY
    assert right_slots(bench, SKIPS, x) == [True, False, True, False]


def test_modelled_times_have_no_batches(bench: Bench, x: np.ndarray) -> None:
    with bench.device.open(bench.build(kernels.COPY), bench.job(x), timeout_s=TIMEOUT_S) as session:
        assert session.batches() is None
