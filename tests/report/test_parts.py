"""What parts of a search brought: sums that add up, sweeps within steps, steps with a part beside those without."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import P, recalled, record, step, two_rollouts

from kernelblaster.agent import events as ev
from kernelblaster.agent.files import DrawnLesson, SweepPoint
from kernelblaster.agent.outcome import Incumbent
from kernelblaster.agent.state import Allocation
from kernelblaster.evaluation.results import SweptVariant
from kernelblaster.knowledge.pairs import PairEffect
from kernelblaster.report.costs import Cost
from kernelblaster.report.islands import migrants
from kernelblaster.report.part_rows import part_rows, silent_parts
from kernelblaster.report.parts import Part, parts_account, step_accounts


def test_steps_are_credited_with_raising_the_fastest_kernel_and_the_sweep_with_its_part(tmp_path: Path) -> None:
    found = record(tmp_path, two_rollouts())
    accounts = step_accounts(found)
    assert sum(one.raised for one in accounts) == pytest.approx(math.log(3.0))
    assert [one.cost.tokens for one in accounts] == [2] * 4
    late, swept = found.steps[2], found.steps[2].attempts[0]
    sweep = ev.Swept(
        problem=P, slot=swept.slot, candidate="c", winner="c2", gain=1.2,
        points=[SweepPoint(values={"N": "1"}, found=SweptVariant(source_sha256="c", median_us=10.0, modelled=True))],
    )  # fmt: skip
    tried = replace(late, attempts=(replace(swept, swept=sweep),))
    account = parts_account([replace(found, steps=(*found.steps[:2], tried, found.steps[3]))])
    assert account is not None
    assert account.swept.raised == pytest.approx(math.log(1.2))
    assert (account.swept.steps, account.swept.cost.tokens) == (1, 2)


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


def changed(events: list[ev.Event], kind: type[ev.Event], place: str, **fields: object) -> list[ev.Event]:
    return [one.model_copy(update=fields) if isinstance(one, kind) and place in one.slot else one for one in events]


def test_replies_as_edits_and_lessons_from_pairs_are_told_apart_from_other_steps(tmp_path: Path) -> None:
    events = changed(two_rollouts(), ev.Generated, "rollout-0/step-3", edits=2, written_share=0.25)
    events = changed(events, ev.Selected, "rollout-0/step-2", lessons=["drawn", "curated"])
    events = changed(events, ev.Selected, "rollout-1/step-1", lessons=["curated"])
    pair = DrawnLesson(
        step=f"{P}/r1/rollout-0/step-1", state="dram_bound", technique="unroll", speedup=2.0, low=1.9, high=2.1,
        effect=PairEffect.ADDED, lesson="drawn", text="Load four values at once.",
    )  # fmt: skip
    refused = pair.model_copy(update={"lesson": "curated", "effect": PairEffect.REFUSED})
    told = ev.LessonsDrawn(
        problem=P, slot=f"{P}/r1/lessons", drawn=[pair, refused], skipped=[], prompt_tokens=90, completion_tokens=10,
        dollars=0.5,
    )  # fmt: skip
    account = parts_account([replace(record(tmp_path, events), lessons=(told,))])
    assert account is not None
    having = {one.part: one.having for one in account.contrasts}
    assert (having[Part.EDITS].steps, having[Part.EDITS].raised) == (1, pytest.approx(math.log(1.5)))
    assert (having[Part.PAIR_LESSONS].steps, having[Part.PAIR_LESSONS].raised) == (1, 0.0)
    assert account.edited == (1, 0.25)
    assert account.drawing == Cost(100, 0.5)
    assert not {one.part for one in silent_parts(account)} & {Part.EDITS, Part.PAIR_LESSONS}


def test_a_step_on_a_kernel_of_another_island_is_migration_and_one_that_joins_two_is_not(tmp_path: Path) -> None:
    def handed(generation: int, *parents: str, donor: str | None = None) -> ev.HandedOut:
        kernels = [Incumbent(sha256=parent, evaluation="e") for parent in parents]
        allocations = [Allocation(index=index, parent=kernel, donor=donor) for index, kernel in enumerate(kernels)]
        return ev.HandedOut(
            problem=P, slot=f"{P}/r1/generation-{generation}", round=1, generation=generation, allocations=allocations
        )

    events = [
        *step(0, 1, "start", "a", "faster", 2.0, 2.0), *step(1, 1, "start", "b", "slower", 0.5, 1.0),
        *step(0, 2, "a", "c", "slower", 0.5, 2.0), *step(1, 2, "a", "d", "faster", 1.5, 3.0),
    ]  # fmt: skip
    found = replace(record(tmp_path, events), handed=(handed(1, "start", "start"), handed(2, "a", "a")))
    moved = f"{P}/r1/rollout-1/step-2"
    assert migrants(replace(found, islands=2)) == {moved}
    assert migrants(replace(found, islands=1)) == migrants(found) == frozenset()
    joined = replace(found, islands=2, handed=(handed(1, "start", "start"), handed(2, "a", "a", donor="x")))
    assert migrants(joined) == frozenset()
    reasons = [
        {one.part: one.why for one in silent_parts(parts_account([replace(found, islands=islands)]))}
        for islands in (None, 1, 2)
    ]
    assert Part.MIGRATION not in reasons[2]
    assert reasons[0][Part.MIGRATION] != reasons[1][Part.MIGRATION]


def test_every_part_has_a_line_or_a_reason_why_it_has_none(tmp_path: Path) -> None:
    account = parts_account([record(tmp_path, two_rollouts())])
    told = {row.part for row in part_rows(account)} | {one.part for one in silent_parts(account)}
    assert told >= {*Part, "sweep"}
    assert silent_parts(None) == ()
