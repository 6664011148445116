"""Statistics reckoned anew: a document from definitions and the transitions that runs have stored."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from pathlib import Path

from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.schema import KnowledgeDocument
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.replay.transition import Transition


def relearn(definitions: KnowledgeDocument, transitions: Iterable[Transition]) -> KnowledgeDocument:
    """The definitions with what the transitions teach, as if they had just been recorded, and no other statistics.

    Transitions of states that the definitions do not know teach nothing here. Raises KnowledgeError, MachineError.
    """
    with tempfile.TemporaryDirectory() as room:
        store = KnowledgeStore(Path(room) / "optimization_database.json")
        store.write(definitions.model_copy(update={"statistics": (), "runs": {}}))
        experience = Experience(store)
        try:
            for transition in transitions:
                if transition.state in definitions.states:
                    experience.record(transition)
            return experience.document()
        finally:
            experience.close()
