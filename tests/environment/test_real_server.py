"""A server with the real judge on the emulated device, over sockets, by OpenEnv's own client and graders.

Needs the extra `env` and nvcc.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from openenv.core.generic_client import GenericEnvClient
from openenv.validation import Level, run_validation
from openenv.validation.types import CheckStatus
from soaking import serving_environments
from test_openenv_checks import IMPLEMENTED, PACKAGE, ThisProcess

from kernelblaster import EvaluationConfig, RunConfig, open_environment

pytestmark = [pytest.mark.nvcc, pytest.mark.timeout(900)]
CONFIG = RunConfig(device="emulated", precision="fp32", evaluation=EvaluationConfig(input_sets=1))
PROBLEM = "L1_19"
FOUR_AT_ONCE = """
#include <kernelblaster/scalar.cuh>
__global__ void relu(scalar_t* out, const scalar_t* x, int64_t count) {
    int64_t i = 4 * (blockIdx.x * int64_t(blockDim.x) + threadIdx.x);
    if (i + 4 > count) {
        for (; i < count; ++i) out[i] = from_float(fmaxf(to_float(x[i]), 0.0f));
        return;
    }
    float4 v = *reinterpret_cast<const float4*>(x + i);
    v.x = fmaxf(v.x, 0.0f), v.y = fmaxf(v.y, 0.0f), v.z = fmaxf(v.z, 0.0f), v.w = fmaxf(v.w, 0.0f);
    *reinterpret_cast<float4*>(out + i) = v;
}
void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim) {
    int64_t count = batch_size * dim;
    relu<<<(count / 4 + 256) / 256, 256>>>((scalar_t*)output, (const scalar_t*)x, count);
}
"""


@contextmanager
def server() -> Iterator[str]:
    """A fresh one: its inputs are drawn from a secret seed of its own."""
    with open_environment(CONFIG) as environments, serving_environments(environments) as url:
        yield url


@dataclass
class Watched:
    """A client, and all that it was told."""

    env: Any
    answers: list[Any] = field(default_factory=list)

    def reset(self, **arguments: object) -> Any:
        self.answers.append(self.env.reset(**arguments))
        return self.answers[-1]

    def step(self, **action: object) -> Any:
        self.answers.append(self.env.step(action))
        return self.answers[-1]

    @property
    def told(self) -> list[tuple[float | None, bool, dict[str, object]]]:
        """Rewards and observations."""
        return [(one.reward, one.done, one.observation) for one in self.answers]


def _episode(url: str) -> Watched:
    """A drawn problem with a wrong kernel; then a named one with a slow, a broken, a fast and again the slow kernel."""
    with GenericEnvClient(url, message_timeout_s=600.0).sync() as env:
        seen = Watched(env)
        drawn = seen.reset(seed=5, split="elementwise", max_turns=1).observation
        empty = "#include <cstdint>\n" + drawn["start_code"].partition("void launch_gpu_implementation")[0]
        seen.step(code=empty)
        start = seen.reset(problem_id=PROBLEM, max_turns=5, stop_at_highest=False).observation["start_code"]
        seen.step(code=start)
        seen.step(code="this is no kernel")
        seen.step(code=start.replace("fmaxf", "fminf"), sanitize=False)
        seen.step(code=FOUR_AT_ONCE)
        seen.step(code=f"As before:\n```cuda\n{start}```")
    return seen


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    with server() as url:
        yield url


def test_two_fresh_servers_give_the_same_rewards_and_observations_for_the_same_actions(served: str) -> None:
    first = _episode(served).told
    with server() as other:
        second = _episode(other).told
    assert [one[:2] for one in first] == [one[:2] for one in second]
    rewards = [reward for reward, _, _ in first]
    assert rewards[3:5] == [pytest.approx(0.4), 0.0]
    assert rewards[5] == pytest.approx(0.1)
    assert rewards[6] > 0.7
    assert rewards[7] == rewards[3]
    same = ("problem_id", "verdict", "speedup", "runtime_us", "decision", "reward_parts", "turn", "profile", "state")
    for (_, _, one), (_, _, other) in zip(first, second, strict=True):
        assert {name: one[name] for name in same} == {name: other[name] for name in same}
    told = [step["feedback"] for _, _, step in (first[5], second[5])]
    assert told[0] != told[1], "inputs come from a secret seed of each server, and what is wrong depends on them"


def test_reset_step_and_state_are_as_openenv_says(served: str) -> None:
    with GenericEnvClient(served, message_timeout_s=600.0).sync() as env:
        for episode in ("one", "two"):
            first = env.reset(problem_id=PROBLEM, episode_id=episode, max_turns=2)
            assert (first.reward, first.done) == (0.0, False)
            assert (env.state()["episode_id"], env.state()["step_count"]) == (episode, 0)
            seen = [env.step({"code": first.observation["start_code"], "profile": False})]
            assert env.state()["step_count"] == 1
            seen.append(env.step({"code": FOUR_AT_ONCE, "tier": "quick"}))
            assert [one.done for one in seen] == [False, True]
            assert seen[0].reward == pytest.approx(0.4)
            assert 0.7 < seen[1].reward <= 1.3
            state = env.state()
            assert (state["step_count"], state["done"], state["solved"]) == (2, True, True)
            assert state["best_reward"] == seen[1].reward
            with pytest.raises(RuntimeError, match="reset"):
                env.step({"code": FOUR_AT_ONCE})
            assert env.state() == state
        assert all(json.dumps(one.observation, allow_nan=False) for one in seen)


def test_openenv_s_graders_pass_with_the_real_judge(served: str) -> None:
    probe = json.loads((Path(PACKAGE) / "validation" / "runtime.json").read_text())
    assert probe["reset"]["options"]["tier"] == "correct"
    report = run_validation(PACKAGE, max_level=Level.SEMANTIC, provider=ThisProcess(served))
    found = {check.check_id: check.status for check in report.results}
    assert {name: found[name] for name in IMPLEMENTED} == dict.fromkeys(IMPLEMENTED, CheckStatus.PASS), report.results
