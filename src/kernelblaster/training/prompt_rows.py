"""Builds the prompts of the stages: problems on this device and, in stage `midend`, kernels to improve."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import zip_longest

import numpy as np

from kernelblaster.agent.task import Task
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.cuda_source.features import source_features
from kernelblaster.evaluation.results import Evaluation
from kernelblaster.knowledge.decisions import Classification, NoTechnique, SelectionContext
from kernelblaster.knowledge.derived import observed
from kernelblaster.models.base import Message
from kernelblaster.problems.families import family_of
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.tags import Split
from kernelblaster.python_candidates.language import CandidateLanguage, language_of
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.prompting import (
    Example,
    Parent,
    PromptAdvice,
    PromptForm,
    backend_prompt,
    example_of,
    frontend_prompt,
    midend_prompt,
    shown_kernel,
)
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.sources import KnownReply
from kernelblaster.training.splits import SplitEntry, Splits
from kernelblaster.training.stages import Stage

MOST_PARENTS = 4
"""Per problem; slow ones too, else there is nothing left to gain."""
MOST_TECHNIQUES = 2
"""Per parent, in stage `backend`."""


class PromptBuilder:
    """Builds rows of prompts.

    Args:
        judge: whose device, precision and size the prompts tell; keeps what it judges.
        splits: of the data set.
        form: how much a prompt tells.
        language: what replies are to be written in.
    """

    def __init__(
        self, judge: StoredJudge, splits: Splits, form: PromptForm, language: CandidateLanguage = CandidateLanguage.CUDA
    ) -> None:
        self._judge = judge
        self._shared = judge.shared
        self._splits = splits
        self._form = form
        self._language = language
        self._posed = cache(self._shared.pose)

    def frontend(self, problems: Sequence[Problem]) -> list[PromptRow]:
        """One row per problem, with a worked example of another family. Raises ProblemError."""
        shows_example = self._form is PromptForm.FULL and self._language is CandidateLanguage.CUDA
        examples = self._examples(problems) if shows_example else {}
        rows = []
        for problem in problems:
            entry = self._entry(problem)
            task = self._posed(problem)
            example = next((found for family, found in examples.items() if family != entry.family), None)
            prompt = frontend_prompt(task, example, self._form, self._language)
            rows.append(self._row(task, entry, Stage.FRONTEND).model_copy(update={"prompt": prompt}))
        return rows

    def asked_again(self, problem: Problem, reply: KnownReply, stage: Stage) -> tuple[Message, ...] | None:
        """The prompt that a reply could have been written to here; None for another precision or an unknown parent.

        Raises ProblemError.
        """
        task, parent = self._posed(problem), shown_kernel(reply.prompt)
        if reply.precision != task.precision or (stage is not Stage.FRONTEND and not parent):
            return None
        if stage is Stage.FRONTEND:
            return frontend_prompt(task, None, self._form)
        return midend_prompt(task, Parent(parent), self._form)

    def midend(self, problems: Sequence[Problem], parents: Mapping[str, Sequence[str]]) -> list[PromptRow]:
        """A row per problem and parent: its start, judged here, and others that this judge found correct.

        Raises ProblemError, DeviceError.
        """
        rows = []
        for problem in problems:
            entry, task = self._entry(problem), self._posed(problem)
            for source in self._parents(problem, parents):
                update = {
                    "prompt": midend_prompt(task, Parent(source), self._form, self._language),
                    "parent": source,
                    "parent_sha256": source_digest(source),
                }
                rows.append(self._row(task, entry, Stage.MIDEND).model_copy(update=update))
        return rows

    def backend(self, problems: Sequence[Problem], parents: Mapping[str, Sequence[str]]) -> list[PromptRow]:
        """A row per problem, parent and technique; each parent is judged here once more, with its counters.

        Techniques are those that the knowledge base lists for the parent's bottleneck, drawn by their curated priors:
        what was measured with them does not count, for some of it is of held-out problems. A parent whose counters are
        not at hand, or for whose bottleneck nothing is left to try, has no row.

        Raises ProblemError, DeviceError.
        """
        rows = []
        for problem in problems:
            entry, task = self._entry(problem), self._posed(problem)
            for source in self._parents(problem, parents):
                _, found = self._judge.evaluate(problem, source, source, profile=True)
                bottleneck = self._shared.classify(found) if found.correct else None
                if bottleneck is None:
                    continue
                for technique in self._techniques(task, source, found, bottleneck):
                    advice = PromptAdvice(bottleneck, technique, self._shared.knowledge.techniques[technique])
                    rows.append(self._backend_row(task, entry, Parent(source, found), advice))
        return rows

    def _techniques(self, task: Task, source: str, found: Evaluation, bottleneck: Classification) -> list[str]:
        """Drawn for this kernel, the same ones each time."""
        base, facts = self._shared.knowledge.without_memory, self._shared.facts
        observations = {}
        if found.profile is not None:
            observations = observed(found.profile, facts, found.timing, source_features(source))
        where = SelectionContext(
            arch=facts.arch,
            device_kind=facts.kind,
            op_family=family_of(task.problem.reference_path),
            precision=task.precision,
            observed=observations,
            libraries=tuple(task.libraries),
        )
        rng = np.random.default_rng(int(source_digest(source)[:16], 16))
        try:
            drawn = base.select(bottleneck.state, where, rng)
        except NoTechnique:
            return []
        return [drawn.technique, *(other.technique for other in drawn.alternatives)][:MOST_TECHNIQUES]

    def _backend_row(self, task: Task, entry: SplitEntry, parent: Parent, advice: PromptAdvice) -> PromptRow:
        signs = advice.entry.signs if self._language is CandidateLanguage.CUDA else ()
        return self._row(task, entry, Stage.BACKEND).model_copy(
            update={
                "prompt": backend_prompt(task, parent, advice, self._form, self._language),
                "parent": parent.source,
                "parent_sha256": source_digest(parent.source),
                "state": advice.bottleneck.state,
                "technique": advice.technique,
                "signs": " ".join(sorted(signs)),
            }
        )

    def _parents(self, problem: Problem, parents: Mapping[str, Sequence[str]]) -> list[str]:
        """Its start and others, as far as this judge finds them correct, in the language of replies.

        In Triton there is no start, only what a model has written.
        """
        found = [self._judge.start(problem)] if self._language is CandidateLanguage.CUDA else []
        for source in parents.get(str(problem.id), ()):
            if len(found) == MOST_PARENTS:
                break
            fits = language_of(source) is self._language and source not in found
            if fits and self._judge.evaluate(problem, source)[1].correct:
                found.append(source)
        return found

    def _examples(self, problems: Iterable[Problem]) -> dict[str, Example]:
        """Family -> a worked example from the problems to learn from."""
        found: dict[str, Example] = {}
        for problem in problems:
            entry = self._entry(problem)
            if entry.split == Split.TRAIN and entry.family not in found:
                example = example_of(problem)
                if example is not None:
                    found[entry.family] = example
        return found

    def _entry(self, problem: Problem) -> SplitEntry:
        entry = self._splits.of(str(problem.id))
        if entry is None:
            raise KeyError(f"{problem.id} is not in the splits")
        return entry

    def _row(self, task: Task, entry: SplitEntry, stage: Stage) -> PromptRow:
        return PromptRow(
            prompt=(),
            problem=str(task.problem.id),
            stage=stage,
            language=self._language,
            precision=task.precision,
            size=task.workload,
            family=entry.family,
            split=entry.split,
        )


def parents_of(*origins: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Problem -> kernels, one per content, from pairs of both; one of each origin in turn, so that all have a place."""
    by_origin: list[defaultdict[str, list[str]]] = [defaultdict(list) for _ in origins]
    for found, kernels in zip(by_origin, origins, strict=True):
        for problem, source in kernels:
            found[problem].append(source)
    problems = dict.fromkeys(problem for found in by_origin for problem in found)
    in_turn = {problem: zip_longest(*(found[problem] for found in by_origin)) for problem in problems}
    return {
        problem: list(dict.fromkeys(one for turn in turns for one in turn if one is not None))
        for problem, turns in in_turn.items()
    }
