"""Credit anew, from what a run has stored: replies, kernels, machine code and counters, by the rules of today.

What a transition is credited with was decided by the version that made it. Detectors have been mended since, and so has
the reading of what replies declare.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from pydantic import ValidationError

from kernelblaster.agent.files import ProblemFiles
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.credit import declared_techniques, done_technique, what_was_done
from kernelblaster.knowledge.schema import TechniqueEntry
from kernelblaster.problems.loader import identify
from kernelblaster.records.layout import RunLayout
from kernelblaster.replay.transition import Transition


def recredited(
    experiment: Path, transitions: Iterable[Transition], techniques: Mapping[str, TechniqueEntry]
) -> Iterator[Transition]:
    """An experiment's transitions, credited anew; as they are where the run does not hold both kernels."""
    searches = defaultdict[str, list[_Kernels]](list)
    for run in RunLayout.of_experiment(experiment):
        for directory in run.problems():
            searches[str(identify(directory)[0])].append(_Kernels(directory))
    for transition in transitions:
        search = next((one for one in searches[transition.problem] if one.holds(transition)), None)
        yield transition if search is None else search.credited(transition, techniques)


class _Kernels:
    """The kernels of one search, and what was found of them."""

    def __init__(self, directory: Path) -> None:
        self._files = ProblemFiles(directory)
        self._found: dict[str, Evaluation] | None = None

    def holds(self, transition: Transition) -> bool:
        """Whether both kernels of a transition lie there."""
        names = (transition.parent_sha256, transition.candidate_sha256)
        return all(name is not None and self._files.candidate_path(name).is_file() for name in names)

    def credited(self, transition: Transition, techniques: Mapping[str, TechniqueEntry]) -> Transition:
        """The transition with what detectors find today."""
        if transition.candidate_sha256 is None:
            return transition
        names = (transition.parent_sha256, transition.candidate_sha256)
        sources = [self._files.candidate(name) for name in names]
        parent, candidate = (self._evaluations().get(name) for name in names)
        totals = candidate.profile.totals if candidate is not None and candidate.profile is not None else {}
        machine = [None if one is None else one.machine for one in (parent, candidate)]
        found = what_was_done((sources[0], machine[0]), (sources[1], machine[1]), totals)
        declared = self._declared(transition, techniques)
        done = done_technique(transition.technique, declared, found.gained, techniques, found.more)
        return transition.model_copy(update={"declared": declared, "done": done, "gained": tuple(sorted(found.gained))})

    def _declared(self, transition: Transition, techniques: Mapping[str, TechniqueEntry]) -> tuple[str, ...]:
        """What the step's last reply says it applied; as it was stored where the reply is gone."""
        try:
            reply = self._files.reply_text(f"{transition.slot}/attempt-{transition.attempts - 1}")
        except (FileNotFoundError, ValidationError):
            return transition.declared
        return declared_techniques(reply, techniques)

    def _evaluations(self) -> Mapping[str, Evaluation]:
        """By SHA-256 of the source; of several the one of which most is known. Those of other versions are left out."""
        if self._found is None:
            self._found = {}
            for path in sorted(self._files.evaluation_path("any").parent.glob("*.json")):
                try:
                    one = Evaluation.model_validate_json(path.read_bytes())
                except ValidationError:
                    continue
                known = self._found.get(one.source_sha256)
                if known is None or _told(one) > _told(known):
                    self._found[one.source_sha256] = one
        return self._found


def _told(evaluation: Evaluation) -> int:
    return bool(evaluation.machine) + (evaluation.profile is not None)
