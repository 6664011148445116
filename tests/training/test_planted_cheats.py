"""Exploits of the judge, as a policy could write them, get the floor of each reward scheme on the emulated GPU."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from planted import Kind, Planted, load_all

from kernelblaster import EvaluationConfig, RunConfig, open_evaluator
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.rewards import REWARDS, RewardOptions
from kernelblaster.evaluation.results import Verdict
from kernelblaster.models.base import Message
from kernelblaster.problems.problem import Precision
from kernelblaster.training.judging import PolicyCompletion, Scorer, StoredJudge
from kernelblaster.training.rows import PromptRow

OFTEN = ("V24_includes_a_file", "T20_keeps_row_sums")
"""Judged by default: one is refused before it runs, one by what it does."""
CHEATS = [
    planted
    for planted in load_all(Kind.EXPLOIT)
    if planted.expected[DeviceKind.EMULATED] == {Verdict.REWARD_HACK} and planted.precision is Precision.FP16
]


@pytest.fixture(scope="module")
def judge(nvcc: Toolchain, catalogue: Catalogue, tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredJudge]:
    config = RunConfig(device="emulated", size="small", evaluation=EvaluationConfig(input_sets=2))
    with open_evaluator(config) as evaluator:
        yield StoredJudge(SharedJudge(evaluator), catalogue, tmp_path_factory.mktemp("judged"))


@pytest.mark.nvcc
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "planted",
    [pytest.param(one, id=one.name, marks=[] if one.name in OFTEN else [pytest.mark.slow]) for one in CHEATS],
)
def test_an_exploit_gets_the_floor_of_every_scheme(judge: StoredJudge, catalogue: Catalogue, planted: Planted) -> None:
    problem = catalogue.find(planted.problem)
    row = PromptRow(
        prompt=(Message(role="user", content="?"),), problem=str(problem.id), stage="midend", precision="fp16",
        size="small", family="?", split="train",
    )  # fmt: skip
    completion = PolicyCompletion(row, f"```cuda\n{planted.source}\n```", tokens=1)
    for name in REWARDS:
        scheme = REWARDS.get(name)(RewardOptions())
        (found,) = Scorer(judge, scheme).score([completion])
        assert (found.verdict, found.hack) == (Verdict.REWARD_HACK, True), found.reason
        assert found.reward == scheme.lowest
    assert len(CHEATS) >= 10
