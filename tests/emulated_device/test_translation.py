"""The emulator's words beside those of a device."""

from __future__ import annotations

import pytest

from kernelblaster.devices.emulated.emulator import gpu_named
from kernelblaster.devices.emulated.translation import device_facts, ptxas_resources, translated_errors
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelResources
from kernelblaster.errors import DeviceError, MachineError, UsageError
from ptxemu.errors import CoreFailure, InvalidInput, ToolkitMissing
from ptxemu.metrics.names import NsightMetric


@pytest.mark.parametrize("metric", NsightMetric)
def test_metrics_have_the_names_and_units_of_every_device(metric: NsightMetric) -> None:
    assert Metric(str(metric)).unit == metric.unit


@pytest.mark.parametrize(
    ("raised", "seen"),
    [(InvalidInput, UsageError), (ToolkitMissing, MachineError), (CoreFailure, DeviceError)],
)
def test_errors_keep_message_hint_and_exit_code(raised: type, seen: type) -> None:
    with pytest.raises(seen) as caught, translated_errors():
        raise raised("what", hint="what to do")
    assert caught.value.message == "what"
    assert caught.value.hint.startswith("what to do")
    assert caught.value.exit_code == raised.exit_code


def test_facts_say_that_they_are_of_no_real_gpu() -> None:
    facts = device_facts(gpu_named("H200"), "13.0.88")
    assert (facts.kind, facts.arch, facts.cuda_version) == (DeviceKind.EMULATED, "sm_90", "13.0.88")
    assert facts.sm_count == 132


def test_an_unknown_gpu_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError) as caught:
        gpu_named("h2000")
    assert "h200" in caught.value.hint


def test_resources_are_passed_on_by_symbol_and_complaints_stay_here() -> None:
    figures = {"registers": 40, "shared_bytes": 16, "spill_store_bytes": 8, "spill_load_bytes": 4, "stack_bytes": 24}
    known = KernelResources(name="k(float*)", symbol="_Z1kPf", warnings=("serialized",), **figures)
    found = ptxas_resources([known, known.model_copy(update={"symbol": None})])
    assert list(found) == ["_Z1kPf"]
    passed = found["_Z1kPf"]
    assert {name: getattr(passed, name) for name in figures} == figures
