"""The data sets of the shipped H200 searches are what `train export` makes of them, and hold nothing held out."""

from __future__ import annotations

import hashlib
import lzma
from pathlib import Path

import pytest

from kernelblaster.api.training_data import shipped_recordings
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.problems.tags import Split
from kernelblaster.training.datasets import CARD, Card
from kernelblaster.training.exporting import export
from kernelblaster.training.rows import DataRow, PreferenceRow, SftRow, TransitionRow, UnpairedRow
from kernelblaster.training.splits import make_splits

SHIPPED = Path(__file__).parents[2] / "docs" / "results" / "h200_training_sets"
KINDS: dict[str, type[DataRow]] = {
    "sft": SftRow, "preferences": PreferenceRow, "unpaired": UnpairedRow, "transitions": TransitionRow,
}  # fmt: skip


def content(name: str) -> bytes:
    return lzma.decompress((SHIPPED / f"{name}.jsonl.xz").read_bytes())


@pytest.mark.parametrize("name", KINDS)
def test_a_set_is_what_its_card_says_and_of_problems_to_learn_from(catalogue: Catalogue, name: str) -> None:
    card = Card.model_validate_json((SHIPPED / f"{name}{CARD}").read_bytes())
    splits = make_splits(catalogue.problems)
    rows = [KINDS[name].model_validate_json(line) for line in content(name).splitlines()]
    assert hashlib.sha256(content(name)).hexdigest() == card.sha256
    assert len(rows) == card.rows > 0
    assert card.splits == [Split.TRAIN]
    for row in rows:
        entry = splits.of(row.problem)
        assert entry is not None
        assert entry.split == row.split == Split.TRAIN


def test_they_are_made_again_from_recordings_and_verdicts(catalogue: Catalogue, tmp_path: Path) -> None:
    export(shipped_recordings(), make_splits(catalogue.problems), tmp_path)
    for name in KINDS:
        assert (tmp_path / f"{name}.jsonl").read_bytes() == content(name), f"make {name} again: train export"
        assert (tmp_path / f"{name}{CARD}").read_text() == (SHIPPED / f"{name}{CARD}").read_text()
