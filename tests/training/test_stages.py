"""Stages with a model made here: they learn, kills change nothing, and a flat reward teaches nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("trl", reason="needs trl: the extra train")

import torch
from fake_judge import FakeJudge, kernel
from safetensors.torch import load_file

from kernelblaster.config.training import Preset, TrainConfig
from kernelblaster.errors import DeviceError, MachineError, UsageError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.models.base import Message
from kernelblaster.problems.problem import Precision
from kernelblaster.training import policy
from kernelblaster.training.arms import BASE, Arm
from kernelblaster.training.grpo import KernelTrainer
from kernelblaster.training.judging import MACHINE, StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.page import write_page
from kernelblaster.training.rollouts import Rollout, RolloutStore, read_rollouts
from kernelblaster.training.rows import PromptRow, ReplyForm, SftRow, answer, write_rows
from kernelblaster.training.running import run_evaluation, run_stage, run_warmup
from kernelblaster.training.stages import Stage
from kernelblaster.training.tiny_model import write_model

PROMPT = (Message(role="user", content="softmax"),)
FAILING = {
    "a": kernel(Verdict.COMPILE_ERROR), "b": kernel(Verdict.WRONG_VALUES), "c": kernel(Verdict.RUNTIME_ERROR),
    "d": kernel(Verdict.REWARD_HACK, 100.0, Decision.FASTER),
}  # fmt: skip
CHOICES = {**FAILING, "e": kernel(Verdict.CORRECT)}
KILLS = [
    *(("generating", 1), ("generated", 1), ("judged", 1), ("updated", 2), ("saving", 2), ("saved", 2)),
    *(("generating", 3), ("generated", 3), ("judged", 3)),
]
"""Checkpoints are made after two updates and after four."""


class Killed(BaseException):
    """The process dies here."""


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("base"))


def lay_out(root: Path, choices: dict[str, str], *, other: tuple[Message, ...] = ()) -> TrainingLayout:
    layout = TrainingLayout(root)
    row = PromptRow(
        prompt=PROMPT, problem="level1/023", stage="frontend", precision="fp16", size="small", family="softmax",
        split="train", reply=ReplyForm.CHOICE, choices=json.dumps(choices),
    )  # fmt: skip
    others = [row.model_copy(update={"prompt": other})] if other else []
    write_rows(layout.prompts(Stage.FRONTEND), [row, *others])
    warmup = [
        SftRow(
            prompt=PROMPT, completion=answer(letter), problem="level1/023", stage="frontend", verdict="correct",
            speedup=None, source="template", candidate_sha256="", family="softmax", split="train",
        )
        for letter in choices
    ]  # fmt: skip
    write_rows(layout.data / "sft.jsonl", warmup)
    return layout


def settings(base: Path, steps: int, **given: object) -> TrainConfig:
    values: dict[str, object] = {
        "model": base, "steps": steps, "completion_tokens": 3, "prompt_tokens": 64, "warmup_learning_rate": 1e-2,
        "learning_rate": 1e-3, "lora_dropout": 0.05,
    }  # fmt: skip
    return TrainConfig.model_validate(values | given)


def told(rollouts: list[Rollout]) -> list[Rollout]:
    """Without the time it took."""
    return [one.model_copy(update={"judge_seconds": 0.0}) for one in rollouts]


def weights(layout: TrainingLayout) -> dict[str, torch.Tensor]:
    return load_file(layout.adapter(layout.stage(Stage.FRONTEND)) / "adapter_model.safetensors")


def test_killed_at_every_kind_of_moment_it_ends_as_if_it_had_not_been(
    base: Path, stored: Callable[[], StoredJudge], judge: FakeJudge, tmp_path: Path
) -> None:
    config = settings(base, 4, checkpoint_steps=2, curriculum=True)
    other = (Message(role="user", content="relu"),)
    undisturbed, disturbed = (lay_out(tmp_path / name, CHOICES, other=other) for name in ("undisturbed", "disturbed"))
    run_stage(undisturbed, config, Stage.FRONTEND, stored())
    kills, generating = list(KILLS), []

    def moment(name: str, step: int) -> None:
        if name == "generating":
            generating.append(step)
        if kills and (name, step) == kills[0]:
            kills.pop(0)
            raise Killed

    for _ in KILLS:
        with pytest.raises(Killed):
            run_stage(disturbed, config, Stage.FRONTEND, stored(), moment)
    run_stage(disturbed, config, Stage.FRONTEND, stored(), moment)
    assert generating == [0, 1, 1, 2, 3, 3]  # twice only where it was killed before there was anything to keep
    before, after = (told(read_rollouts(layout.stage(Stage.FRONTEND))) for layout in (undisturbed, disturbed))
    assert before == after
    assert len(after) == 4 * 4
    one, other = weights(undisturbed), weights(disturbed)
    assert all(torch.equal(one[name], other[name]) for name in one)
    assert len(judge.judged) == len(set(judge.judged))


def test_a_warm_up_that_was_killed_goes_on_from_its_checkpoint(base: Path, tmp_path: Path) -> None:
    whole, killed = (lay_out(tmp_path / name, CHOICES) for name in ("whole", "killed"))
    config, saved = settings(base, 4), []
    run_warmup(whole, config)

    def moment(name: str, step: int) -> None:
        if name == "saved":
            saved.append(step)
        if len(saved) == 2 and (name, step) in (("saved", 2), ("saving", 3)):
            raise Killed

    for _ in range(2):
        with pytest.raises(Killed):
            run_warmup(killed, config, moment)
    run_warmup(killed, config, lambda name, step: saved.append(step) if name == "saved" else None)
    assert saved == [1, 2, 3, 4]
    one, other = (load_file(layout.adapter(layout.warmup) / "adapter_model.safetensors") for layout in (whole, killed))
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_a_stage_that_ran_out_of_time_goes_on_and_ends_as_one_that_did_not(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    whole, parts = (lay_out(tmp_path / name, CHOICES) for name in ("whole", "parts"))
    config = settings(base, 2)
    run_stage(whole, config, Stage.FRONTEND, stored())
    short = run_stage(parts, settings(base, 2, minutes=1e-9), Stage.FRONTEND, stored())
    assert short.updates == 1
    ended = run_stage(parts, config, Stage.FRONTEND, stored())
    assert ended.updates == 2
    one, other = weights(whole), weights(parts)
    assert all(torch.equal(one[name], other[name]) for name in one)


def test_what_the_machine_lost_moves_no_weights(
    base: Path, stored: Callable[[], StoredJudge], judge: FakeJudge, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = {letter: kernel(Verdict.WRONG_VALUES, note=f"// {letter}\n") for letter in "abcdefghij"}
    layout = lay_out(tmp_path, {**sources, "k": kernel(Verdict.CORRECT), "l": kernel(Verdict.COMPILE_ERROR)})
    outputs: list[dict[str, Any]] = []
    plain_judge, plain_scores = judge.evaluate, KernelTrainer._generate_and_score_completions

    def failing(problem: Any, source: str, **options: Any) -> Any:
        if source == sources["c"]:
            raise DeviceError("the GPU is lost", hint="find it")
        return plain_judge(problem, source, **options)

    def noting(self: KernelTrainer, inputs: Any) -> Any:
        outputs.append(plain_scores(self, inputs))
        return outputs[-1]

    monkeypatch.setattr(judge, "evaluate", failing)
    monkeypatch.setattr(KernelTrainer, "_generate_and_score_completions", noting)
    run_warmup(layout, settings(base, 60))
    run_stage(layout, settings(base, 3, groups=8), Stage.FRONTEND, stored())
    rollouts = read_rollouts(layout.stage(Stage.FRONTEND))
    lost = [one for one in rollouts if one.reward is None]
    assert lost
    assert {one.completion for one in lost} == {one.completion for one in rollouts if one.verdict == MACHINE}
    for step, output in enumerate(outputs):
        assert all(output["advantages"][one.index] == 0 for one in lost if one.step == step)
        assert any(output["advantages"] != 0)
    assert all(tensor.isfinite().all() for tensor in weights(layout).values())


def test_the_seed_preset_reaches_trl_as_the_report_states_it(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = lay_out(tmp_path / "seed", CHOICES)
    given: list[Any] = []

    def noting(self: KernelTrainer, **_: Any) -> Any:
        given.append(self)
        raise Killed  # before 512 tokens are generated

    monkeypatch.setattr(KernelTrainer, "train", noting)
    with pytest.raises(Killed):
        run_stage(layout, TrainConfig(model=base, preset=Preset.SEED, steps=1), Stage.FRONTEND, stored())
    (trainer,) = given
    args, adapter = trainer.args, trainer.model.peft_config["default"]
    assert (args.loss_type, args.scale_rewards, args.beta) == ("grpo", "none", 0.1)
    assert (args.num_generations, args.per_device_train_batch_size, args.gradient_accumulation_steps) == (4, 4, 1)
    assert (args.learning_rate, args.temperature, args.max_completion_length) == (1e-6, 1.0, 512)
    assert (adapter.r, adapter.lora_alpha, adapter.lora_dropout) == (16, 32, 0.05)
    assert adapter.target_modules == {f"{name}_proj" for name in ("q", "k", "v", "o", "gate", "up", "down")}


def test_a_stage_that_has_ended_is_left_alone(base: Path, stored: Callable[[], StoredJudge], tmp_path: Path) -> None:
    layout, config = lay_out(tmp_path / "run", CHOICES), settings(base, 1)
    first = run_stage(layout, config, Stage.FRONTEND, stored())
    again = run_stage(layout, config, Stage.FRONTEND, stored(), lambda name, step: pytest.fail("it was trained again"))
    assert again == first


def test_a_stage_goes_on_with_more_updates_and_refuses_other_settings(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    layout = lay_out(tmp_path / "run", CHOICES)
    run_stage(layout, settings(base, 1), Stage.FRONTEND, stored())
    for other in ({"loss": "grpo"}, {"seed": 1}, {"preset": Preset.SEED}, {"temperature": 0.5}, {"lora_rank": 8}):
        with pytest.raises(UsageError, match="other settings"):
            run_stage(layout, settings(base, 2, **other), Stage.FRONTEND, stored())
    moved = shutil.copytree(base, tmp_path / "moved")
    more = run_stage(layout, settings(moved, 2, loss="dr_grpo", minutes=9), Stage.FRONTEND, stored())
    assert more.updates == 2  # the preset's loss by name, another place of the same model, a limit of one start
    (moved / "config.json").write_text(json.dumps({"other": "model"}))
    with pytest.raises(UsageError, match="other settings: model"):
        run_stage(layout, settings(moved, 3), Stage.FRONTEND, stored())


def test_kernels_are_judged_at_what_their_prompts_tell(
    base: Path, stored: Callable[[], StoredJudge], judge: FakeJudge, tmp_path: Path
) -> None:
    layout = lay_out(tmp_path / "run", CHOICES)
    run_stage(layout, settings(base, 1), Stage.FRONTEND, stored())
    judge.precision, judge.workload = Precision.FP32, "medium"
    with pytest.raises(UsageError, match="precision 'fp16', now 'fp32', workload 'small', now 'medium'"):
        run_stage(layout, settings(base, 1), Stage.FRONTEND, stored())
    other = lay_out(tmp_path / "other", CHOICES)
    with pytest.raises(UsageError, match=r"asks for fp16 at size small.* in fp32 at medium"):
        run_stage(other, settings(base, 1), Stage.FRONTEND, stored())
    with pytest.raises(UsageError, match="asks for fp16 at size small"):
        run_evaluation(other, settings(base, 1), stored(), Arm(BASE, Stage.FRONTEND, "train"))
    assert not (other.root / "frontend").exists()


def test_a_stage_whose_first_weights_are_gone_says_so(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    layout = lay_out(tmp_path / "run", CHOICES)
    run_warmup(layout, settings(base, 1))
    run_stage(layout, settings(base, 1), Stage.FRONTEND, stored())
    shutil.rmtree(layout.warmup)
    with pytest.raises(UsageError, match="began with the weights of 'sft'"):
        run_stage(layout, settings(base, 2), Stage.FRONTEND, stored())


def test_a_killed_stage_refuses_other_settings_and_keeps_what_it_began_with(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    layout = lay_out(tmp_path / "run", CHOICES)

    def moment(name: str, step: int) -> None:
        if name == "judged":
            raise Killed

    with pytest.raises(Killed):
        run_stage(layout, settings(base, 1), Stage.FRONTEND, stored(), moment)
    with pytest.raises(UsageError, match="loss"):
        run_stage(layout, settings(base, 1, loss="grpo"), Stage.FRONTEND, stored())
    run_warmup(layout, settings(base, 1))
    assert run_stage(layout, settings(base, 1), Stage.FRONTEND, stored()).begins_with == ""


def test_an_evaluation_of_weights_that_were_trained_since_is_refused(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    layout, arm = lay_out(tmp_path / "run", CHOICES), Arm("frontend", Stage.FRONTEND, "train")
    run_stage(layout, settings(base, 1), Stage.FRONTEND, stored())
    few = settings(base, 1, samples=2)
    first = run_evaluation(layout, few, stored(), arm)
    assert run_evaluation(layout, few, stored(), arm) == first
    with pytest.raises(UsageError, match="sampling"):
        run_evaluation(layout, settings(base, 1, samples=2, temperature=0.5), stored(), arm)
    run_stage(layout, settings(base, 2), Stage.FRONTEND, stored())
    with pytest.raises(UsageError, match="weights"):
        run_evaluation(layout, settings(base, 2, samples=2), stored(), arm)
    with pytest.raises(UsageError, match="no trained 'foo'"):
        run_evaluation(layout, few, stored(), Arm("foo", Stage.FRONTEND, "train"))


def test_an_evaluation_without_prompts_of_its_split_says_so(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="heldout"):
        run_evaluation(lay_out(tmp_path, CHOICES), settings(base, 1), stored(), Arm(BASE, Stage.FRONTEND, "heldout"))


def test_what_is_no_chat_model_and_a_generator_that_is_not_there_are_told(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = lay_out(tmp_path / "run", CHOICES)
    mute, broken = (shutil.copytree(base, tmp_path / name) for name in ("mute", "broken"))
    (mute / "chat_template.jinja").unlink()
    (broken / "model.safetensors").write_bytes(b"no weights")
    for model, told in ((mute, "chat template"), (broken, "cannot be loaded"), (tmp_path, "no base model")):
        with pytest.raises(UsageError, match=told):
            run_stage(layout, settings(model, 1), Stage.FRONTEND, stored())
    monkeypatch.setattr(policy, "find_spec", lambda name: None)
    with pytest.raises(MachineError, match="vLLM"):
        run_stage(layout, settings(base, 1, generator="vllm_server"), Stage.FRONTEND, stored())
    assert not layout.stage(Stage.FRONTEND).exists()


def test_the_seed_preset_learns_nothing_where_all_fail(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    """Equal rewards in a group: no gradient, weight for weight, as long as nothing pulls towards the start."""
    layout = lay_out(tmp_path / "flat", FAILING)
    config = settings(base, 2, preset=Preset.SEED, beta=0.0, lora_dropout=0.0)
    record = run_stage(layout, config, Stage.FRONTEND, stored())
    assert record.metrics is not None
    assert record.metrics.informative_groups == 0.0
    assert {one.reward for one in read_rollouts(layout.stage(Stage.FRONTEND))} == {-10.0}
    changed = [name for name, values in weights(layout).items() if "lora_B" in name and values.abs().max() > 0]
    assert changed == []


def test_where_nothing_fits_the_limit_and_what_would_do_are_named(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    layout = lay_out(tmp_path, CHOICES, other=(Message(role="user", content="a question " * 50),))
    with pytest.raises(UsageError, match=r"train.prompt_tokens=3 .* shortest has 12") as prompts:
        run_stage(layout, settings(base, 1, prompt_tokens=3), Stage.FRONTEND, stored())
    assert "train.prompt_tokens=16," in (prompts.value.hint or "")
    with pytest.raises(UsageError, match=r"has 4 tokens or less .*train.completion_tokens=3.*: the shortest has 1"):
        run_warmup(layout, settings(base, 1, prompt_tokens=1))
    some = run_stage(layout, settings(base, 1), Stage.FRONTEND, stored())
    assert (some.rows, some.left_out) == (1, 1)


def test_a_greedy_arm_takes_one_completion_per_prompt_whatever_the_seed(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    layout = lay_out(tmp_path, CHOICES)
    told_by_seed = []
    for seed in (1, 2):
        arm = Arm(BASE, Stage.FRONTEND, "train", greedy=True)
        found = run_evaluation(layout, settings(base, 20, samples=4, seed=seed), stored(), arm)
        rollouts = read_rollouts(layout.evaluation(arm.name))
        assert found.overall.completions == len(rollouts) == 1
        told_by_seed.append([one.completion for one in rollouts])
        shutil.rmtree(layout.evaluation(arm.name))
    assert told_by_seed[0] == told_by_seed[1]


def test_an_evaluation_that_was_killed_goes_on_and_ends_as_one_that_was_not(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layouts = [lay_out(tmp_path / name, CHOICES, other=(Message(role="user", content="relu"),)) for name in "ab"]
    config, arm = settings(base, 20, samples=4), Arm("sft", Stage.FRONTEND, "train")
    for layout in layouts:
        run_warmup(layout, config)
    whole = run_evaluation(layouts[0], config, stored(), arm)
    for name, kept in (("keep_generation", 0), ("keep", 2), ("keep_generation", 0)):
        plain, calls = getattr(RolloutStore, name), []

        def killing(
            self: RolloutStore, line: Any, plain: Any = plain, calls: list[Any] = calls, kept: int = kept
        ) -> None:
            if len(calls) == kept:
                raise Killed
            calls.append(line)
            plain(self, line)

        with monkeypatch.context() as patched:
            patched.setattr(RolloutStore, name, killing)
            with pytest.raises(Killed):
                run_evaluation(layouts[1], config, stored(), arm)
    resumed = run_evaluation(layouts[1], config, stored(), arm)
    assert resumed.estimates == whole.estimates
    before, after = (told(read_rollouts(layout.evaluation(arm.name))) for layout in layouts)
    assert before == after


@pytest.mark.slow
def test_warm_up_and_frontend_find_the_one_correct_kernel(
    base: Path, stored: Callable[[], StoredJudge], tmp_path: Path
) -> None:
    layout, config = lay_out(tmp_path / "learns", CHOICES), settings(base, 50, generations=8, checkpoint_steps=50)
    run_warmup(layout, config)
    record = run_stage(layout, config, Stage.FRONTEND, stored())
    assert record.begins_with == "sft"
    rewards = [one.reward or 0.0 for one in read_rollouts(layout.stage(Stage.FRONTEND))]
    assert sum(rewards[-40:]) / 40 > sum(rewards[:40]) / 40 + 0.2
    assert write_page([layout], layout.page)
    untrained = run_evaluation(layout, config, stored(), Arm(BASE, Stage.FRONTEND, "train"))
    trained = run_evaluation(layout, config, stored(), Arm("frontend", Stage.FRONTEND, "train"), against=BASE)
    assert trained.differences["correct"].value > 0
    assert untrained.overall.completions == config.samples
