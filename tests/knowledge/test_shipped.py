"""Which shipped knowledge base a device starts from."""

from __future__ import annotations

import pytest

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.store import KnowledgeStore, seed_path, shipped_for


def test_a_gpu_starts_from_what_was_measured_on_its_architecture() -> None:
    path = shipped_for("sm_90", DeviceKind.CUDA)
    cells = [row.cell for row in KnowledgeStore(path, owned=False).load().document.statistics]
    assert {(cell.arch, cell.device_kind) for cell in cells} == {("sm_90", DeviceKind.CUDA)}


@pytest.mark.parametrize(("arch", "kind"), [("sm_90", DeviceKind.EMULATED), ("sm_70", DeviceKind.CUDA)])
def test_nothing_measured_elsewhere_is_taken(arch: str, kind: DeviceKind) -> None:
    assert shipped_for(arch, kind) == seed_path()
