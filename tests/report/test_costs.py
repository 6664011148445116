"""Tokens and dollars for a doubling of speed: what adds up, and what an unknown price does."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from report_samples import P, record, two_rollouts
from test_report_page import FACTS

from kernelblaster.agent import events as ev
from kernelblaster.problems.problem import Precision
from kernelblaster.records.summary import RunSummary, Spending
from kernelblaster.report.costs import Cost, cost_of, money
from kernelblaster.report.packing import TextPack
from kernelblaster.report.page import Page, make_page
from kernelblaster.report.reading import ProblemRecord
from kernelblaster.report.steps import step_views


def reply(tokens: int, dollars: float | None) -> ev.Generated:
    return ev.Generated(
        problem=P, slot=f"{P}/r1/rollout-0/step-1/attempt-0", candidate="a", stated_speedup=None, reason="",
        prompt_tokens=tokens, completion_tokens=0, dollars=dollars,
    )  # fmt: skip


def test_four_times_as_fast_is_two_doublings() -> None:
    each = cost_of([reply(600, 0.25), reply(400, 0.75)]).per_doubling(math.log(4))
    assert each == Cost(500, 0.5)
    assert Cost(1000, 1.0).per_doubling(0.0) is None
    assert Cost().per_doubling(1.0) is None


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    cost = cost_of([reply(600, 0.25), reply(400, None)])
    assert cost == Cost(1000, None)
    each = cost.per_doubling(math.log(2))
    assert each is not None
    assert each.dollars is None
    assert len({money(None), money(0.0), money(0.004), money(4.0)}) == 4
    assert "0.004" in money(0.004)


def page_of(found: ProblemRecord, spending: Spending, tmp_path: Path) -> Page:
    summary = RunSummary(
        run="r", device=FACTS, precision=Precision.FP16, model="m", model_kind="given", problems=[found.row],
        spending=spending, knowledge_base=tmp_path, directory=tmp_path, seconds=1,
    )  # fmt: skip
    return make_page(summary, [found])


@pytest.mark.parametrize("dollars", [None, 0.02])
def test_steps_problems_and_parts_have_their_cost(tmp_path: Path, dollars: float | None) -> None:
    events = [
        one.model_copy(update={"prompt_tokens": 1000, "dollars": dollars}) if isinstance(one, ev.Generated) else one
        for one in two_rollouts()
    ]
    found = record(tmp_path, events, final="c")
    page = page_of(found, Spending(prompt_tokens=9000, dollars=dollars), tmp_path)
    each = found.steps[0].cost
    told = [step.cost for step in step_views(found, TextPack())]
    assert all(each.told in one for one in told)
    assert told[0].count(money(dollars)) == 2, "twice as fast: a doubling cost what the step cost"
    assert told[1].count(money(dollars)) == 1, "a slower kernel has no cost per doubling"
    assert page.rows[0].cost == sum((step.cost for step in found.steps), start=Cost())
    whole = page.parts[0]
    assert whole.dollars == money(page.rows[0].cost.dollars)
    assert whole.each[1] == money(None if dollars is None else 4 * dollars / math.log2(3))
