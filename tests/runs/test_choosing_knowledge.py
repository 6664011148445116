"""What an experiment knows at its beginning."""

from __future__ import annotations

from pathlib import Path

from runs_samples import FACTS

from kernelblaster.config import RunConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.store import seed_path
from kernelblaster.records.layout import RunLayout
from kernelblaster.runs.starting_knowledge import choose_knowledge

H200 = FACTS.model_copy(update={"kind": DeviceKind.CUDA})


def test_its_own_comes_first_then_what_is_asked_for_then_what_was_measured(tmp_path: Path) -> None:
    layout = RunLayout(experiment=tmp_path, run=tmp_path / "model")
    asked = RunConfig(knowledge_base=tmp_path / "mine.json")
    assert choose_knowledge(asked, layout, H200).start == asked.knowledge_base
    for facts in (H200, FACTS):
        assert choose_knowledge(RunConfig(), layout, facts).start == seed_path()
    layout.knowledge_base.write_text("{}")
    own = choose_knowledge(asked, layout, H200)
    assert own.start == layout.knowledge_base
    assert "mine.json" in own.reason
