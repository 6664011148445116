"""In which order planted kernels are judged, what of that happens beside others, and how a sitting goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from court import JUDGES, TrustRow, digest, judge_digest
from planted import HARMLESS, Kind, Planted, load_all
from runs_samples import FACTS
from trust import Record, Sitting, Task, in_order, lost, seen_harmless

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.runs.worker_pool import WorkerLost

CUDA = DeviceKind.CUDA


class Scripted:
    """A pool that answers from a function and notes what it was asked."""

    def __init__(self, answer: Callable[[Task], TrustRow | WorkerLost]) -> None:
        self.answer = answer
        self.asked: list[tuple[str, bool]] = []
        self.sizes: list[int] = []

    def __call__(self, workers: int) -> Scripted:
        self.sizes.append(workers)
        return self

    def run(self, items: Iterable[Task], may_start: Callable[[], bool]) -> Iterator[tuple[Task, TrustRow | WorkerLost]]:
        for task in items:
            if may_start():
                self.asked.append((task.planted.name, task.in_company))
                yield task, self.answer(task)


def outcome(planted: Planted, name: str, judge: str = "") -> TrustRow:
    row = lost(planted, CUDA, "")
    return row.model_copy(update={"outcome": name, "digest": digest(planted), "judge": judge or judge_digest()})


@pytest.fixture(scope="module")
def exploit() -> Planted:
    """A kernel whose outcome is right when it is harmless or refused."""
    wanted = {HARMLESS, "wrong_values"}
    return next(one for one in load_all(Kind.EXPLOIT) if wanted <= one.expected[CUDA] and one.row != "T18")


@pytest.fixture(scope="module")
def honest() -> Planted:
    return load_all(Kind.HONEST)[0]


def judged(pool: Scripted, planted: list[Planted], seconds: float | None = None) -> dict[str, str]:
    rows = Sitting(CUDA, pool, 16, seconds).rows(planted)
    return {one.name: found.outcome for one, found in rows if isinstance(found, TrustRow)}


def test_what_is_right_beside_others_is_not_judged_again(exploit, honest) -> None:
    answers = {exploit.name: "wrong_values", honest.name: "correct"}
    pool = Scripted(lambda task: outcome(task.planted, answers[task.planted.name]))
    assert judged(pool, [exploit, honest]) == answers
    assert pool.asked == [(exploit.name, True), (honest.name, True)]


def test_an_exploit_that_is_verified_is_timed_alone(exploit) -> None:
    pool = Scripted(lambda task: outcome(task.planted, "correct" if task.in_company else HARMLESS))
    assert judged(pool, [exploit]) == {exploit.name: HARMLESS}
    assert pool.asked == [(exploit.name, True), (exploit.name, False)]
    assert pool.sizes[1] < pool.sizes[0]


def test_an_honest_kernel_is_refused_alone_or_not_at_all(honest) -> None:
    pool = Scripted(lambda task: outcome(task.planted, "reward_hack" if task.in_company else "correct"))
    assert judged(pool, [honest]) == {honest.name: "correct"}


def test_who_disturbs_others_is_judged_alone_only(exploit) -> None:
    pool = Scripted(lambda task: outcome(task.planted, HARMLESS))
    judged(pool, [replace(exploit, row="T18")])
    assert pool.asked == [(exploit.name, False)]


def test_an_exploit_that_was_harmless_is_timed_at_once(exploit, honest) -> None:
    known = {exploit.name: outcome(exploit, HARMLESS), honest.name: outcome(honest, "correct")}
    of_values = replace(exploit, name="of_values", row="V02")
    known["of_values"] = outcome(of_values, HARMLESS)
    assert seen_harmless([exploit, honest, of_values], known) == {exploit.name}
    pool = Scripted(lambda task: outcome(task.planted, next(iter(task.planted.expected[CUDA]))))
    list(Sitting(CUDA, lambda jobs: pool, 2, None, frozenset({exploit.name})).rows([exploit, honest]))
    assert pool.asked == [(honest.name, True), (exploit.name, False)]


def test_what_the_oldest_judge_judged_comes_first(exploit, honest) -> None:
    known_days = json.loads(JUDGES.read_text()).items()
    days = sorted((item for item in known_days if item[0] != judge_digest()), key=lambda item: item[1])
    known = {
        exploit.name: outcome(exploit, "wrong_values", judge=days[-1][0]),
        honest.name: outcome(honest, "correct", judge=days[0][0]),
    }
    assert in_order([exploit, honest], known, again=True) == [honest, exploit]


def test_nothing_begins_when_time_is_up(exploit, honest) -> None:
    pool = Scripted(lambda task: outcome(task.planted, "correct"))
    assert judged(pool, [exploit, honest], seconds=0.0) == {}
    assert pool.asked == []


def test_kernels_without_an_outcome_come_first_and_kinds_alternate() -> None:
    exploits, honest = load_all(Kind.EXPLOIT)[:4], load_all(Kind.HONEST)[:2]
    right = {one.name: outcome(one, next(iter(sorted(one.expected[CUDA])))) for one in [*exploits, *honest]}
    known = {name: right[name] for name in (exploits[0].name, exploits[1].name)}
    known[exploits[1].name] = outcome(exploits[1], "correct")  # it got through
    order = [one.name for one in in_order([*exploits, *honest], known, again=False)]
    assert order == [exploits[2].name, honest[0].name, exploits[3].name, honest[1].name, exploits[1].name]


def test_a_changed_kernel_is_judged_again_and_another_judges_outcome_when_asked(exploit) -> None:
    known = {exploit.name: outcome(exploit, "wrong_values")}
    assert in_order([exploit], known, again=True) == []
    changed = replace(exploit, source=exploit.source + "// more\n")
    assert in_order([changed], known, again=False) == [changed]
    older = {exploit.name: outcome(exploit, "wrong_values", judge="another")}
    assert in_order([exploit], older, again=False) == []
    assert in_order([exploit], older, again=True) == [exploit]


def test_a_lost_judge_is_no_outcome_that_stays(exploit) -> None:
    row = lost(exploit, CUDA, "its process ended with -9")
    assert not row.right
    assert in_order([exploit], {exploit.name: row}, again=False) == [exploit]


def test_the_file_keeps_earlier_outcomes_and_is_of_one_device(tmp_path: Path, exploit, honest) -> None:
    path, planted = tmp_path / "trust.json", [exploit, honest]
    Record(path, FACTS, planted).add(outcome(exploit, "wrong_values"))
    Record(path, FACTS, planted).add(outcome(honest, "correct"))
    written = json.loads(path.read_text())
    assert [row["name"] for row in written["rows"]] == [exploit.name, honest.name]
    assert written["not_judged"] == []
    other = FACTS.model_copy(update={"name": "another GPU"})
    with pytest.raises(ValueError, match="another file"):
        Record(path, other, planted)
