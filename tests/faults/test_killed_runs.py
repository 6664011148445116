"""Whole runs, killed at every event and in the middle of writes: what is finished stays, and the end is the same."""

from __future__ import annotations

import random
from datetime import date
from pathlib import Path

import pytest
from fault_runs import Bench, Run, differences
from fault_starts import Disk, Fault, Scenario

ONE_CHAIN = Scenario(1, ("--steps=3",), ruled=False)
"""Repairs, a duplicate, prose, an accepted and a refused candidate, classification and reflection by the model, a
sanitizer's finding that is mended, soft verification."""
MANY_CHAINS = Scenario(2, ("--steps=2",), rollouts=3)
"""Two problems with three rollouts each; the final kernels of the second are vetoed."""
RECALLING = Scenario(1, ("--steps=1",), recalls=True)
"""It begins with a kernel of the knowledge base, and learns a faster one."""
BY_FILES = {
    many: Scenario(2 if many else 1, ("--steps=2",), model="batch_exchange", ruled=False, rollouts=2)
    for many in (False, True)
}
"""Every reply is waited for: each start gets one generation of them further."""
TODAY = date.today().toordinal() % 8
PARTS = [pytest.param(part, marks=[] if part == TODAY else [pytest.mark.slow]) for part in range(8)]
"""Of the places where a run is killed; by default one alone, another each day."""


@pytest.fixture(scope="module")
def one_chain(workspace: Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return workspace.undisturbed(ONE_CHAIN, tmp_path_factory.mktemp("one") / "sound")


@pytest.fixture(scope="module")
def many_chains(workspace: Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return workspace.undisturbed(MANY_CHAINS, tmp_path_factory.mktemp("many") / "sound")


def test_the_scenarios_take_every_path(one_chain: Run, many_chains: Run) -> None:
    told = (one_chain.directory / "err.txt").read_text() + (many_chains.directory / "err.txt").read_text()
    for words in ("compile_error", "identical to one", "no fenced code block", "slower", "sanitizer_error", "vetoed"):
        assert words in told, words
    slots = {slot for slot, _ in one_chain.result()["asked"]}
    for part in ("classify", "attempt-2", "reflect", "mend", "verify"):
        assert any(part in slot for slot in slots), part


@pytest.mark.parametrize("part", PARTS)
def test_killed_after_each_event(workspace: Bench, one_chain: Run, tmp_path: Path, part: int) -> None:
    """By default after every eighth; with --all after each."""
    faults = [Fault(event=number) for number in range(1, one_chain.events + 1)]
    assert len(faults) > 25
    assert workspace.differences(one_chain, tmp_path, faults[part :: len(PARTS)]) == {}


@pytest.mark.parametrize("part", PARTS)
def test_killed_while_chains_run_side_by_side(workspace: Bench, many_chains: Run, tmp_path: Path, part: int) -> None:
    faults = [Fault(event=number) for number in range(2, many_chains.events + 1, 8)]
    assert len(faults) > 12
    assert workspace.differences(many_chains, tmp_path, faults[part :: len(PARTS)]) == {}


@pytest.fixture(scope="module")
def recalling(workspace: Bench, tmp_path_factory: pytest.TempPathFactory) -> Run:
    run = workspace.undisturbed(RECALLING, tmp_path_factory.mktemp("recalling") / "sound")
    assert "the search goes on from it" in run.errors
    return run


def test_killed_around_a_recall(workspace: Bench, recalling: Run, tmp_path: Path, thorough: bool) -> None:
    """By default up to the first round; with --all until replies are decided on."""
    faults = [Fault(event=number) for number in range(1, 12 if thorough else 4)]
    assert workspace.differences(recalling, tmp_path, faults) == {}


@pytest.mark.slow
@pytest.mark.parametrize("how", [Disk.KILL, Disk.TEAR])
def test_killed_in_the_middle_of_the_writes_of_a_recall(
    workspace: Bench, recalling: Run, tmp_path: Path, how: Disk
) -> None:
    moments = random.Random(how.name).sample(range(1, recalling.disk_calls // 2), 8)
    assert workspace.differences(recalling, tmp_path, [Fault(disk=how, at=moment) for moment in moments]) == {}


def test_killed_again_and_again_while_replies_come_by_file(workspace: Bench, tmp_path: Path, thorough: bool) -> None:
    sound = workspace.undisturbed(BY_FILES[thorough], tmp_path / "sound")
    with workspace.open(BY_FILES[thorough], tmp_path / "killed") as run:
        while run.advance(events=3 if thorough else 6):
            pass
    run.check_nothing_repeated()
    run.check_books()
    assert len(run.deaths) > (25 if thorough else 2)
    assert not list(differences(sound.result(), run.result()))


@pytest.mark.parametrize("how", [Disk.KILL, Disk.TEAR])
def test_killed_in_the_middle_of_writes(
    workspace: Bench, one_chain: Run, tmp_path: Path, how: Disk, thorough: bool
) -> None:
    moments = random.Random(how.name).sample(range(1, one_chain.disk_calls + 1), 12 if thorough else 2)
    assert workspace.differences(one_chain, tmp_path, [Fault(disk=how, at=moment) for moment in moments]) == {}


def test_killed_from_outside_at_random_moments(
    workspace: Bench, many_chains: Run, tmp_path: Path, thorough: bool
) -> None:
    moments = random.Random(5)
    faults = [Fault(after_s=moments.uniform(0.1, 0.9)) for _ in range(8 if thorough else 2)]
    run = workspace.disturbed(MANY_CHAINS, tmp_path / "killed", *faults)
    assert len(run.deaths) >= (3 if thorough else 1)
    assert not list(differences(many_chains.result(), run.result()))
