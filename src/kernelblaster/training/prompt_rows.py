"""Builds the prompts of the stages: problems on this device and, in stage `midend`, kernels to improve."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kernelblaster.agent.task import Task
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.tags import Split
from kernelblaster.python_candidates.language import CandidateLanguage, language_of
from kernelblaster.training.prompting import Example, Parent, PromptForm, example_of, frontend_prompt, midend_prompt
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.splits import SplitEntry, Splits
from kernelblaster.training.stages import Stage

MOST_PARENTS = 4
"""Per problem; slow ones too, else there is nothing left to gain."""


class PromptBuilder:
    """Builds rows of prompts.

    Args:
        judge: whose device, precision and size the prompts tell.
        splits: of the data set.
        form: how much a prompt tells.
        language: what replies are to be written in.
    """

    def __init__(
        self, judge: SharedJudge, splits: Splits, form: PromptForm, language: CandidateLanguage = CandidateLanguage.CUDA
    ) -> None:
        self._judge = judge
        self._splits = splits
        self._form = form
        self._language = language

    def frontend(self, problems: Sequence[Problem]) -> list[PromptRow]:
        """One row per problem, with a worked example of another family. Raises ProblemError."""
        shows_example = self._form is PromptForm.FULL and self._language is CandidateLanguage.CUDA
        examples = self._examples(problems) if shows_example else {}
        rows = []
        for problem in problems:
            entry = self._entry(problem)
            task = self._judge.pose(problem)
            example = next((found for family, found in examples.items() if family != entry.family), None)
            prompt = frontend_prompt(task, example, self._form, self._language)
            rows.append(self._row(task, entry, Stage.FRONTEND).model_copy(update={"prompt": prompt}))
        return rows

    def midend(self, problems: Sequence[Problem], parents: Mapping[str, Sequence[str]]) -> list[PromptRow]:
        """A row per problem and parent: its start, judged here, and others that this judge found correct.

        Parents are in the language of replies: in Triton there is no start, only what a model has written.

        Raises ProblemError, DeviceError.
        """
        rows = []
        for problem in problems:
            entry, task = self._entry(problem), self._judge.pose(problem)
            written = [one for one in parents.get(str(problem.id), ()) if language_of(one) is self._language]
            starts = [self._judge.start(problem)] if self._language is CandidateLanguage.CUDA else []
            for source in dict.fromkeys([*starts, *written][:MOST_PARENTS]):
                update = {
                    "prompt": midend_prompt(task, Parent(source), self._form, self._language),
                    "parent": source,
                    "parent_sha256": source_digest(source),
                }
                rows.append(self._row(task, entry, Stage.MIDEND).model_copy(update=update))
        return rows

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


def parents_of(kernels: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Problem -> correct kernels, one per content, from pairs of both."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for problem, source in kernels:
        if source not in found[problem]:
            found[problem].append(source)
    return dict(found)
