"""What ptxas says of a kernel reaches the emulated GPU in its own terms."""

from __future__ import annotations

from kernelblaster.devices.emulated.translation import ptxas_resources
from kernelblaster.devices.profiles import KernelResources


def test_resources_are_passed_on_by_symbol_and_complaints_stay_here() -> None:
    figures = {"registers": 40, "shared_bytes": 16, "spill_store_bytes": 8, "spill_load_bytes": 4, "stack_bytes": 24}
    known = KernelResources(name="k(float*)", symbol="_Z1kPf", warnings=("serialized",), **figures)
    found = ptxas_resources([known, known.model_copy(update={"symbol": None})])
    assert list(found) == ["_Z1kPf"]
    passed = found["_Z1kPf"]
    assert {name: getattr(passed, name) for name in figures} == figures
