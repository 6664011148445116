"""What processes that compile beside each other keep of max-autotune's choices: Inductor's cache, on disk."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier, Event

import pytest
from pytorch_device import Cpu
from torch._inductor.codecache import CacheBase, PersistentCache
from torch._inductor.runtime.benchmarking import benchmarker
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch._inductor.triton_bundler import TritonBundler

from kernelblaster.runs.inductor_choices import choices_shared, choose_fused_kernels, kernels_stored_alone


@dataclass(frozen=True)
class Choice:
    """A kernel among which Inductor chooses."""

    name: str

    def hash_key(self) -> str:
        return self.name


CHOICES = [Choice("aten"), Choice("triton")]


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "cache" / "notes"
    monkeypatch.setattr(CacheBase, "get_local_cache_path", staticmethod(lambda: path))
    return path


def looked_up(operation: str, benchmark: Callable[[Sequence[Choice]], dict[Choice, float]] | None) -> list[float]:
    return list(PersistentCache().lookup(CHOICES, operation, "inputs", benchmark).values())


def test_no_process_drops_the_notes_of_another(notes: Path) -> None:
    together = Barrier(3, timeout=20)

    def measure(choices: Sequence[Choice]) -> dict[Choice, float]:
        together.wait()  # all have read the notes, none has written any
        return dict.fromkeys(choices, 1.0)

    operations = ["mm", "bmm", "convolution"]
    with choices_shared(Cpu()), ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda operation: looked_up(operation, measure), operations))
    assert [looked_up(operation, None) for operation in operations] == [[1.0, 1.0]] * 3
    assert not any(path.suffix == ".tmp" for path in notes.parent.iterdir())


def test_equal_operations_are_measured_once(notes: Path) -> None:
    measured = list[int]()

    def measure(choices: Sequence[Choice]) -> dict[Choice, float]:
        time.sleep(0.05)
        measured.append(1)
        return dict.fromkeys(choices, float(len(measured)))

    with choices_shared(Cpu()), ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda _: looked_up("mm", measure), range(8)))
    assert found == [[1.0, 1.0]] * 8
    assert len(measured) == 1


def test_what_cannot_be_measured_is_measured_by_the_next(notes: Path) -> None:
    def fail(choices: Sequence[Choice]) -> dict[Choice, float]:
        raise RuntimeError("no room")

    lookup, update = PersistentCache.lookup, CacheBase.update_local_cache
    with pytest.raises(RuntimeError, match="no room"), choices_shared(Cpu()):
        looked_up("mm", fail)
    assert (PersistentCache.lookup, CacheBase.update_local_cache) == (lookup, update), "all is as it was"
    with choices_shared(Cpu()):
        assert looked_up("mm", lambda choices: dict.fromkeys(choices, 2.0)) == [2.0, 2.0]


def test_nothing_is_built_beside_what_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    device, under_way, ended = Cpu(), Event(), list[bool]()

    def build(tuner: object, config: str) -> str:
        under_way.set()
        time.sleep(0.05)
        if config == "pooled":
            CachingAutotuner._precompile_config(tuner, "of a pooled one")
        ended.append(device.holder)
        return config

    monkeypatch.setattr(CachingAutotuner, "_precompile_config", build)
    with ThreadPoolExecutor(2) as pool, choices_shared(device) as held:
        built = [pool.submit(CachingAutotuner._precompile_config, None, "pooled") for _ in range(6)]
        assert under_way.wait(20)
        with held():
            before = len(ended)
            assert CachingAutotuner._precompile_config(None, "measured") == "measured"
            assert len(ended) == before + 1, "builds of the others have ended, or have not begun"
            assert device.holder
        assert [one.result() for one in built] == ["pooled"] * 6
    assert 1 <= before < 12
    assert ended.count(True) == 1
    assert CachingAutotuner._precompile_config is build, "all is as it was"


@dataclass(frozen=True, eq=False)
class Built(Choice):
    """One that Inductor builds; what pools have built counts for nothing."""

    device: Cpu
    held_when_built: list[bool]

    def precompile(self) -> None:
        self.held_when_built.append(self.device.holder)
        if self.name == "bad":
            raise ValueError(self.name)


def test_choices_are_built_before_the_device_is_held(notes: Path) -> None:
    device, built = Cpu(), list[bool]()
    choices = [Choice("aten"), Built("bad", device, built), Built("triton", device, built)]

    def benchmark(some: Sequence[Choice]) -> dict[Choice, float]:
        with held():
            assert built == [False, False]
            return dict.fromkeys(some, 1.0)

    with choices_shared(device) as held:
        for _ in range(2):
            assert len(PersistentCache().lookup(choices, "mm", "inputs", benchmark)) == 3
    assert built == [False, False], "what is known needs no kernel"


def test_graphs_are_stored_without_kernels_for_as_long_as_asked() -> None:
    assert TritonBundler.is_enabled()
    with kernels_stored_alone():
        assert not TritonBundler.is_enabled()
    assert TritonBundler.is_enabled()


def test_a_kernel_that_cannot_win_is_called_once(notes: Path) -> None:
    calls = list[float]()

    def takes(ms: float) -> Callable[[], None]:
        def call() -> None:
            calls.append(ms)
            time.sleep(ms / 1000)

        return call

    def benchmark(choices: Sequence[Choice]) -> dict[Choice, float]:
        with held():
            return {choice: benchmarker.benchmark_gpu(takes(float(choice.name))) for choice in choices}

    with choices_shared(Cpu()) as held:
        several = [Choice(ms) for ms in ("150", "2", "20", "140")]
        found = list(PersistentCache().lookup(several, "mm", "inputs", benchmark).values())
        assert calls == [150] * 2 + [2] * 4 + [20] * 4 + [140], "what may yet win is timed, and what takes long called"
        assert 150 <= found[0] < 10_000
        assert 140 <= found[3] < 10_000
        assert found[1:3] == [0.01, 0.01], "by the device's clock"
        assert 160 <= benchmarker.benchmark_gpu(takes(160)) < 10_000
        assert calls[-3:] == [140, 160, 160], "no other kernel is compared with those"


def test_kernels_are_compared_without_their_launches(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planned = list[str]()

    def kernel(name: str) -> Callable[[], None]:
        def call() -> None:
            if name not in planned:
                planned.append(name)
                time.sleep(0.05)

        return call

    monkeypatch.setattr(type(benchmarker), "benchmark_gpu", lambda benchmarker, call: 7.0)

    def benchmark(choices: Sequence[Choice]) -> dict[Choice, float]:
        with held():
            return {choice: benchmarker.benchmark_gpu(kernel(choice.name)) for choice in choices}

    with choices_shared(Cpu()) as held:
        assert looked_up("mm", benchmark) == [0.01, 0.01], "ten microseconds, by the device's clock"
        with held():
            assert benchmarker.benchmark_gpu(kernel("fused")) == 0.01, "compared with those, by the same clock"
    assert planned == ["aten", "triton", "fused"]
    assert benchmarker.benchmark_gpu(kernel("later")) == 7.0, "all is as it was"


def test_the_time_of_a_build_is_not_that_of_the_kernel(notes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(tuner: object, config: str) -> str:
        time.sleep(0.2)
        return config

    monkeypatch.setattr(CachingAutotuner, "_precompile_config", build)

    def kernel() -> Callable[[], None]:
        built = list[str]()

        def call() -> None:
            if not built:
                built.append(CachingAutotuner._precompile_config(None, "config"))

        return call

    def benchmark(choices: Sequence[Choice]) -> dict[Choice, float]:
        return {choice: benchmarker.benchmark_gpu(kernel()) for choice in choices}

    device = Cpu()
    with choices_shared(device), device.held():
        assert looked_up("mm", benchmark) == [0.01, 0.01]


def test_fused_kernels_choose_on_a_device_that_is_held_but_while_they_are_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    device, built = Cpu(), list[bool]()

    def build(tuner: object, config: str) -> str:
        built.append(device.holder)
        if config == "bad":
            raise ValueError(config)
        return config

    monkeypatch.setattr(CachingAutotuner, "_precompile_config", build)

    def first_call(*configs: str) -> None:
        for config in configs:
            assert device.holder
            assert CachingAutotuner._precompile_config(None, config) == config
        assert device.holder
        with ThreadPoolExecutor(1) as pool:
            pool.submit(CachingAutotuner._precompile_config, None, "pooled").result()
        assert device.holder, "what others build leaves it held"
        assert benchmarker.benchmark_gpu(lambda: None) == 0.01, "variants are compared by the device's clock"

    choose_fused_kernels(first_call, ["a", "b"], device)
    assert built == [False, False, True]
    with pytest.raises(ValueError, match="bad"):
        choose_fused_kernels(first_call, ["bad"], device)
    assert not device.holder
    assert CachingAutotuner._precompile_config is build, "all is as it was"
