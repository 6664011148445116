"""The whole way on the emulated device: nvcc, the emulator, the judge, the reward."""

from __future__ import annotations

import pytest

from kernelblaster import EvaluationConfig, KernelAction, RunConfig, open_environment

CONFIG = RunConfig(device="emulated", precision="fp32", evaluation=EvaluationConfig(input_sets=1))


@pytest.mark.nvcc
def test_rewards_of_a_start_and_of_what_does_not_compile() -> None:
    with open_environment(CONFIG) as environments:
        session = environments.session()
        first = session.reset(problem_id="L1_19", max_turns=3)
        broken = session.step(KernelAction(code=first.start_code + "\nint x = ;\n"))
        again = session.step(KernelAction(code=first.start_code))
    assert (broken.verdict, broken.reward) == ("compile_error", 0.0)
    assert "int x = ;" in broken.feedback
    assert (again.verdict, again.decision, again.reward) == ("correct", "inconclusive", pytest.approx(0.4))
    assert all(seen.modelled for seen in (first, broken, again))
    assert again.state["name"]
    assert again.profile


@pytest.mark.nvcc
@pytest.mark.slow
def test_a_wrong_kernel_gets_what_a_build_is_worth() -> None:
    with open_environment(CONFIG) as environments:
        session = environments.session()
        start = session.reset(problem_id="L1_19").start_code
        wrong = session.step(KernelAction(code=start.replace("fmaxf", "fminf").replace("> 0", "< 0")))
    assert wrong.verdict == "wrong_values"
    assert wrong.reward == pytest.approx(0.1)
    assert wrong.modelled
    assert wrong.runtime_us is None


@pytest.mark.nvcc
@pytest.mark.slow
def test_canaries_are_right_and_tiers_agree_and_do_no_more_than_they_say() -> None:
    with open_environment(CONFIG, canary_minutes=30) as environments:
        session = environments.session()
        start = session.reset(problem_id="L1_19").start_code
        correct, quick = (session.step(KernelAction(code=start, tier=tier)) for tier in ("correct", "quick"))
        wrong = session.step(KernelAction(code=start.replace("fmaxf", "fminf").replace("> 0", "< 0"), tier="correct"))
    assert [seen.verdict for seen in (correct, quick, wrong)] == ["correct", "correct", "wrong_values"]
    assert (correct.runtime_us, correct.profile, quick.profile) == (None, {}, {})
    assert quick.runtime_us is not None
    assert quick.decision == "inconclusive"
