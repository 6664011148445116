"""Import of the knowledge base file of KernelBlaster's first release.

Only fields that mean something here are read, all others are ignored. Its numbers are predictions, or scores under
another protocol, and name no hardware: they become weak priors (`ImportedPrior`), never measurements. States and
techniques that the document does not have are taken over and marked `imported`; states that come this way have no
rules, so that only a model can choose them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernelblaster.errors import KnowledgeError
from kernelblaster.knowledge.schema import (
    FREE_FORM,
    MOST_MIB,
    ImportedPrior,
    KnowledgeDocument,
    Prior,
    StateEntry,
    StateGroup,
    TechniqueEntry,
)
from kernelblaster.storage.bounded_io import read_bounded

PREDICTED_WEIGHT = 0.5
USED_WEIGHT = 1.0
"""Pseudo-observations that a predicted number, and one that its release had used, are worth."""
LARGEST_GAIN = math.log(3.0)
"""Bound on the size of an imported log speed-up."""

_NEUTRAL_PRIOR = Prior(p_correct=0.6, mean_log_gain=0.05)
_TEXT_LIMIT = 300


@dataclass(frozen=True)
class _Optimization:
    """One optimisation of one state, as far as it is understood."""

    state: str
    technique: str
    description: str
    category: str
    mean_log_gain: float | None
    weight: float


def import_file(document: KnowledgeDocument, path: Path) -> KnowledgeDocument:
    """The document with what the other release's file adds. Importing a file twice adds nothing twice.

    Raises:
        KnowledgeError: the file cannot be read, or is not of that release.
    """
    strategies = _strategies(path)
    optimizations = [
        optimization
        for state, entry in strategies.items()
        for raw in _list(entry.get("optimizations"))
        if (optimization := _optimization(_identifier(state), raw)) is not None
    ]
    techniques = {**document.techniques, **_new_techniques(optimizations, document)}
    states = dict(document.states)
    for state, entry in strategies.items():
        name = _identifier(state)
        members = [optimization.technique for optimization in optimizations if optimization.state == name]
        states[name] = _state(states.get(name), entry, members, has_free_form=FREE_FORM in techniques)
    beliefs = (_belief(optimization, path.name) for optimization in optimizations)
    known = dict.fromkeys(document.imported_priors)
    known.update(dict.fromkeys(belief for belief in beliefs if belief is not None))
    update = {"states": states, "techniques": techniques, "imported_priors": tuple(known)}
    return document.model_copy(update=update)


def _strategies(path: Path) -> dict[str, Mapping[str, Any]]:
    try:
        content = json.loads(read_bounded(path, MOST_MIB))
    except (OSError, ValueError) as error:
        raise KnowledgeError(f"cannot read {path}: {error}", hint="give a JSON file of the first release") from error
    strategies = content.get("optimization_strategies") if isinstance(content, dict) else None
    if not isinstance(strategies, dict):
        raise KnowledgeError(
            f"{path} has no optimization_strategies", hint="give an optimization_database.json of the first release"
        )
    return {state: entry for state, entry in strategies.items() if _identifier(state) and isinstance(entry, dict)}


def _optimization(state: str, raw: object) -> _Optimization | None:
    if not isinstance(raw, dict) or not isinstance(raw.get("technique"), str) or not _identifier(raw["technique"]):
        return None
    gain, weight = _gain(raw)
    return _Optimization(
        state=state,
        technique=_identifier(raw["technique"]),
        description=_text(raw.get("description")),
        category=_text(raw.get("category")) or "imported",
        mean_log_gain=gain,
        weight=weight,
    )


def _gain(raw: Mapping[str, Any]) -> tuple[float | None, float]:
    """Log speed-up that the entry claims and its weight: a used speed-up, else a prediction, else nothing."""
    used = _number(raw.get("usage_count"))
    actual = _number(raw.get("actual_speedup"))
    if used and used > 0 and actual and actual > 0:
        return _bounded(math.log(actual)), USED_WEIGHT
    percent = _number(raw.get("predicted_improvement"))
    if percent is not None and percent > -100:
        return _bounded(math.log1p(percent / 100)), PREDICTED_WEIGHT
    predicted = _number(raw.get("predicted_speedup"))
    if predicted and predicted > 0 and predicted != 1.0:
        return _bounded(math.log(predicted)), PREDICTED_WEIGHT
    return None, PREDICTED_WEIGHT


def _belief(optimization: _Optimization, source: str) -> ImportedPrior | None:
    if optimization.mean_log_gain is None:
        return None
    return ImportedPrior(
        state=optimization.state,
        technique=optimization.technique,
        mean_log_gain=optimization.mean_log_gain,
        weight=optimization.weight,
        source=source,
    )


def _new_techniques(optimizations: list[_Optimization], document: KnowledgeDocument) -> dict[str, TechniqueEntry]:
    """Techniques the document lacks; the first description of each counts."""
    new: dict[str, TechniqueEntry] = {}
    for optimization in optimizations:
        if optimization.technique in document.techniques or optimization.technique in new:
            continue
        new[optimization.technique] = TechniqueEntry(
            category=optimization.category,
            summary=optimization.description or optimization.technique.replace("_", " "),
            prior=_NEUTRAL_PRIOR,
            imported=True,
        )
    return new


def _state(
    known: StateEntry | None, entry: Mapping[str, Any], members: list[str], *, has_free_form: bool
) -> StateEntry:
    """The known state with further members, or a new one without rules."""
    if known is not None:
        return known.model_copy(update={"techniques": tuple(dict.fromkeys((*known.techniques, *members)))})
    secondary = entry.get("secondary_characteristics")
    parts = secondary.split(",") if isinstance(secondary, str) else _list(secondary)
    own = [*members, FREE_FORM] if has_free_form else members
    return StateEntry(
        group=StateGroup.HYBRID,
        primary_bottleneck=_text(entry.get("primary_bottleneck")) or "imported without a description",
        secondary_characteristics=tuple(text for part in parts if (text := _text(part))),
        techniques=tuple(dict.fromkeys(own)),
    )


def _identifier(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name.strip()).strip("_")


def _text(value: object) -> str:
    return " ".join(value.split())[:_TEXT_LIMIT] if isinstance(value, str) else ""


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def _bounded(gain: float) -> float:
    return max(-LARGEST_GAIN, min(LARGEST_GAIN, gain))
