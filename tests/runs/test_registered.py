"""Models, devices, policies and profilers of somebody else's making are chosen by name like the built-in ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernelblaster.config import ModelConfig, RunConfig
from kernelblaster.devices.profilers import PROFILERS, EventProfiler, profiled_by
from kernelblaster.devices.profiles import ProfileSource
from kernelblaster.devices.registry import DEVICES, DeviceRequest, OpenedDevice
from kernelblaster.errors import UsageError
from kernelblaster.knowledge.policies import POLICIES
from kernelblaster.models.backends import BACKENDS
from kernelblaster.models.factory import build_model
from kernelblaster.registry import Registry
from kernelblaster.runs.choices import choose_device, choose_model_config

REGISTRIES: tuple[Registry[Any], ...] = (DEVICES, BACKENDS, POLICIES, PROFILERS)


class Oracle:
    """A kind of model."""

    def complete(self, config: ModelConfig) -> ModelConfig:
        return config.model_copy(update={"name": "oracle"})

    def describe(self, config: ModelConfig) -> str:
        return f"the {config.name}"

    def build(self, config: ModelConfig, exchange: Path, ledger: object) -> Any:
        return SimpleNamespace(name=config.name)


@pytest.fixture
def mine() -> Iterator[None]:
    """A device, a model kind and a profiler called `mine`."""
    DEVICES.register("mine", lambda request: OpenedDevice(SimpleNamespace(facts=request), "mine"), "a device")
    BACKENDS.register("mine", Oracle(), "a model")
    PROFILERS.register("mine", lambda device, candidate, job, timeout_s: (device, candidate, timeout_s), "a profiler")
    yield
    for registry in (DEVICES, BACKENDS, PROFILERS):
        registry.unregister("mine")


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda it: type(it).__name__)
def test_everything_that_is_registered_can_be_loaded(registry: Registry[Any]) -> None:
    for name in registry:
        assert registry.get(name) is not None
        assert registry.about(name)


@pytest.mark.usefixtures("mine")
def test_a_device_is_opened_by_its_name_with_the_configured_limits() -> None:
    opened = choose_device(RunConfig(device="mine", gpu_type="H200", evaluation={"memory_gb": 3}), lambda _: None)
    request: Any = opened.device.facts
    assert isinstance(request, DeviceRequest)
    assert (request.gpu_type, request.limits.memory_bytes) == ("h200", 3 << 30)


@pytest.mark.usefixtures("mine")
def test_a_model_is_completed_and_built_by_its_name(tmp_path: Path) -> None:
    choice = choose_model_config(ModelConfig(kind="mine"))
    assert choice.reason.startswith("the oracle")
    ledger: Any = None
    assert build_model(choice.config, tmp_path, ledger).name == "oracle"


@pytest.mark.usefixtures("mine")
def test_a_profiler_takes_the_place_of_the_devices_own() -> None:
    device: Any = SimpleNamespace(profiler=lambda candidate, job, timeout_s: "own")
    job: Any = None
    assert profiled_by(device, "device").profiler("c", job, timeout_s=1) == "own"  # type: ignore[arg-type]
    assert profiled_by(device, "mine").profiler("c", job, timeout_s=1) == (device, "c", 1)  # type: ignore[arg-type]


def test_unknown_names_are_refused_with_those_there_are() -> None:
    with pytest.raises(UsageError, match="tpu"):
        choose_device(RunConfig(device="tpu"), lambda _: None)
    with pytest.raises(UsageError, match="seer"):
        choose_model_config(ModelConfig(kind="seer"))
    with pytest.raises(UsageError) as refused:
        PROFILERS.get("vtune")
    assert "events" in refused.value.hint


def test_times_alone_are_a_profile_without_counters() -> None:
    class Session:
        def __enter__(self) -> Session:
            return self

        def __exit__(self, *_: object) -> None: ...

        def call(self, poison: int) -> None: ...

        def time_calls(self, perturbations: list[int]) -> list[SimpleNamespace]:
            return [SimpleNamespace(device_us=float(us)) for us in (3, 1, 2, 5, 4)]

    device: Any = SimpleNamespace(open=lambda candidate, job, timeout_s: Session())
    candidate: Any = SimpleNamespace(built=lambda: SimpleNamespace(resources=()))
    job: Any = None
    with EventProfiler(device, candidate, job, 1.0) as profiler:
        profile = profiler.collect()()
    assert profile.source is ProfileSource.EVENTS
    assert list(profile.totals.values()) == [3000.0]
    assert profile.warnings
