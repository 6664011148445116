"""A search on a problem whose libtorch driver judges itself: what the model is shown, and what is remembered."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

from agent_support import CommentEvaluator, ScriptedModel, answer, kernel, make_context, make_problem

from kernelblaster.agent.graph import run_problem
from kernelblaster.evaluation.results import Evaluation, Timing
from kernelblaster.problems.problem import Problem

FIXTURE = Path(__file__).parents[1] / "fixtures" / "self_checking" / "level1" / "019_ReLU"
UNKNOWN_FLOOR = {"floor_us": None, "floor_fraction": None, "attainable_us": None}


class WeakEvaluator(CommentEvaluator):
    """Marks its evaluations, and knows no floor."""

    def evaluate(self, problem: Problem, source: str, **options: object) -> Evaluation:
        found = super().evaluate(problem, source, **options)
        bare: Timing = found.timing.model_copy(update=UNKNOWN_FLOOR)
        return found.model_copy(update={"weakly_verified": True, "timing": bare})


def self_checking(root: Path) -> Problem:
    """The small softmax problem with the fixture's driver and no reference."""
    problem = replace(make_problem(root), weakly_verified=True, workloads={})
    problem.reference_path.unlink()
    shutil.copy(FIXTURE / "driver.cpp", problem.driver_path)
    return problem


def test_a_weak_search_shows_the_driver_and_marks_what_it_learns(tmp_path: Path) -> None:
    model = ScriptedModel(tmp_path / "m", lambda rollout, step, attempt: answer(kernel(2.0)))
    evaluator = WeakEvaluator(tmp_path / "e")
    context = make_context(tmp_path, model, evaluator, tensors=(), steps=1)
    context = replace(context, problem=self_checking(tmp_path))
    outcome = asyncio.run(run_problem(context))

    asked = [request for request in model.requests if "launch_gpu_implementation" in request.messages[-1].content]
    assert [str(request.purpose) for request in asked] == ["generate", "verify"]
    for request in asked:
        prompt = request.messages[-1].content
        assert "torch::relu(input)" in prompt
        assert prompt.index("```cpp\n") < prompt.index("torch::relu(input)")
        assert "void launch_gpu_implementation(void* output, void* input, int64_t batch_size, int64_t dim);" in prompt
        assert "#include <torch" not in prompt
    assert "well-written" not in asked[0].messages[-1].content

    (transition,) = context.experience.transitions.query()
    assert transition.weakly_verified
    assert [row.cell.weakly_verified for row in context.experience.document().statistics] == [True]
    assert "// weakly verified" in outcome.final_kernel.read_text()
