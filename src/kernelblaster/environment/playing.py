"""A model plays episodes: it is told the problem, replies, reads the feedback, until each episode is over.

All episodes are asked at once; what can be judged is judged on a few threads. A turn is on disk before the next one is
asked for, and an episode that is continued asks word for word what it would have asked, so that a batch exchange, a
ledger or a recording finds the reply that it has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from kernelblaster.environment.actions import KernelAction
from kernelblaster.environment.baselines import EpisodeBaseline
from kernelblaster.environment.catalogue import problem_identifier
from kernelblaster.environment.episode import KernelEnvironments
from kernelblaster.environment.observation import KernelObservation
from kernelblaster.environment.samples import SampleStore, Turn
from kernelblaster.environment.scores import Episode
from kernelblaster.environment.submission import Language, within_bounds
from kernelblaster.errors import BudgetExceeded, DeviceError, ProblemError
from kernelblaster.models.base import ChatModel, Message, Purpose, Reply, ReplyPending, Request
from kernelblaster.problems.problem import Problem

Result = TypeVar("Result")
_START = """

The kernel to begin with{which}:
```cuda
{start}
```

Reply with the complete {file} in one fenced block."""


@dataclass(frozen=True)
class Unjudged:
    """An episode that the machine, or a broken problem, did not let end. The next start takes it up again."""

    problem: str
    sample: int
    reason: str


@dataclass
class Played:
    """What became of the episodes of one start."""

    pending: dict[str, str] = field(default_factory=dict)
    """Slots that wait for a reply of a batch exchange -> the file in which each was asked."""
    unjudged: list[Unjudged] = field(default_factory=list)
    stopped: str | None = None
    """Why no more was asked: a cap of the budget."""


@dataclass(frozen=True)
class _Judge:
    """Runs what judges, so many at once."""

    free: asyncio.Semaphore

    async def run(self, work: Callable[[], Result]) -> Result:
        async with self.free:
            return await asyncio.to_thread(work)


@dataclass(frozen=True)
class Player:
    """Who plays, where, and where turns are kept.

    Attributes:
        environments: poses and judges.
        model: replies.
        store: turns of this and earlier starts.
        turns: most of an episode.
        language: that the model is to write.
        threads: submissions judged at once.
        on_turn: told each turn when it is kept.
    """

    environments: KernelEnvironments
    model: ChatModel
    store: SampleStore
    turns: int
    language: Language
    threads: int
    on_turn: Callable[[Turn], object]

    async def play(self, problems: Sequence[Problem], samples: int) -> Played:
        """Bring `samples` episodes of each problem as far as replies go. Raises ModelError, UsageError, OSError.

        Submissions are judged in threads of the loop's executor.
        """
        played, judge = Played(), _Judge(asyncio.Semaphore(self.threads))

        async def one(problem: Problem, sample: int) -> None:
            try:
                await self._play_one(problem, sample, judge)
            except ReplyPending as pending:
                played.pending[f"{problem_identifier(problem)}/sample-{sample}"] = pending.request_file
            except BudgetExceeded as reached:
                played.stopped = reached.message
            except (DeviceError, ProblemError) as failed:
                played.unjudged.append(Unjudged(problem_identifier(problem), sample, failed.message))

        await asyncio.gather(*(one(problem, sample) for problem in problems for sample in range(1, samples + 1)))
        return played

    def episodes(self, problem: Problem, samples: int) -> list[Episode]:
        """The episodes of a problem that are over."""
        name = problem_identifier(problem)
        found = (self.store.turns(name, sample) for sample in range(1, samples + 1))
        return [Episode(turns) for turns in found if turns and turns[-1].done]

    async def _play_one(self, problem: Problem, sample: int, judge: _Judge) -> None:
        name = problem_identifier(problem)
        before = self.store.turns(name, sample)
        if before and before[-1].done:
            return
        session = self.environments.session()
        first = await judge.run(
            lambda: session.reset(problem_id=name, max_turns=self.turns - len(before), languages=[str(self.language)])
        )
        messages = conversation(first, before, self.language)
        for number in range(len(before) + 1, self.turns + 1):
            reply = await self.model.complete(self._request(name, sample, number, messages))

            def judged(number: int = number, reply: Reply = reply) -> Turn:
                read = number < self.turns  # nobody reads what is said of the last turn
                action = KernelAction(
                    code=within_bounds(reply.text),
                    language=self.language,
                    profile=read,
                    sanitize=None if read else False,
                )
                seen = session.step(action)
                turn = _turn(name, sample, number, reply, seen)
                self.store.keep(turn)
                return turn

            turn = await judge.run(judged)
            self.on_turn(turn)
            if turn.done:
                return
            messages += _exchanged(turn)

    def _request(self, name: str, sample: int, turn: int, messages: Sequence[Message]) -> Request:
        return Request(
            slot=f"{name}/sample-{sample}/turn-{turn}",
            purpose=Purpose.GENERATE,
            messages=tuple(messages),
            tags={"problem": name, "precision": self.environments.judge.conditions["precision"]},
        )


def conversation(first: KernelObservation, played: Sequence[Turn], language: Language = Language.AUTO) -> list[Message]:
    """What the model has been told and has replied, after some turns of an episode.

    Args:
        first: the observation at reset.
        played: the turns, in order.
        language: that it is to write.
    """
    file = "Python module" if language in (Language.TRITON, Language.INLINE) else "file"
    which = ", which is the baseline" if first.baseline == EpisodeBaseline.START else ""
    told = first.problem_description + _START.format(start=first.start_code, file=file, which=which)
    return [Message(role="user", content=told), *(message for turn in played for message in _exchanged(turn))]


def _exchanged(turn: Turn) -> list[Message]:
    return [Message(role="assistant", content=turn.reply), Message(role="user", content=turn.feedback)]


def _turn(problem: str, sample: int, number: int, reply: Reply, seen: KernelObservation) -> Turn:
    """A turn as it is kept. `seen` is an observation after a step, which always has a reward."""
    assert seen.reward is not None
    return Turn(
        problem=problem,
        sample=sample,
        turn=number,
        reply=reply.text,
        finish_reason=reply.finish_reason,
        usage=reply.usage,
        language=seen.language,
        verdict=seen.verdict,
        reason=seen.reason,
        decision=seen.decision,
        speedup=seen.speedup,
        reward=seen.reward,
        reward_parts=seen.reward_parts,
        hack=seen.hack,
        suspicious=seen.suspicious,
        device_limit=seen.device_limit,
        feedback=seen.feedback,
        done=seen.done,
    )
