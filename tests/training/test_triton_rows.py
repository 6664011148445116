"""Rows that ask for Triton: what a reply names is recorded, compiled and judged by the real judge."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from kernelblaster import open_evaluator
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.rewards import REWARDS, RewardOptions
from kernelblaster.problems.tags import Split
from kernelblaster.python_candidates.recording import has_triton
from kernelblaster.training.judging import PolicyCompletion, Scorer, StoredJudge

pytest.importorskip("trl", reason="needs trl: the extra train")
pytestmark = pytest.mark.skipif(not has_triton(), reason="needs Triton")


def test_each_module_that_a_letter_names_gets_the_verdict_it_deserves(
    catalogue: Catalogue, nvcc: Toolchain, tmp_path: Path
) -> None:
    from grpo_template import CONFIG
    from grpo_triton import CORRECT, LETTERS, prompt_row

    row = prompt_row(catalogue, "level1_019_relu", Split.TRAIN)
    with open_evaluator(CONFIG) as evaluator:
        judge = StoredJudge(SharedJudge(evaluator), catalogue, tmp_path)
        found = Scorer(judge, REWARDS.get("graded")(RewardOptions())).score(
            [PolicyCompletion(row, letter, 1) for letter in LETTERS]
        )
    told = dict(zip(LETTERS, found, strict=True))
    assert told[CORRECT].verdict == "correct"
    assert [told[letter].verdict for letter in "abcd"] == [*["compile_error"] * 2, "wrong_values", "compile_error"]
    assert all(told[CORRECT].reward > told[letter].reward for letter in "abcd")
