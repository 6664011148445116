from __future__ import annotations

import json
import math

import numpy as np
import pytest
from knowledge_samples import context, document

from kernelblaster.errors import KnowledgeError
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.schema import KnowledgeDocument
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.knowledge.upstream import LARGEST_GAIN, import_file


def optimization(technique: str, **fields) -> dict:
    shipped = {
        "technique": technique,
        "description": f"about {technique}",
        "category": "memory",
        "predicted_improvement": None,
        "actual_improvement": None,
        "confidence_score": 0.5,
        "last_updated": "2026-01-01",
        "usage_count": 0,
        "predicted_speedup": 1.0,
        "actual_speedup": None,
        "initial_elapsed_cycles": None,
    }
    return shipped | fields


def write(tmp_path, *optimizations: dict, state: str = "busy", **fields):
    entry = {"optimizations": list(optimizations), "primary_bottleneck": "text", **fields}
    content = {
        "known_states": [state],
        "optimization_strategies": {state: entry},
        "composite_optimizations": {},
        "discovered_states": {},
        "schema_version": 7,
    }
    path = tmp_path / "optimization_database.json"
    path.write_text(json.dumps(content))
    return path


def test_its_numbers_become_weak_priors_and_no_statistics(tmp_path):
    known = import_file(document(), write(tmp_path, optimization("widen", predicted_improvement=30)))
    [belief] = known.imported_priors
    assert (belief.state, belief.technique) == ("busy", "widen")
    assert belief.mean_log_gain == pytest.approx(math.log(1.3))
    assert belief.weight <= 1
    assert known.statistics == ()
    assert known.techniques["widen"] == document().techniques["widen"]


@pytest.mark.parametrize(
    ("fields", "gain"),
    [
        ({}, None),
        ({"predicted_speedup": 2.0}, math.log(2)),
        ({"actual_speedup": 2.0, "usage_count": 0}, None),
        ({"actual_speedup": 0.5, "usage_count": 4, "predicted_improvement": 50}, math.log(0.5)),
        ({"predicted_speedup": 1000.0}, LARGEST_GAIN),
        ({"predicted_improvement": -100}, None),
        ({"predicted_improvement": "lots", "usage_count": True}, None),
    ],
)
def test_which_number_is_believed(tmp_path, fields, gain):
    known = import_file(document(), write(tmp_path, optimization("widen", **fields)))
    found = [belief.mean_log_gain for belief in known.imported_priors]
    assert found == ([] if gain is None else [pytest.approx(gain)])


def test_unknown_states_and_techniques_come_along_marked(tmp_path):
    path = write(tmp_path, optimization("Warp Juggling"), state="odd state", secondary_characteristics="one, two,")
    known = import_file(document(), path)
    assert known.techniques["Warp_Juggling"].imported
    assert known.states["odd_state"].rules == ()
    assert known.states["odd_state"].secondary_characteristics == ("one", "two")
    selection = KnowledgeBase(known).select("odd_state", context(), np.random.default_rng(0))
    assert selection.technique in {"Warp_Juggling", "free_form"}


def test_importing_twice_adds_nothing(tmp_path):
    path = write(tmp_path, optimization("widen", predicted_improvement=30), optimization("new_one"))
    once = import_file(document(), path)
    assert import_file(once, path) == once


def test_nonsense_entries_are_passed_over(tmp_path):
    path = write(tmp_path, {"description": "no name"}, optimization(""), optimization("widen"))
    path.write_text(path.read_text().replace('"composite', '"broken": 3, "composite'))
    assert import_file(document(), path).states.keys() == document().states.keys()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"optimization_strategies": []}', "not json"])
def test_other_files_are_refused(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_text(content)
    with pytest.raises(KnowledgeError) as caught:
        import_file(document(), path)
    assert caught.value.hint


def test_what_was_imported_into_the_seed_is_a_valid_file(tmp_path):
    store = KnowledgeStore(tmp_path / "kb" / "optimization_database.json")
    store.create(seed_path())
    path = write(
        tmp_path, optimization("vectorized_memory_access", predicted_improvement=20), state="cache_inefficient"
    )
    store.update(lambda known: import_file(known, path))
    again = KnowledgeDocument.model_validate_json(store.path.read_bytes())
    assert "vectorized_memory_access" in again.states["cache_inefficient"].techniques
    assert len(again.imported_priors) == 1
