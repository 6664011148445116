"""The driver program and its sessions, with real processes and host memory for a GPU."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
import torch
from host_modes import LIMITS, MakeJob, Mode, expected, output_of, session

from kernelblaster.devices.base import UNPERTURBED, Build, PerturbationKind
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.harness.process import HarnessProcess
from kernelblaster.devices.harness.session import ProcessSession, VariantsProcess
from kernelblaster.errors import DeviceError, DeviceMemoryFull
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.process import Scratch


def test_a_call_writes_the_outputs_and_finds_no_mutation(host_build: Build, make_job: MakeJob) -> None:
    job = make_job()
    with session(host_build, job) as running:
        assert running.call(0xFF).mutated_inputs == ()
    np.testing.assert_array_equal(output_of(job), expected(job))


def test_lines_of_the_l2_are_set_aside_during_calls_alone(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(Mode.SETS_LINES_ASIDE)
    with ProcessSession(host_build, job, limits=LIMITS, timeout_s=10, flush_bytes=64 << 20) as running:
        running.call(0xFF)
        assert len(running.time_calls([UNPERTURBED] * 3, cover_fills=5)) == 3
        running.call(0xFF)
    np.testing.assert_array_equal(output_of(job), expected(job))


def test_poison_shows_through_what_the_candidate_does_not_write(host_build: Build, make_job: MakeJob) -> None:
    job = make_job()
    # The candidate is told of half the elements only.
    short = dataclasses.replace(job, sizes={**job.sizes, "count": 500})
    with session(host_build, short) as running:
        running.call(0xFF)
        assert np.isnan(output_of(job)[500:]).all()
        running.call(0x00)
        assert (output_of(job)[500:] == 0).all()


def test_mutated_inputs_are_named(host_build: Build, make_job: MakeJob) -> None:
    with session(host_build, make_job(Mode.MUTATES)) as running:
        assert running.call(0).mutated_inputs == ("x",)


def test_reload_takes_new_input_values_to_the_device(host_build: Build, make_job: MakeJob) -> None:
    job = make_job()
    with session(host_build, job) as running:
        running.call(0)
        np.full(1000, 7, dtype=np.float32).tofile(job.tensors[0].path)
        running.reload()
        running.time_calls([UNPERTURBED])
        running.fetch()
    np.testing.assert_array_equal(output_of(job), np.full(1000, 14.5, dtype=np.float32))


def test_samples_carry_both_clocks(host_build: Build, make_job: MakeJob) -> None:
    with session(host_build, make_job()) as running:
        samples = running.time_calls([UNPERTURBED, 1, 2, 3, 4, 5, 6], 3)
    assert len(samples) == 7
    for sample in samples:
        assert sample.device_us > 0
        assert sample.host_us is not None
        assert sample.host_us >= sample.device_us
        assert sample.enqueue_us is not None
        assert 0 < sample.enqueue_us < sample.host_us


def test_an_empty_tensor_is_not_a_crash(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(count=0)
    with session(host_build, job) as running:
        running.call(1)
    assert job.tensors[-1].path.stat().st_size == 0


@pytest.mark.parametrize(
    ("mode", "kind", "reason"),
    [
        (Mode.SEGFAULTS, RunFailureKind.RUNTIME, "SIGSEGV"),
        (Mode.EXITS_EARLY, RunFailureKind.RUNTIME, "status 0"),
        (Mode.CUDA_ERROR, RunFailureKind.RUNTIME, "cudaErrorIllegalAddress"),
        (Mode.FLOODS, RunFailureKind.RUNTIME, "output limit"),
        (Mode.FORKS, RunFailureKind.RUNTIME, "fork was refused"),
        (Mode.EATS_MEMORY, RunFailureKind.RUNTIME, "memory limit"),
        (Mode.THREADS, RunFailureKind.RUNTIME, "exception"),
        (Mode.WRITES_FILE, RunFailureKind.RUNTIME, "open was refused"),
        (Mode.FORGES_REPLY, RunFailureKind.RUNTIME, "status 0"),
        (Mode.RECEIVES, RunFailureKind.RUNTIME, "Operation not permitted"),
        (Mode.THROWS, RunFailureKind.RUNTIME, "thrown by the candidate"),
        (Mode.POSES_AS_DRIVER, RunFailureKind.RUNTIME, "exception"),
        (Mode.READS_HARNESS, RunFailureKind.RUNTIME, "SIGSEGV"),
        (Mode.UNLOCKS_HARNESS, RunFailureKind.RUNTIME, "mprotect was refused"),
        (Mode.WIPES_HARNESS, RunFailureKind.RUNTIME, "madvise was refused"),
    ],
)
def test_a_failing_candidate_is_a_typed_failure(
    host_build: Build, make_job: MakeJob, mode: Mode, kind: RunFailureKind, reason: str
) -> None:
    with session(host_build, make_job(mode)) as running, pytest.raises(RunFailure) as failure:
        running.call(0)
    assert failure.value.kind is kind
    assert reason in failure.value.reason


def test_a_hang_ends_at_the_timeout(host_build: Build, make_job: MakeJob) -> None:
    started = time.monotonic()
    with session(host_build, make_job(Mode.HANGS), timeout_s=0.5) as running, pytest.raises(RunFailure) as failure:
        running.call(0)
    assert failure.value.kind is RunFailureKind.TIMEOUT
    assert time.monotonic() - started < 20


def test_saying_passed_is_no_evidence(host_build: Build, make_job: MakeJob) -> None:
    with session(host_build, make_job(Mode.EXITS_EARLY)) as running, pytest.raises(RunFailure) as failure:
        running.call(0)
    assert "passed" in failure.value.log


def test_a_candidate_is_contained(host_build: Build, make_job: MakeJob) -> None:
    with session(host_build, make_job()) as running:
        assert running.containment.contained
        assert running.containment.memory_protected
        assert 0 < running.containment.microseconds < 100_000


def test_an_error_of_the_gpu_that_a_fresh_process_does_not_see_is_the_candidates(
    host_build: Build, make_job: MakeJob
) -> None:
    with session(host_build, make_job(Mode.ECC_ERROR)) as running, pytest.raises(RunFailure, match="ECC"):
        running.call(0)


def test_a_lost_gpu_is_not_the_candidates_fault(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(Mode.ECC_ERROR)
    with session(host_build, job) as running:
        job.tensors[0].path.write_bytes(b"short")  # no further process gets through its start
        with pytest.raises(DeviceError):
            running.call(0)


@pytest.mark.parametrize("count", [1, 7, 1000, 1021, 5000])
def test_the_driver_and_the_judge_change_values_alike(host_build: Build, make_job: MakeJob, count: int) -> None:
    job = make_job(count=count)
    changed = dataclasses.replace(job.tensors[0], change=PerturbationKind.SHIFT), *job.tensors[1:]
    job = dataclasses.replace(job, tensors=changed)
    drawn = torch.from_numpy(np.fromfile(job.tensors[0].path, np.float32))
    seen = set()
    with session(host_build, job) as running:
        for perturbation in (UNPERTURBED, 5, 1 << 62, 77, 78, 79):
            running.time_calls([12345, perturbation])
            assert running.fetch().mutated_inputs == ()
            got = output_of(job)
            wanted = apply_perturbation(drawn, PerturbationKind.SHIFT, 0, perturbation).numpy() * 2 + 0.5
            np.testing.assert_array_equal(got, wanted)
            seen.add(got.tobytes())
    assert len(seen) == (6 if count > 100 else len(seen))


def test_addresses_change_and_what_is_written_beside_a_tensor_is_seen(host_build: Build, make_job: MakeJob) -> None:
    with session(host_build, make_job(Mode.OVERRUNS)) as running:
        running.time_calls([3])
        assert running.fetch().mutated_inputs == ("around:output",)
    job = make_job(Mode.REPLAYS)
    with session(host_build, job) as running:
        assert running.call(0xFF).mutated_inputs == ()
        running.time_calls([3])
        running.fetch()
    # The candidate wrote to where the output was before: where it is now lies what it was filled with.
    assert (output_of(job).view(np.uint8) == 0x5B).all()


def test_no_timed_call_finds_an_input_where_the_one_before_it_did(host_build: Build, make_job: MakeJob) -> None:
    job, addresses = make_job(Mode.TELLS_ADDRESS), []
    with session(host_build, job) as running:
        for perturbation in (3, 4, 5, 6):
            running.time_calls([perturbation])
            running.fetch()
            addresses.append(int(np.fromfile(job.tensors[-1].path, np.uint64, count=1)[0]))
    slack, size = 64 << 10, 4000
    assert all(abs(one - other) >= size for one, other in pairwise(addresses))
    assert all(abs(one - other) <= slack for one, other in zip(addresses, addresses[2:], strict=False))


def test_values_are_judged_at_bad_and_at_good_addresses_in_turns(host_build: Build, make_job: MakeJob) -> None:
    job, remainders = make_job(Mode.TELLS_ADDRESS), []
    with session(host_build, job) as running:
        for _ in range(4):
            for _ in range(2):
                assert running.call(0xFF).mutated_inputs == ()
                running.fetch()
                remainders.append(int(np.fromfile(job.tensors[-1].path, np.uint64, count=1)[0]) % 512)
            running.reload()
    bad, good = remainders[0], remainders[2]
    assert remainders == [bad, bad, good, good] * 2
    assert good == 0
    assert bad % 16 == 0
    assert bad % 32


def test_tensors_that_do_not_fit_are_not_the_candidates_fault(host_build: Build, make_job: MakeJob) -> None:
    running = ProcessSession(host_build, make_job(), env={"HOST_CUDART_BYTES": "100"}, limits=LIMITS, timeout_s=10)
    with pytest.raises(DeviceMemoryFull):
        running.__enter__()


def test_a_system_that_locks_no_memory_costs_nobody_a_verdict(host_build: Build, make_job: MakeJob) -> None:
    job, env = make_job(), {"HOST_CUDART_LOCKS_NOTHING": "1"}
    with ProcessSession(host_build, job, env=env, limits=LIMITS, timeout_s=10) as running:
        assert running.call(0).mutated_inputs == ()
    np.testing.assert_array_equal(output_of(job), expected(job))


def test_a_refused_job_names_what_is_missing(host_build: Build, make_job: MakeJob) -> None:
    job = dataclasses.replace(make_job(), scalars={})
    with session(host_build, job) as running, pytest.raises(RunFailure, match="scale"):
        running.call(0)


def test_an_input_file_of_the_wrong_size_is_refused(host_build: Build, make_job: MakeJob) -> None:
    job = make_job()
    job.tensors[0].path.write_bytes(b"short")
    with pytest.raises(DeviceError, match="size"):
        session(host_build, job).__enter__()


def test_outputs_larger_than_the_file_limit_are_allowed(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(count=1 << 20)
    with session(host_build, job) as running:
        running.call(0)
    np.testing.assert_array_equal(output_of(job), expected(job))


def test_a_program_under_a_wrapper_answers_and_ends(host_build: Build, make_job: MakeJob) -> None:
    job = make_job(Mode.SPEAKS)
    wrapper = ["/usr/bin/env", "A=b"]
    with HarnessProcess(host_build, job, wrapper, limits=LIMITS, timeout_s=10, contain=False) as process:
        process.begin_warm_up()
        process.settle()
        process.load()
        assert process.call(0).mutated_inputs == ()
        process.profile(UNPERTURBED)
        process.profile(9)
        process.reload()
        ended = process.quit()
    assert ended.ok
    assert "passed" in ended.output


def test_a_program_that_dies_early_is_not_waited_for(host_build: Build, make_job: MakeJob) -> None:
    began = time.monotonic()
    with (
        HarnessProcess(host_build, make_job(), ["/bin/false"], limits=LIMITS, timeout_s=60, contain=False) as process,
        pytest.raises(RunFailure) as failure,
    ):
        process.settle()
    assert failure.value.kind is RunFailureKind.RUNTIME
    assert time.monotonic() - began < 30


@pytest.mark.parametrize(("script", "timeout_s"), [("exit 1", 10), ("kill -9 $$", 10), ("sleep 20", 1)])
def test_a_harness_that_fails_before_it_has_a_candidate_is_nobodys_failure(
    host_build: Build, make_job: MakeJob, script: str, timeout_s: float
) -> None:
    with harness_that(script, host_build) as build, pytest.raises(DeviceError):
        session(build, make_job(), timeout_s).__enter__()


def test_a_harness_that_is_lost_once_is_started_once_more(host_build: Build, make_job: MakeJob) -> None:
    job, program = make_job(), host_build.program
    script = f'[ -e "$0.again" ] && exec {program}; : > "$0.again"; kill -9 $$'
    with harness_that(script, host_build) as build:
        view = FileView(writable=(build.program.parent,), readable=(program,))
        with ProcessSession(build, job, view=view, limits=LIMITS, timeout_s=10) as running:
            running.call(0)
    np.testing.assert_array_equal(output_of(job), expected(job))


@contextlib.contextmanager
def harness_that(script: str, build: Build) -> Iterator[Build]:
    """The build with a harness that is a shell script; skips where the candidate is in the program from the start."""
    if build.library is None:
        pytest.skip("its candidate is in the program")
    with Scratch(build.program.parent) as folder:
        program = folder / "harness"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        yield dataclasses.replace(build, program=program, harness=dataclasses.replace(build.harness, program=program))


def test_what_a_killed_process_left_beside_a_program_goes_after_a_day(host_build: Build, make_job: MakeJob) -> None:
    old, young = (host_build.program.parent / f"kernelblaster-{name}" for name in ("old", "young"))
    for shelf in (old, young):
        shelf.mkdir(exist_ok=True)
    os.utime(old, (0, 0))
    with session(host_build, make_job()):
        left = sorted(path.name for path in host_build.program.parent.glob("kernelblaster-*") if path in (old, young))
    assert left == ([young.name] if host_build.library else [old.name, young.name])


def test_one_process_calls_the_variant_that_was_chosen(host_build: Build, host_other: Build, make_job: MakeJob) -> None:
    job = make_job()
    with VariantsProcess([host_build, host_other], job, limits=LIMITS, timeout_s=10, flush_bytes=1 << 20) as running:
        for index, factor in ((0, 1), (1, 3), (0, 1)):
            assert running.choose(index) == ""
            assert len(running.time_calls([UNPERTURBED] * 2)) == 2
            running.fetch()
            np.testing.assert_array_equal(output_of(job), factor * expected(job))


def test_a_variant_that_fails_softly_leaves_the_others(host_build: Build, host_other: Build, make_job: MakeJob) -> None:
    with VariantsProcess([host_build, host_other], make_job(Mode.THROWS), limits=LIMITS, timeout_s=10) as running:
        assert "thrown by the candidate" in running.choose(0)
        assert running.choose(1) == ""
        with pytest.raises(RunFailure, match="no such candidate"):
            running.choose(2)


def test_a_variant_that_ends_the_process_is_a_typed_failure(
    host_build: Build, host_other: Build, make_job: MakeJob
) -> None:
    with VariantsProcess([host_build, host_other], make_job(Mode.SEGFAULTS), limits=LIMITS, timeout_s=10) as running:
        assert running.choose(1) == ""
        with pytest.raises(RunFailure, match="SIGSEGV"):
            running.choose(0)
