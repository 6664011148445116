"""A served environment for TRL's `GRPOTrainer`. Needs the extra `env`; imports nothing of TRL.

`KernelTools` is an environment for `environment_factory`: the policy calls the tool `submit` as often as the episode
lasts. `KernelReward` is a reward function: each completion is one submission. Both return None, which TRL leaves out,
where the machine or the device set the limit and not the policy. What a server refuses at reset (an unknown problem,
more sessions than it has) raises: it would leave out every completion.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from websockets.exceptions import WebSocketException

from kernelblaster.environment.actions import KernelAction
from kernelblaster.environment.baselines import EpisodeBaseline
from kernelblaster.environment.client import KernelEnvClient
from kernelblaster.environment.observation import KernelObservation
from kernelblaster.environment.submission import within_bounds
from kernelblaster.evaluation.tiers import Tier

OVER = "The episode is over; nothing was judged."
_GONE = (OSError, TimeoutError, WebSocketException)
"""The server does not answer any more."""
Completion = str | Sequence[dict[str, str]]
"""Text, or the messages that the policy wrote."""


class KernelTools:
    """One rollout's session. TRL makes as many as there are rollouts at once, and resets each for the next.

    Args:
        base_url: of the server.
        max_turns: submissions of an episode.
        tier: how far each is judged.
        language: `cuda` or `triton`, which the policy is to write.
        baseline: what speed-ups are against; as served if None.
        stop_at_highest: end an episode when its reward cannot grow.
    """

    def __init__(
        self,
        base_url: str,
        *,
        max_turns: int = 4,
        tier: Tier = Tier.QUICK,
        language: str = "cuda",
        baseline: EpisodeBaseline | None = None,
        stop_at_highest: bool = True,
    ) -> None:
        self._client = KernelEnvClient(base_url).sync()
        self._arguments = {
            "max_turns": max_turns,
            "tier": str(tier),
            "languages": [language],
            "baseline": baseline,
            "stop_at_highest": stop_at_highest,
        }
        self._reward: float | None = None
        self._submitted = self._over = self._unjudged = False
        weakref.finalize(self, self._client.close)

    def reset(self, problem_id: str | None = None, **columns: object) -> str:
        """Begin an episode.

        Args:
            problem_id: of the row; drawn from those to learn from without one.
            columns: others of the row, of which none is read.

        Returns the problem and the kernel to begin with, which TRL appends to the prompt.
        """
        self._reward = None
        self._submitted = self._over = self._unjudged = False
        named = {} if problem_id is None else {"problem_id": problem_id}
        first: KernelObservation = self._client.reset(**named, **self._arguments).observation
        return f"{first.problem_description}\n\nThe kernel to begin with, in CUDA:\n```cuda\n{first.start_code}\n```"

    def submit(self, code: str) -> str:
        """
        Build, verify and time a kernel.

        Args:
            code: The complete source file.

        Returns:
            What the compiler, the judge, the clock and the profiler say.
        """
        if self._over:
            return OVER
        try:
            seen: KernelObservation = self._client.step(KernelAction(code=within_bounds(code))).observation
        except (RuntimeError, *_GONE) as error:
            self._over = self._unjudged = True
            return f"{OVER} ({error})"
        self._note(seen)
        return seen.feedback

    def get_reward(self) -> float | None:
        """The best reward of the episode; a hack's where there was one; that of no code where nothing was submitted."""
        if not self._submitted and not self._over:
            self.submit("")
        return None if self._unjudged else self._reward

    def _note(self, seen: KernelObservation) -> None:
        self._submitted, self._over = True, seen.done
        if seen.hack:
            self._reward, self._unjudged = seen.reward, False
        elif seen.device_limit:
            self._unjudged = self._reward is None
        elif seen.reward is not None:
            self._unjudged = False
            self._reward = seen.reward if self._reward is None else max(self._reward, seen.reward)


class KernelReward:
    """A reward function: each completion is judged once. Rows need the column `problem_id`.

    Args:
        base_url: of the server.
        sessions: completions submitted at once; the server needs as many slots.
        tier: how far each is judged.
        baseline: what speed-ups are against; as served if None.
    """

    __name__ = "kernel_reward"

    def __init__(
        self,
        base_url: str,
        *,
        sessions: int = 16,
        tier: Tier = Tier.QUICK,
        baseline: EpisodeBaseline | None = None,
    ) -> None:
        self._base_url = base_url
        self._baseline = baseline
        self._sessions = sessions
        self._tier = tier

    def __call__(
        self, completions: Sequence[Completion], problem_id: Sequence[str], **columns: object
    ) -> list[float | None]:
        """Rewards in the order of the completions."""
        with ThreadPoolExecutor(self._sessions) as threads:
            return list(threads.map(self._judge, completions, problem_id))

    def _judge(self, completion: Completion, problem_id: str) -> float | None:
        text = completion if isinstance(completion, str) else completion[-1]["content"]
        try:
            with KernelEnvClient(self._base_url).sync() as client:
                client.reset(problem_id=problem_id, max_turns=1, baseline=self._baseline)
                try:
                    seen = client.step(KernelAction(code=within_bounds(text), tier=self._tier)).observation
                except RuntimeError:  # the machine failed: what a policy writes is an observation
                    return None
        except _GONE:
            return None
        return None if seen.device_limit else seen.reward
