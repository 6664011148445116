"""A second search of a problem, on the emulated device, begins with what the first left, and may end with it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_support import FASTER, WRONG, make_dataset, reply

import kernelblaster as kb

pytestmark = [pytest.mark.nvcc, pytest.mark.usefixtures("nvcc")]


class Author:
    """Writes the same every time."""

    name = "author"

    def __init__(self, text: str) -> None:
        self._text = text

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        return None

    async def complete(self, request: kb.Request) -> kb.Reply:
        usage = kb.Usage(prompt_tokens=10, completion_tokens=5, dollars=0.0)
        text = '{"veto": false}' if request.purpose == "verify" else self._text
        return kb.Reply(text=text, usage=usage, model=self.name)


def searched(dataset: Path, experiment: str, text: str, known: Path | None = None, *ablate: str) -> kb.RunSummary:
    """A search of one generation, all of whose replies are `text`."""
    search = kb.SearchConfig(rollouts=1, steps=1, repairs=0, reflect=False, ablate=(*ablate, "pair_lessons"))
    config = kb.RunConfig(
        device="emulated", experiment=experiment, knowledge_base=known, search=search,
        evaluation=kb.EvaluationConfig(input_sets=2),
    )  # fmt: skip
    return kb.optimize(kb.load_problem("23", dataset=dataset), config=config, model=Author(text))


def test_a_second_search_begins_with_the_kernel_of_the_first_and_only_with_recall(clean: Path) -> None:
    dataset = make_dataset(clean / "data", small={"batch_size": 33, "dim": 517})
    first = searched(dataset, "first", reply(FASTER))
    (left,) = first.problems
    assert left.comparison is not None
    assert left.recalled_speedup is None

    again = searched(dataset, "again", "I do not know.", first.knowledge_base)
    (found,) = again.problems
    assert found.status is kb.OutcomeStatus.IMPROVED
    assert found.reason.endswith("recalled from the knowledge base")
    assert found.comparison is not None
    assert (found.recalled_speedup, found.searched_speedup) == (found.comparison.speedup, 1.0)
    assert found.final_kernel is not None
    assert left.final_kernel is not None
    without_header = [re.sub(r"(?m)\A(//.*\n)+", "", row.final_kernel.read_text()) for row in (left, found)]
    assert without_header[0] == without_header[1]
    assert again.report is not None
    page = again.report.read_text(encoding="utf-8")
    assert "recalled from the knowledge base, without a model call" in page
    assert re.search(r'<text class="lane"[^>]*>recalled</text>', page)
    assert 'href="#level1-023-recalled"' in page
    assert 'id="level1-023-recalled"' in page

    bare = searched(dataset, "bare", "I do not know.", first.knowledge_base, "recall")
    assert bare.problems[0].status is kb.OutcomeStatus.NO_IMPROVEMENT


def test_a_stored_kernel_that_the_judge_refuses_is_told_and_the_search_goes_on(clean: Path) -> None:
    dataset = make_dataset(clean / "data", small={"batch_size": 33, "dim": 517})
    first = searched(dataset, "first", reply(FASTER))
    known = kb.read_knowledge(first.knowledge_base)
    (own,) = (core for core in known.document.cores if core.problem == "level1/023" and core.device_kind == "emulated")
    assert own.whole == FASTER
    wrong = own.model_copy(update={"whole": WRONG})
    others = tuple(core for core in known.document.cores if core != own)
    spoilt = clean / "spoilt.json"
    kb.write_knowledge(type(known)(known.document.model_copy(update={"cores": (*others, wrong)})), spoilt)
    again = searched(dataset, "again", reply(FASTER), spoilt)
    assert again.problems[0].status is kb.OutcomeStatus.IMPROVED
    assert again.problems[0].recalled_speedup is None
    (search,) = kb.read_run(again.directory).searches
    assert search.outcome is not None
    assert search.outcome.recalled is not None
    assert not search.outcome.recalled.accepted
    assert search.outcome.recalled.verdict == "wrong_values"
