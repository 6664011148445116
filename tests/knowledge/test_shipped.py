"""Which shipped knowledge base a device starts from."""

from __future__ import annotations

from pathlib import Path

import pytest
from knowledge_samples import document, recorded, transition

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge import store
from kernelblaster.knowledge.store import KnowledgeStore, seed_path, shipped_for


def test_a_gpu_starts_from_what_was_measured_on_its_architecture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    KnowledgeStore(tmp_path / "seed.json").write(document())
    KnowledgeStore(tmp_path / "h200.json").write(recorded(document(), transition("a")))
    monkeypatch.setattr(store, "seed_path", lambda: tmp_path / "seed.json")
    assert shipped_for("sm_90", DeviceKind.CUDA) == tmp_path / "h200.json"
    assert shipped_for("sm_80", DeviceKind.CUDA) == tmp_path / "seed.json"


@pytest.mark.parametrize(("arch", "kind"), [("sm_90", DeviceKind.EMULATED), ("sm_70", DeviceKind.CUDA)])
def test_nothing_measured_elsewhere_is_taken(arch: str, kind: DeviceKind) -> None:
    assert shipped_for(arch, kind) == seed_path()
