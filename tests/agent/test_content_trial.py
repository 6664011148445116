"""The content trial: what its arms share and where they differ; an analysis that finds what is there and no more."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "content_trial"))

from analysis import contrast, holm, oracle, outcomes, render, sign_flip_p
from arms import Arm, Asking, Prompt, in_blocks
from parents import GREATEST_SHARE, LEAST_SHARE, parents
from rows import AskedPrompt, JudgedReply

from kernelblaster import read_knowledge
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.relearn import curated
from kernelblaster.knowledge.store import KnowledgeStore, seed_path

FAMILIES = ("matmul", "softmax", "scan", "loss", "reduction", "elementwise")
NOISE = 0.12


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> list[Prompt]:
    """The prompts of a parent for which code memory has a core."""
    folder = tmp_path_factory.mktemp("trial")
    shipped = folder / seed_path().name
    KnowledgeStore(shipped).write(curated(read_knowledge().document))
    parent = next(one for one in parents() if one.id.startswith("level1/026"))
    return list(Asking(parent, Experience(KnowledgeStore(shipped)), folder / "search").prompts())


def test_parents_are_in_the_middle_of_a_search_and_of_many_families() -> None:
    found = parents()
    assert len({parent.id for parent in found}) == len(found) >= 29
    assert len({parent.family for parent in found}) >= 8
    assert all(LEAST_SHARE <= parent.call.share <= GREATEST_SHARE for parent in found)


def test_arms_differ_in_what_they_say_to_try_alone(asked: list[Prompt]) -> None:
    assert sorted((prompt.arm, prompt.reply) for prompt in asked) == [
        (Arm.DONOR, 1), *((arm, reply) for arm in (Arm.FREE, Arm.KNOWLEDGE, Arm.PLACEBO) for reply in (0, 1)),
    ]  # fmt: skip
    before, after = {}, {}
    for prompt in asked:
        head, _, tail = prompt.text.partition("\n# What to try")
        before[prompt.arm, prompt.reply], after[prompt.arm, prompt.reply] = head, tail.partition("\n# Reply")[2]
    plain = {text for (arm, _), text in before.items() if arm is not Arm.DONOR}
    assert len(plain) == 1
    assert len(set(after.values())) == 1
    shared, shown = plain.pop(), before[Arm.DONOR, 1]
    assert set(shared.splitlines()) < set(shown.splitlines())


def test_a_placebo_names_no_technique_of_the_knowledge_arm_and_is_as_long(asked: list[Prompt]) -> None:
    known = {prompt.reply: prompt for prompt in asked if prompt.arm is Arm.KNOWLEDGE}
    placebos = [prompt for prompt in asked if prompt.arm is Arm.PLACEBO]
    assert {prompt.technique for prompt in placebos}.isdisjoint(prompt.technique for prompt in known.values())
    assert all(0.9 < len(prompt.text) / len(known[prompt.reply].text) < 1.1 for prompt in placebos)


def test_names_of_prompts_tell_nothing_and_blocks_are_whole(asked: list[Prompt]) -> None:
    assert all(prompt.arm not in prompt.id and len(prompt.id) == 12 for prompt in asked)
    assert {prompt.id for prompt in in_blocks(asked)} == {prompt.id for prompt in asked}


def trial(effect: dict[Arm, float], *, parents: int = 30, seed: int = 3) -> tuple[list[AskedPrompt], list[JudgedReply]]:
    """Replies whose gain is the parent's, the arm's, and noise."""
    drawn = np.random.default_rng(seed)
    prompts, rows = [], []
    for number in range(parents):
        own = drawn.uniform(0.3, 0.5)
        for arm in Arm:
            for reply in (1,) if arm is Arm.DONOR else (0, 1):
                name = f"{number}-{arm}-{reply}"
                speedup = math.exp(own + effect.get(arm, 0.0) + drawn.normal(0, NOISE))
                prompts.append(
                    AskedPrompt(id=name, parent=f"p{number}", family=FAMILIES[number % len(FAMILIES)], arm=arm,
                                reply=reply, technique="t", headroom=1.5 + number % 2, tensor_cores=number % 3 == 0,
                                source="", text="")
                )  # fmt: skip
                rows.append(
                    JudgedReply(id=name, device="a GPU", modelled=False, workload="medium", verdict="correct",
                                stated_speedup=1.2, speedup=speedup, faster=speedup > 1.01, seconds=1)
                )  # fmt: skip
    return prompts, rows


def test_an_effect_is_found_and_its_interval_holds_its_size() -> None:
    held = 0
    for seed in range(30):
        judged = outcomes(*trial({Arm.KNOWLEDGE: 0.2}, seed=seed))
        found = contrast("knowledge - placebo", judged, Arm.KNOWLEDGE, Arm.PLACEBO)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        assert found.p is not None
        assert found.low > 0
        assert found.p < 0.01
        held += found.low < 0.2 < found.high
    assert held >= 24  # of 30 at 95 %: fewer have a probability of 0.06 %


def test_no_effect_is_seldom_found() -> None:
    found = [
        contrast("", outcomes(*trial({}, parents=24, seed=seed)), Arm.KNOWLEDGE, Arm.PLACEBO) for seed in range(40)
    ]
    wrong = sum(one is not None and one.p is not None and one.p < 0.05 for one in found)
    assert wrong <= 7  # of 40 at 5 %: 8 or more have a probability of 0.1 %


def test_choosing_the_best_arm_by_luck_wins_nothing() -> None:
    lucky = [oracle(outcomes(*trial({}, seed=seed))) for seed in range(20)]
    assert abs(float(np.mean([one for one in lucky if one is not None]))) < 0.02
    real = oracle(outcomes(*trial({Arm.KNOWLEDGE: 0.5})))
    assert real is not None
    assert real > 0.2


def test_few_differences_have_exact_p() -> None:
    assert sign_flip_p([1.0, 1.0, 1.0]) == pytest.approx(0.25)
    assert sign_flip_p([1.0, -1.0]) == 1.0


def test_failed_and_slower_replies_gain_nothing() -> None:
    prompts, rows = trial({}, parents=1)
    changed = [
        rows[0].model_copy(update={"verdict": "wrong_values", "faster": False, "speedup": None}),
        rows[1].model_copy(update={"speedup": 0.5, "faster": False}),
    ]
    first, second, *_ = outcomes(prompts, [*changed, *rows[2:]])
    assert (first.gain, first.ratio, second.gain) == (0.0, None, 0.0)
    assert second.ratio == pytest.approx(math.log(0.5))


def test_corrected_p_never_falls_below_its_own() -> None:
    prompts, rows = trial({Arm.KNOWLEDGE: 0.1})
    judged = outcomes(prompts, rows)
    found = [contrast(str(arm), judged, arm, Arm.FREE) for arm in (Arm.KNOWLEDGE, Arm.PLACEBO, Arm.DONOR)]
    corrected = holm([one for one in found if one is not None])
    assert all(corrected[one.name] >= (one.p or 0) for one in found if one is not None)


def test_the_page_refuses_modelled_rows_and_an_empty_trial() -> None:
    prompts, rows = trial({}, parents=6)
    assert "| knowledge |" in render(prompts, rows)
    with pytest.raises(ValueError, match="modelled"):
        render(prompts, [row.model_copy(update={"modelled": True}) for row in rows])
    with pytest.raises(ValueError, match="nothing"):
        render(prompts, [])
