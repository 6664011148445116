"""Trusted candidates are verified beside others, and hold the GPU alone only while they are measured."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from budget_support import RELU_SLUG, reduced
from fake_device import FakeDevice, FakeSession, Script, source

from kernelblaster.config import EvaluationConfig
from kernelblaster.devices.base import CallResult, Candidate, Job, Profiler
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Verdict
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload


class Watched(FakeDevice):
    """Notes when it is shared and held alone, by one user at a time, and that it is sampled by one who is alone."""

    def __init__(self) -> None:
        super().__init__()
        self.uses: list[str] = []
        self.alone_s = 0.0
        self.sampled = Samples(self)

    @property
    def alone(self) -> bool:
        """Whether who uses it now is."""
        return self.holders == 1 and self.uses[-1] == "alone"

    def ended(self) -> None:
        """Processes wait, idle, between what is verified and what is measured."""
        self.closed += 1

    @contextmanager
    def shared(self) -> Iterator[None]:
        with self._used("shared"):
            yield

    @contextmanager
    def exclusive(self, *, wait: bool = True) -> Iterator[bool]:
        with self._used("alone"):
            yield True

    @contextmanager
    def _used(self, how: str) -> Iterator[None]:
        assert self.holders == 0
        self.uses.append(how)
        self.holders = 1
        began = time.monotonic()
        try:
            yield
        finally:
            self.holders = 0
            self.alone_s += time.monotonic() - began if how == "alone" else 0.0


class Samples(list[Script]):
    """What was sampled."""

    def __init__(self, device: Watched) -> None:
        super().__init__()
        self._device = device

    def append(self, script: Script) -> None:
        assert self._device.alone
        super().append(script)


def trusting(device: FakeDevice, store: InputStore, *, in_company: bool = True) -> Evaluator:
    """Judges in company."""
    config = EvaluationConfig(input_sets=3, max_seconds_timing=0.3, compile_jobs=1, in_company=in_company)
    return Evaluator(device, store, config, StandardWorkload.MEDIUM, precision=Precision.FP32, seed=11)


def relu(store: InputStore) -> Problem:
    """A small problem whose timed size is another than the cheap one."""
    return reduced(RELU_SLUG, store.directory.parent / "reduced", medium={"batch_size": 5, "dim": 259})


@pytest.mark.parametrize(("name", "verdict"), [("honest", Verdict.CORRECT), ("lazy", Verdict.WRONG_VALUES)])
def test_only_what_is_measured_holds_the_gpu_alone(
    store: InputStore, name: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelblaster.evaluation.timing.stopwatch.SPIN_UP_S", 0.0)
    device = Watched()

    found = trusting(device, store).evaluate(
        relu(store), source(name), baseline=source("honest"), profile=True, process_pairs=2
    )

    assert found.verdict is verdict
    assert found.in_company
    assert device.uses[:2] == ["shared", "shared"]  # inputs are drawn, values verified
    assert ("alone" in device.uses) == (verdict is Verdict.CORRECT)


class Counted(Watched):
    """Notes who has its counters, which one profiler at a time may."""

    def __init__(self) -> None:
        super().__init__()
        self.counted_by = 0
        self.started_with: list[tuple[int, str]] = []

    @contextmanager
    def counting(self) -> Iterator[None]:
        assert self.holders == 0
        assert self.counted_by == 0
        self.counted_by = 1
        try:
            yield
        finally:
            self.counted_by = 0

    def profiler(self, candidate: Candidate, job: Job, *, timeout_s: float) -> Profiler:
        self.started_with.append((self.counted_by, self.uses[-1]))
        return super().profiler(candidate, job, timeout_s=timeout_s)


def test_a_profiler_starts_when_it_has_the_counters(store: InputStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelblaster.evaluation.timing.stopwatch.SPIN_UP_S", 0.0)
    device = Counted()

    found = trusting(device, store).evaluate(relu(store), source("honest"), baseline=source("quick"), profile=True)

    assert found.profile is not None
    assert device.started_with == [(1, "shared")]
    assert device.uses[-1] == "alone"


@pytest.mark.parametrize("in_company", [False, True])
def test_an_evaluation_says_for_how_long_it_kept_others_from_the_gpu(
    store: InputStore, in_company: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelblaster.evaluation.timing.stopwatch.SPIN_UP_S", 0.0)
    device = Watched()
    judge = trusting(device, store, in_company=in_company)
    for name, verdict in (("honest", Verdict.CORRECT), ("lazy", Verdict.WRONG_VALUES)):
        before = device.alone_s
        found = judge.evaluate(relu(store), source(name), baseline=source("quick"), profile=True, process_pairs=2)
        assert found.verdict is verdict
        assert found.alone_s == pytest.approx(device.alone_s - before, abs=0.02)
        assert (found.alone_s > 0) == (not in_company or found.correct)


def test_outputs_of_the_last_judged_call_are_copied_beside_others(
    store: InputStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelblaster.evaluation.timing.stopwatch.SPIN_UP_S", 0.0)
    device, fetched, fetch = Watched(), list[str](), FakeSession.fetch

    def noted(session: FakeSession) -> CallResult:
        fetched.append(device.uses[-1])
        return fetch(session)

    monkeypatch.setattr(FakeSession, "fetch", noted)
    assert trusting(device, store).evaluate(relu(store), source("honest"), profile=False).correct
    assert fetched[-3:] == ["alone", "alone", "shared"]
    assert set(fetched[:-3]) == {"shared"}


def test_processes_of_every_pair_start_beside_others(store: InputStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernelblaster.evaluation.timing.stopwatch.SPIN_UP_S", 0.0)
    device, started = Watched(), list[str]()
    device.at_start = lambda name, elements: started.append(device.uses[-1])

    found = trusting(device, store).evaluate(
        relu(store), source("quick"), baseline=source("honest"), profile=False, process_pairs=3
    )

    assert found.comparison is not None
    assert len(found.comparison.sessions) == 3
    assert set(started) == {"shared"}


def test_a_sweep_draws_and_starts_beside_others_and_samples_alone(
    store: InputStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernelblaster.evaluation.sweep.SPIN_UP_S", 0.0)
    device = Watched()
    judge = trusting(device, store)
    drawn = list[str]()
    use = store.use
    monkeypatch.setattr(store, "use", lambda key: drawn.append(device.uses[-1]) or use(key))

    found = judge.sweep(relu(store), [source("quick"), source("honest")])

    assert set(drawn) == {"shared"}
    assert device.sampled
    assert all(one.median_us for one in found.variants)


def test_a_trusted_candidate_is_sanitized_beside_others(store: InputStore) -> None:
    device = Watched()
    assert trusting(device, store).sanitize(relu(store), source("honest")) == []
    assert set(device.uses) == {"shared"}
