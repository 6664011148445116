"""What a candidate's host code cannot do to the harness in its process: speak for it, read its key, be called by it."""

from __future__ import annotations

import dataclasses
import hashlib

import numpy as np
import pytest
from host_modes import LIMITS, MakeJob, Mode, expected, output_of, session

from kernelblaster.devices.base import UNPERTURBED, Build
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.harness.process import HarnessProcess
from kernelblaster.devices.harness.session import VariantsProcess


def test_what_is_sent_in_the_harness_name_is_a_typed_failure(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(Mode.FORGES_REPLY)
    with HarnessProcess(host_build, job, limits=LIMITS, timeout_s=10, contain=False) as process:
        process.load()
        with pytest.raises(RunFailure) as failure:
            process.call(0)
    assert failure.value.kind is RunFailureKind.POLICY


def test_who_jumps_to_where_the_harness_receives_ends_there(host_build: Build, make_job: MakeJob) -> None:
    job = dataclasses.replace(make_job(Mode.RECEIVES), scalars={"scale": 3.0})
    with session(host_build, job) as running, pytest.raises(RunFailure, match="SIGSEGV"):
        running.call(0)


KEY = bytes(255 - byte for byte in hashlib.sha256(b"a key that no table holds").digest())
"""As host_candidate.cpp knows it."""


@pytest.mark.parametrize("contain", [True, False])
def test_the_key_of_replies_lies_where_no_candidate_can_read(
    host_build: Build, make_job: MakeJob, monkeypatch: pytest.MonkeyPatch, contain: bool
) -> None:
    monkeypatch.setattr("kernelblaster.devices.harness.channel.secrets.token_bytes", lambda count: KEY[:count])
    job = make_job(Mode.SEEKS_KEY)
    with HarnessProcess(host_build, job, limits=LIMITS, timeout_s=30, contain=contain) as process:
        process.load()
        if contain:
            process.call(0xFF)
            np.testing.assert_array_equal(output_of(job), expected(job))
        else:
            with pytest.raises(RunFailure, match="the key is in memory"):
                process.call(0xFF)


def test_the_harness_fails_without_asking_tables_that_a_candidate_can_write_to(
    host_build: Build, make_job: MakeJob
) -> None:
    with session(host_build, make_job(Mode.UNWINDS_HARNESS)) as running, pytest.raises(RunFailure) as failure:
        running.call(0)
    assert "cudaErrorIllegalAddress" in failure.value.reason
    assert "a handler of the candidate" not in failure.value.log


def test_the_thread_of_the_harness_is_not_cancelled(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(Mode.CANCELS_HARNESS)
    with session(host_build, job) as running:
        running.call(0xFF)
        running.time_calls([UNPERTURBED])
        running.fetch()
    np.testing.assert_array_equal(output_of(job), expected(job))


def test_no_output_is_open_while_a_candidate_runs(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(Mode.MAPS_OUTPUTS)
    with session(host_build, job) as running:
        for _ in range(2):
            running.call(0xFF)
            np.testing.assert_array_equal(output_of(job), expected(job))
            running.time_calls([UNPERTURBED] * 2)
            running.fetch()


def test_replies_of_any_length_carry_their_seal(host_build: Build, host_other: Build, make_job: MakeJob) -> None:
    with VariantsProcess([host_build, host_other], make_job(Mode.THROWS_MORE), limits=LIMITS, timeout_s=10) as running:
        for length in range(1, 150):
            assert running.choose(0).endswith(" " + "a" * length)


def test_a_jump_to_where_memory_is_opened_ends_the_call(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(Mode.JUMPS_BEHIND_ITSELF)
    with session(host_build, job) as running:
        assert running.call(0xFF).mutated_inputs == ()
    assert np.isnan(output_of(job)).all()


def test_the_kernel_calls_no_candidate_back(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(Mode.INTERRUPTS_HARNESS)
    with session(host_build, job) as running:
        assert running.containment.memory_protected
        running.call(0xFF)
    np.testing.assert_array_equal(output_of(job), expected(job))
