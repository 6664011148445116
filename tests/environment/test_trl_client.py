"""TRL's trainer and its two ways to a server, with a judge that is not real. Needs the extras `env` and `train`."""

from __future__ import annotations

import json
import runpy
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import kernel
from soaking import Served, serving
from websockets.sync.server import ServerConnection, serve

from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.client import kernrl_env
from kernelblaster.environment.trl_client import OVER, KernelReward, KernelTools
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.evaluation.tiers import Tier

EXAMPLE = Path(__file__).parents[2] / "examples" / "trl_grpo.py"
FASTER = kernel(Verdict.CORRECT, 2.0, Decision.FASTER)
WRONG = kernel(Verdict.WRONG_VALUES)
HACK = kernel(Verdict.REWARD_HACK)
LIMIT = kernel(Verdict.NOT_EMULATABLE)


@pytest.fixture(scope="module")
def served(catalogue: Catalogue) -> Iterator[Served]:
    with serving(catalogue, capacity=16) as found:
        yield found


def test_a_rollout_submits_until_its_turns_are_over_and_keeps_the_best_reward(served) -> None:
    tools = KernelTools(served.url, max_turns=2, tier=Tier.QUICK)
    told = tools.reset(problem_id="L1_23", environment="ignored")
    assert "launch_gpu_implementation" in told
    assert "Softmax" in told
    assert "Reward" in tools.submit(FASTER)
    tools.submit(WRONG)
    assert tools.submit(FASTER) == OVER
    assert tools.get_reward() == pytest.approx(1.0)
    tools.reset(problem_id="L1_24")
    assert tools.get_reward() == 0.0


@pytest.mark.parametrize(("codes", "expected"), [((FASTER, HACK), 0.0), ((LIMIT,), None), ((LIMIT, WRONG), 0.1)])
def test_a_hack_takes_back_what_was_gained_and_a_limit_of_the_device_is_no_reward(served, codes, expected) -> None:
    tools = KernelTools(served.url)
    tools.reset(problem_id="L1_23")
    for code in codes:
        tools.submit(code)
    assert tools.get_reward() == (None if expected is None else pytest.approx(expected))


def test_what_the_machine_failed_to_judge_is_no_reward(served) -> None:
    tools = KernelTools(served.url)
    tools.reset(problem_id="L1_23")
    served.judge.lost = True
    try:
        assert OVER in tools.submit(kernel(Verdict.CORRECT, note="// while it is lost\n"))
        assert tools.get_reward() is None
        assert KernelReward(served.url)(["// lost, too\n" + FASTER], ["L1_23"]) == [None]
    finally:
        served.judge.lost = False


def test_more_than_a_submission_holds_is_a_failure_of_the_policy(served) -> None:
    code = "// more\n" * 40_000
    assert KernelReward(served.url)([code], ["L1_23"]) == [0.0]
    tools = KernelTools(served.url)
    tools.reset(problem_id="L1_23")
    tools.submit(code)
    assert tools.get_reward() == 0.0


def test_what_the_server_refuses_at_reset_is_no_lost_completion(served, catalogue: Catalogue) -> None:
    with pytest.raises(RuntimeError, match="L1_2399"):
        KernelReward(served.url)([FASTER], ["L1_2399"])
    with serving(catalogue, capacity=1) as small, kernrl_env(small.url).sync() as env:
        env.reset(problem_id="L1_23")
        with pytest.raises(RuntimeError, match="CAPACITY"):
            KernelReward(small.url)([FASTER], ["L1_23"])


def test_a_server_that_goes_away_during_a_step_ends_the_episode_without_a_reward() -> None:
    def gone(socket: ServerConnection) -> None:
        socket.recv()
        socket.send(json.dumps({"type": "observation", "data": {"observation": {}, "reward": 0.0, "done": False}}))
        socket.recv()

    with serve(gone, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        tools = KernelTools(url)
        tools.reset(problem_id="L1_23")
        assert OVER in tools.submit(FASTER)
        assert tools.get_reward() is None
        assert KernelReward(url)([FASTER], ["L1_23"]) == [None]
    assert KernelReward(url)([FASTER], ["L1_23"]) == [None]


def test_completions_are_rewarded_in_their_order_as_text_or_messages(served) -> None:
    completions = [WRONG, [{"role": "assistant", "content": f"Here it is:\n```cuda\n{FASTER}```\n"}], LIMIT, "prose"]
    found = KernelReward(served.url, sessions=4)(completions, ["L1_23"] * 4, prompts=[])
    assert found == [pytest.approx(0.1), pytest.approx(1.0), None, pytest.approx(0.4)]


def test_the_trainer_takes_two_optimiser_steps_on_rewards_of_the_server(served, tmp_path) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("trl", reason="needs TRL: the extra train")
    example = runpy.run_path(str(EXAMPLE))
    judged = len(served.judge.judged)
    model, tokenizer = example["tiny_policy"]([WRONG, FASTER, kernel(Verdict.COMPILE_ERROR)])
    before = {name: weights.clone() for name, weights in model.state_dict().items()}
    trainer = example["trainer"](
        served.url, ["L1_23"] * 8, model, tokenizer, output_dir=str(tmp_path), max_steps=2, use_cpu=True, bf16=False,
        per_device_train_batch_size=8, num_generations=8, max_completion_length=2, learning_rate=1e-2, logging_steps=1,
        save_strategy="no", report_to="none", seed=3, max_tool_calling_iterations=2,
    )  # fmt: skip
    trainer.train()
    logs = [entry for entry in trainer.state.log_history if "rewards/KernelTools/mean" in entry]
    assert trainer.state.global_step == 2
    assert len(logs) == 2
    assert all(0.0 < entry["rewards/KernelTools/mean"] < 1.0 for entry in logs)
    assert any(entry["tools/call_frequency"] > 0 for entry in logs)
    assert len(served.judge.judged) > judged
    assert any(not torch.equal(weights, before[name]) for name, weights in model.state_dict().items())
