"""A problem without a starting kernel: the model writes one, errs, repairs, and the search goes on from there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from agent_support import CommentEvaluator, ScriptedModel, answer, kernel, make_context, make_problem

from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import OutcomeStatus, ProblemOutcome
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.errors import BudgetExceeded
from kernelblaster.evaluation.results import Verdict
from kernelblaster.models.base import NoRecordedReply, Purpose, Reply, ReplyPending, Request, Usage

FIRST = kernel(1.0, tag="_first")
WRONG = kernel(1.0, tag="_wrong", verdict=Verdict.WRONG_VALUES)
BROKEN = kernel(1.0, tag="_broken", verdict=Verdict.COMPILE_ERROR)


class Writer(ScriptedModel):
    """Answers requests for a first kernel from a list, and has a kernel twice as fast for the search."""

    def __init__(self, journal: Path, *first: str | Exception, speed: float = 2.0, review: str = "{}") -> None:
        others = {Purpose.VERIFY: review}
        super().__init__(journal, lambda rollout, step, attempt: answer(kernel(speed, tag="_fast")), others=others)
        self.first = list(first)

    async def complete(self, request: Request) -> Reply:
        if "/first/" not in request.slot:
            return await super().complete(request)
        self.requests.append(request)
        said = self.first.pop(0)
        if isinstance(said, Exception):
            raise said
        return Reply(text=said, usage=Usage(prompt_tokens=10, completion_tokens=5, dollars=0.001), model=self.name)


def search(root: Path, model: Writer, **changes: object) -> tuple[ProblemOutcome, list[object], CommentEvaluator]:
    root.mkdir(parents=True, exist_ok=True)
    problem = make_problem(root / "startless")
    problem.init_path.unlink()
    evaluator = CommentEvaluator(root / "evaluations.log")
    context = make_context(root, model, evaluator, problem=problem, steps=1, **changes)
    return asyncio.run(run_problem(context)), context.events.events, evaluator


def test_the_model_errs_repairs_and_the_search_begins_from_what_is_right(tmp_path: Path) -> None:
    model = Writer(tmp_path / "model.log", "no code at all", answer(BROKEN), answer(WRONG), answer(FIRST))
    outcome, events, _ = search(tmp_path, model)
    assert outcome.status is OutcomeStatus.IMPROVED
    assert outcome.start is not None
    assert outcome.start.source_sha256 == source_digest(FIRST)
    assert outcome.speedup == pytest.approx(2.0)
    assert outcome.unjudged == ["medium"]
    written = [event for event in events if event.kind == "start_written"]
    assert [event.verdict for event in written] == ["unusable_reply", "compile_error", "wrong_values", "correct"]
    asked = [request for request in model.requests if "/first/" in request.slot]
    assert [request.purpose for request in asked] == [Purpose.GENERATE, *[Purpose.REPAIR] * 3]
    assert len({request.slot for request in asked}) == 4
    assert "no code at all" in asked[1].messages[2].content, "the model sees what it wrote"
    assert "boom" in asked[2].messages[-1].content, "and what came of it"
    assert WRONG.strip() in asked[3].messages[2].content
    assert len(asked[3].messages) == 4, "one failure at a time"


def test_after_replies_without_a_kernel_the_last_kernel_and_its_failure_are_shown(tmp_path: Path) -> None:
    model = Writer(tmp_path / "model.log", "", answer(BROKEN), "", "still nothing", answer(FIRST))
    outcome, _, _ = search(tmp_path, model)
    assert outcome.status is OutcomeStatus.IMPROVED
    asked = [request for request in model.requests if "/first/" in request.slot]
    assert "```cuda" not in asked[1].messages[2].content, "none was given yet"
    for request, said in zip(asked[3:], ("(empty reply)", "still nothing"), strict=True):
        assert BROKEN.strip() in request.messages[2].content
        assert said in request.messages[2].content
        assert "boom" in request.messages[3].content


def test_a_second_start_asks_and_judges_nothing_again(tmp_path: Path) -> None:
    interrupted = Writer(tmp_path / "model.log", answer(BROKEN), ReplyPending("r-2", "requests.jsonl"))
    waiting, _, _ = search(tmp_path, interrupted)
    assert waiting.status is OutcomeStatus.WAITING
    assert waiting.pending[0].slot.endswith("first/attempt-1")
    model = Writer(tmp_path / "model.log", answer(FIRST))
    outcome, _, evaluator = search(tmp_path, model)
    assert outcome.status is OutcomeStatus.IMPROVED
    assert model.first == [], "one reply was left to give"
    judged = evaluator.calls
    assert len(judged) == len(set(judged))
    again, _, _ = search(tmp_path, Writer(tmp_path / "model.log"))
    assert again.speedup == outcome.speedup
    assert evaluator.calls == judged


@pytest.mark.parametrize(
    ("replies", "status", "told", "helps"),
    [
        ([answer(BROKEN), answer(WRONG)], OutcomeStatus.FAILED, "wrong_values", ["--retry"]),
        ([answer(kernel(verdict=Verdict.REWARD_HACK))], OutcomeStatus.FAILED, "reward_hack", ["--retry"]),
        ([BudgetExceeded("all is spent", hint="raise it")], OutcomeStatus.BUDGET, "all is spent", []),
        (
            [NoRecordedReply("nothing recorded", hint="ask")],
            OutcomeStatus.UNANSWERED,
            "nothing recorded",
            ["OPENAI_API_KEY", "--base-url", "--model-kind batch_exchange"],
        ),
    ],
)
def test_a_stage_that_ends_without_a_kernel_says_why(
    tmp_path: Path, replies: list[str | Exception], status: OutcomeStatus, told: str, helps: list[str]
) -> None:
    outcome, _, _ = search(tmp_path, Writer(tmp_path / "model.log", *replies), first_attempts=2)
    assert outcome.status is status
    assert told in outcome.reason
    assert all(option in outcome.hint for option in helps)
    assert bool(outcome.hint) is bool(helps)
    assert outcome.final_kernel is None


@pytest.mark.parametrize("vetoed", [False, True])
def test_a_first_kernel_that_nothing_beats_is_the_final_one_unless_vetoed(tmp_path: Path, vetoed: bool) -> None:
    review = f'{{"veto": {str(vetoed).lower()}, "reason": "it reads past its inputs"}}'
    model = Writer(tmp_path / "model.log", answer(FIRST), speed=0.5, review=review)
    outcome, _, _ = search(tmp_path, model)
    assert outcome.status is OutcomeStatus.NO_IMPROVEMENT
    assert outcome.speedup is None
    assert (outcome.final_kernel is None) is vetoed
    if outcome.final_kernel is not None:
        assert outcome.final_kernel.read_text().endswith(FIRST)
        assert outcome.final_sha256 == source_digest(FIRST)
