"""What parts of a search brought: sums that add up, sweeps within steps, steps with a part beside those without."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import P, recalled, record, step, two_rollouts

from kernelblaster.agent import events as ev
from kernelblaster.agent.files import SweepPoint
from kernelblaster.evaluation.results import SweptVariant
from kernelblaster.report.parts import Part, part_rows, parts_account, step_accounts


def test_steps_are_credited_with_raising_the_fastest_kernel_and_the_sweep_with_its_part(tmp_path: Path) -> None:
    found = record(tmp_path, two_rollouts())
    accounts = step_accounts(found)
    assert sum(one.raised for one in accounts) == pytest.approx(math.log(3.0))
    assert [one.tokens for one in accounts] == [2] * 4
    late, swept = found.steps[2], found.steps[2].attempts[0]
    sweep = ev.Swept(
        problem=P, slot=swept.slot, candidate="c", winner="c2", gain=1.2,
        points=[SweepPoint(values={"N": "1"}, found=SweptVariant(source_sha256="c", median_us=10.0, modelled=True))],
    )  # fmt: skip
    tried = replace(late, attempts=(replace(swept, swept=sweep),))
    account = parts_account([replace(found, steps=(*found.steps[:2], tried, found.steps[3]))])
    assert account is not None
    assert account.swept.raised == pytest.approx(math.log(1.2))
    assert (account.swept.steps, account.swept.tokens) == (1, 2)


def test_what_was_recalled_is_no_reply_and_a_step_on_a_slower_kernel_is_told_apart(tmp_path: Path) -> None:
    steps = [*step(0, 1, "known", "a", "faster", 1.5, 3.0), *step(1, 1, "start", "b", "faster", 1.2, 1.2)]
    found = replace(record(tmp_path, steps), recalled=recalled())
    first, second = step_accounts(found)
    assert (first.raised, second.raised) == (pytest.approx(math.log(1.5)), 0.0)
    assert (Part.OTHER_PARENTS in first.parts, Part.OTHER_PARENTS in second.parts) == (False, True)
    account = parts_account([found])
    assert account is not None
    assert account.recalled == (1, pytest.approx(math.log(2.0)))
    assert parts_account([record(tmp_path, [])]) is None
    assert part_rows(None) == ()


def test_an_interval_over_problems_holds_what_was_planted(tmp_path: Path) -> None:
    records = [
        replace(
            record(tmp_path / str(number), two_rollouts()),
            row=record(tmp_path / str(number), []).row.model_copy(update={"directory": tmp_path / str(number)}),
            crossovers=frozenset({f"{P}/r1/rollout-0/step-3"}),
        )
        for number in range(6)
    ]
    account = parts_account(records)
    assert account is not None
    (crossed,) = [one for one in account.contrasts if one.part is Part.CROSSOVER]
    assert crossed.having.rate is not None
    assert crossed.having.rate.value == pytest.approx(100 * math.log(1.5) / 0.002)
    assert (crossed.having.rate.low, crossed.having.rate.high) == pytest.approx((crossed.having.rate.value,) * 2)
    assert crossed.difference is not None
