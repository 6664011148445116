"""A model plays episodes on a judge that is not real; stores, ledger and exchange are."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from fake_judge import FakeJudge, kernel

from kernelblaster.config import BudgetConfig, ModelConfig
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.playing import Played, Player
from kernelblaster.environment.samples import EvalHeader, SampleStore
from kernelblaster.environment.submission import MOST_BYTES, Language
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import BadKey, ChatModel, Reply, Request, Usage
from kernelblaster.models.batch_exchange import BatchExchangeModel
from kernelblaster.models.ledger import Cap, CapReached, CostLedger

WRONG, BROKEN = kernel(Verdict.WRONG_VALUES), kernel(Verdict.COMPILE_ERROR)
FASTEST = kernel(Verdict.CORRECT, 4.0, Decision.FASTER)
HACK = kernel(Verdict.REWARD_HACK)
NAMES = ("L1_19_ReLU", "L1_23_Softmax")


class Scripted:
    """Answers by turn; `fails` is raised when a slot that contains the key is asked."""

    name = "scripted"

    def __init__(self, *replies: str, fails: dict[str, Exception] | None = None) -> None:
        self.replies = replies
        self.fails = fails or {}
        self.asked: list[Request] = []

    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        for place, error in self.fails.items():
            if place in request.slot:
                raise error
        self.asked.append(request)
        turn = int(request.slot.rsplit("-", 1)[1])
        usage = Usage(prompt_tokens=1, completion_tokens=1, dollars=0.0)
        return Reply(text=self.replies[turn - 1], usage=usage, model=self.name)

    def answerable(self, tags: dict[str, str]) -> None:
        return None


@pytest.fixture
def play(catalogue: Catalogue, judge: FakeJudge, tmp_path: Path) -> Callable[..., tuple[Player, Played]]:
    """Plays two problems, as a new start would."""

    def played(model: ChatModel, *, turns: int = 3, samples: int = 1) -> tuple[Player, Played]:
        header = EvalHeader(
            model=model.name, dataset="d", turns=turns, language=Language.AUTO, conditions={}, modelled=False, reward={}
        )  # fmt: skip
        store = SampleStore(tmp_path, header)
        environments = KernelEnvironments(catalogue, SharedJudge(judge), EnvironmentSettings())
        player = Player(environments, model, store, turns, Language.AUTO, threads=2, on_turn=lambda turn: None)
        return player, asyncio.run(player.play(catalogue.choose(NAMES), samples))

    return played


def verdicts(player: Player, name: str, sample: int = 1) -> list[str]:
    return [turn.verdict for turn in player.store.turns(name, sample)]


def test_a_model_reads_what_its_last_reply_came_to_and_stops_when_nothing_is_left_to_gain(play) -> None:
    model = Scripted(WRONG, FASTEST, WRONG)
    player, played = play(model, samples=2)
    assert (played.pending, played.unjudged, played.stopped) == ({}, [], None)
    assert verdicts(player, NAMES[0], 2) == [Verdict.WRONG_VALUES, Verdict.CORRECT]
    last = next(one for one in model.asked if one.slot == "L1_23_Softmax/sample-1/turn-2")
    assert [message.role for message in last.messages] == ["user", "assistant", "user"]
    assert last.messages[1].content == WRONG
    assert last.messages[2].content == player.store.turns(NAMES[1], 1)[0].feedback
    assert len({one.slot for one in model.asked}) == len(model.asked) == 8


def test_a_hack_ends_the_episode(play) -> None:
    player, _ = play(Scripted(HACK, FASTEST, FASTEST))
    assert verdicts(player, NAMES[0]) == [Verdict.REWARD_HACK]


def test_an_evaluation_that_was_cut_off_continues_and_asks_and_judges_nothing_twice(play, judge: FakeJudge) -> None:
    with pytest.raises(BadKey):
        play(Scripted(WRONG, BROKEN, FASTEST, fails={"Softmax/sample-1/turn-2": BadKey("refused")}))
    second = Scripted(WRONG, BROKEN, FASTEST)
    player, _ = play(second)
    for name in NAMES:
        assert verdicts(player, name) == [Verdict.WRONG_VALUES, Verdict.COMPILE_ERROR, Verdict.CORRECT]
    assert "L1_23_Softmax/sample-1/turn-1" not in {one.slot for one in second.asked}
    assert judge.judged.count(WRONG) == len(NAMES)
    third = Scripted()
    play(third)
    assert third.asked == []


def test_what_the_machine_fails_to_judge_is_no_turn_and_is_taken_up_again(play, judge: FakeJudge) -> None:
    judge.lost = True
    player, played = play(Scripted(WRONG, WRONG, WRONG))
    assert {one.problem for one in played.unjudged} == set(NAMES)
    assert verdicts(player, NAMES[0]) == []
    judge.lost = False
    player, played = play(Scripted(WRONG, WRONG, WRONG))
    assert (played.unjudged, len(player.episodes(player.environments.catalogue.find(NAMES[0]), 1))) == ([], 1)


def test_a_cap_stops_and_a_reply_that_no_submission_holds_costs_its_turn(play) -> None:
    cap = CapReached(Cap.DOLLARS, 1.0, 1.0)
    player, played = play(Scripted("x" * (MOST_BYTES + 1), WRONG, fails={"turn-2": cap}), turns=2)
    assert played.stopped == cap.message
    assert verdicts(player, NAMES[1]) == ["no_code"]


def test_a_batch_exchange_is_asked_for_all_at_once_and_answered_turn_by_turn(play, tmp_path: Path) -> None:
    folder = tmp_path / "exchange"

    def start() -> tuple[Player, Played]:
        config = ModelConfig(kind="batch_exchange", name="away")
        ledger = CostLedger(tmp_path / "ledger.jsonl", BudgetConfig())
        return play(BatchExchangeModel(config, folder, ledger, None), turns=2, samples=2)

    def answer(name: str, source: str) -> int:
        asked = [json.loads(line) for path in folder.glob("requests-*") for line in path.read_text().splitlines()]
        with (folder / f"replies-{name}.jsonl").open("w") as file:
            for one in asked:
                message = {"index": 0, "message": {"role": "assistant", "content": source}, "finish_reason": "stop"}
                body = {"model": "away", "choices": [message]}
                file.write(json.dumps({"custom_id": one["custom_id"], "response": {"status_code": 200, "body": body}}))
                file.write("\n")
        return len(asked)

    _, first = start()
    assert len(first.pending) == answer("1", WRONG) == 4
    player, second = start()
    assert (len(second.pending), verdicts(player, NAMES[0], 2)) == (4, [Verdict.WRONG_VALUES])
    assert answer("2", FASTEST) == 8
    player, third = start()
    assert third.pending == {}
    assert verdicts(player, NAMES[1], 2) == [Verdict.WRONG_VALUES, Verdict.CORRECT]


def test_what_sanitizers_find_is_read_before_the_next_turn_and_not_asked_for_after_the_last(
    play, judge: FakeJudge
) -> None:
    judge.findings = [SanitizerFinding(tool="memcheck", message="Invalid __global__ read", location="candidate.cu:1")]
    model = Scripted(WRONG, kernel(Verdict.RUNTIME_ERROR))
    play(model, turns=2)
    read = [one.messages[2].content for one in model.asked if one.slot.endswith("turn-2")]
    assert len(read) == len(NAMES)
    assert all("Invalid __global__ read" in text for text in read)
    assert judge.sanitized == [WRONG] * len(NAMES)
