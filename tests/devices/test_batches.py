"""Batches of calls, end to end: the real harness program in a sandboxed process, with host memory for a GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import torch
from test_process_session import LIMITS, Mode, output_of, session

from kernelblaster.devices.base import UNPERTURBED, Build, Job, PerturbationKind
from kernelblaster.devices.failures import RunFailure
from kernelblaster.devices.harness.session import ProcessSession
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation

MakeJob = Callable[..., Job]
PERTURBATIONS = [5, 77, 1 << 62, 9, 10, 11, 12]
COUNT = 1000


def changing(job: Job) -> Job:
    """The job, whose first input has other values in every slot."""
    first, *others = job.tensors
    return replace(job, tensors=(replace(first, change=PerturbationKind.SHIFT), *others))


def right_output(perturbation: int) -> np.ndarray:
    x = torch.arange(COUNT, dtype=torch.float32)
    return apply_perturbation(x, PerturbationKind.SHIFT, 0, perturbation).numpy() * 2 + 0.5


def right_slots(running: ProcessSession, job: Job) -> list[bool]:
    found = outputs(running, job, range(len(PERTURBATIONS)))
    return [np.array_equal(one, right_output(p)) for one, p in zip(found, PERTURBATIONS, strict=True)]


def outputs(running: ProcessSession, job: Job, slots: range) -> list[np.ndarray]:
    found = []
    for slot in slots:
        running.select_slot(slot)
        assert running.fetch().mutated_inputs == ()
        found.append(output_of(job).reshape(-1))
    return found


def test_every_slot_keeps_the_outputs_of_its_call(host_build: Build, make_job: MakeJob) -> None:
    job = changing(make_job())
    with session(host_build, job) as running:
        running.prepare_batch(PERTURBATIONS)
        time = running.run_batch(len(PERTURBATIONS), 2)
        assert 0 < time.issued_us <= time.done_us
        assert all(right_slots(running, job))


def test_a_shorter_batch_leaves_the_other_slots_poisoned(host_build: Build, make_job: MakeJob) -> None:
    job = changing(make_job())
    with session(host_build, job) as running:
        running.prepare_batch(PERTURBATIONS)
        running.run_batch(0, 1)
        assert not any(right_slots(running, job))
        running.run_batch(3, 0)
        assert right_slots(running, job) == [True] * 3 + [False] * 4
        running.prepare_batch(PERTURBATIONS)
        assert not any(right_slots(running, job))


def test_work_left_out_of_a_batch_shows(host_build: Build, make_job: MakeJob) -> None:
    job = changing(make_job(Mode.REPLAYS))
    with session(host_build, job) as running:
        running.prepare_batch(PERTURBATIONS)
        running.run_batch(len(PERTURBATIONS), 0)
        assert not any(right_slots(running, job))  # all results lie in the first slot, the last of them on top


def test_single_calls_and_batches_do_not_disturb_each_other(host_build: Build, make_job: MakeJob) -> None:
    job = changing(make_job())
    with session(host_build, job) as running:
        running.prepare_batch(PERTURBATIONS)
        running.run_batch(7, 0)
        running.call(0xFF)
        np.testing.assert_array_equal(output_of(job).reshape(-1), right_output(UNPERTURBED))
        running.time_calls([3, 4])
        running.prepare_batch(PERTURBATIONS)
        running.run_batch(7, 0)
        assert all(right_slots(running, job))


def test_damage_is_told_of_the_slot_that_has_it(host_build: Build, make_job: MakeJob) -> None:
    with session(host_build, make_job(Mode.OVERRUNS)) as running:
        running.prepare_batch(PERTURBATIONS)
        running.run_batch(2, 0)
        damage = []
        for slot in range(3):
            running.select_slot(slot)
            damage.append(running.fetch().mutated_inputs)
    assert damage == [("around:output",), ("around:output",), ()]


@pytest.mark.parametrize("perturbations", [[UNPERTURBED], []])
def test_what_makes_no_batch_is_refused(host_build: Build, make_job: MakeJob, perturbations: list[int]) -> None:
    def run(running: ProcessSession) -> None:
        running.prepare_batch(perturbations)
        running.run_batch(1, 0)

    process = ProcessSession(host_build, make_job(), limits=LIMITS, timeout_s=10)
    with process as running, pytest.raises((RunFailure, DeviceError)):
        run(running)
