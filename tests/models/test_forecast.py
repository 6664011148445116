"""What is told of costs before a search, and the cap that holds when nobody has set one."""

from __future__ import annotations

import pytest

from kernelblaster.config import BudgetConfig, ModelConfig, SearchConfig, SearchPart
from kernelblaster.models.calls import SpendingTotals
from kernelblaster.models.default_caps import DOLLARS, TOKENS, with_default_cap
from kernelblaster.models.forecast import LESSON_REPLY, TYPICAL_REPLY, forecast
from kernelblaster.models.prices import Price

NOTHING = SpendingTotals()
PRICE = Price(prompt=1.0, completion=2.0)
SEARCH = SearchConfig(rounds=2, rollouts=3, steps=5, repairs=1)


def test_every_step_reflection_review_and_lesson_is_a_call() -> None:
    told = forecast(SEARCH, 4, PRICE, NOTHING)
    lessons = 4 * 2 * 5 * SEARCH.lesson_pairs
    assert (told.steps, told.calls, told.repairs) == (120, 120 + 8 + 4 + lessons, 1)
    assert told.completion_tokens == 132 * TYPICAL_REPLY + lessons * LESSON_REPLY
    assert told.dollars == pytest.approx((told.prompt_tokens + 2 * told.completion_tokens) / 1e6)
    assert not told.observed


def test_a_run_knows_its_own_calls_better() -> None:
    before = SpendingTotals(calls=10, prompt_tokens=1000, completion_tokens=500)
    told = forecast(
        SEARCH.model_copy(update={"soft_verify": False, "reflect": False, "ablate": (SearchPart.PAIR_LESSONS,)}),
        1,
        None,
        before,
    )
    assert (told.prompt_tokens, told.completion_tokens, told.dollars) == (3000, 1500, None)
    assert told.observed


OPENAI = ModelConfig(kind="openai_api", name="gpt-5-mini")
LOCAL = ModelConfig(kind="openai_api", name="mine", base_url="http://localhost:8000/v1")


@pytest.mark.parametrize(
    ("model", "caps", "before", "expected"),
    [
        (OPENAI, BudgetConfig(), NOTHING, BudgetConfig(dollars=DOLLARS)),
        (OPENAI, BudgetConfig(minutes=5), NOTHING, BudgetConfig(minutes=5, dollars=DOLLARS)),
        (OPENAI, BudgetConfig(), SpendingTotals(calls=1, dollars=None), BudgetConfig(tokens=TOKENS)),
        (LOCAL, BudgetConfig(), NOTHING, BudgetConfig(tokens=TOKENS)),
        (OPENAI, BudgetConfig(tokens=7), NOTHING, BudgetConfig(tokens=7)),
        (LOCAL, BudgetConfig(dollars=7), NOTHING, BudgetConfig(dollars=7)),
        (ModelConfig(kind="recorded"), BudgetConfig(), NOTHING, BudgetConfig()),
    ],
)
def test_a_model_that_may_charge_is_capped(
    model: ModelConfig, caps: BudgetConfig, before: SpendingTotals, expected: BudgetConfig
) -> None:
    assert with_default_cap(caps, model, before) == expected
