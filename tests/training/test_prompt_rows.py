"""Prompts of both stages in both forms: what they show, and what they are rows of."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fake_judge import kernel

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.evaluation.results import Verdict
from kernelblaster.problems.start import read_start
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.prompt_rows import PromptBuilder, parents_of
from kernelblaster.training.prompting import PromptForm
from kernelblaster.training.rows import PromptRow
from kernelblaster.training.splits import make_splits

MODULE = "import triton\n\nclass ModelNew:\n    pass\n"


@pytest.mark.parametrize("form", PromptForm)
def test_prompts_show_the_task_and_what_is_to_be_improved(
    catalogue: Catalogue, stored: Callable[[], StoredJudge], form: PromptForm
) -> None:
    problems = [catalogue.find(name) for name in ("L1_23", "L1_19", "L1_89")]
    prompts = PromptBuilder(stored(), make_splits(problems), form)
    frontend, midend = prompts.frontend(problems), prompts.midend(problems, {"level1/023": ["// another\n"]})
    assert [(row.problem, row.split) for row in frontend] == [
        ("level1/023", "train"), ("level1/019", "train"), ("level1/089", "heldout"),
    ]  # fmt: skip
    assert len(midend) == 4
    for row in (*frontend, *midend):
        assert "launch_gpu_implementation" in row.prompt[-1].content
        assert row.parent.strip() in row.prompt[-1].content
        assert PromptRow.model_validate_json(row.model_dump_json()) == row
    assert midend[0].parent == read_start(problems[0])
    if form is PromptForm.FULL:
        assert "relu_kernel" in frontend[0].prompt[-1].content  # the example is of another family
        assert "softmax_kernel" not in frontend[0].prompt[-1].content


def test_parents_are_of_all_origins_in_turn_and_correct_by_this_judge(
    catalogue: Catalogue, stored: Callable[[], StoredJudge]
) -> None:
    problem = catalogue.find("L1_23")
    stage = [kernel(Verdict.CORRECT, note=f"// stage {n}\n") for n in range(4)]
    searched = [kernel(Verdict.WRONG_VALUES), kernel(Verdict.CORRECT, note="// searched\n")]
    parents = parents_of(*([("level1/023", one) for one in sources] for sources in (stage, searched)))
    rows = PromptBuilder(stored(), make_splits([problem]), PromptForm.SHORT).midend([problem], parents)
    assert [row.parent for row in rows] == [read_start(problem), stage[0], stage[1], searched[1]]


@pytest.mark.parametrize("form", PromptForm)
def test_prompts_for_triton_ask_for_a_module_and_show_modules_alone(
    catalogue: Catalogue, stored: Callable[[], StoredJudge], form: PromptForm
) -> None:
    problem = catalogue.find("L1_23")
    prompts = PromptBuilder(stored(), make_splits([problem]), form, CandidateLanguage.TRITON)
    parents = {"level1/023": ["// CUDA\n", MODULE]}
    rows = [*prompts.frontend([problem]), *prompts.midend([problem], parents)]
    assert [row.parent for row in rows] == ["", MODULE]
    for row in rows:
        assert row.language is CandidateLanguage.TRITON
        assert "ModelNew" in row.prompt[-1].content
        assert "```python" in row.prompt[-1].content.splitlines()[-1 if form is PromptForm.SHORT else -2]
        assert "relu_kernel" not in row.prompt[-1].content
