"""How well a model writes kernels: episodes of the environment, and their figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from kernelblaster.api.environments import open_environment
from kernelblaster.api.evaluating import Tell
from kernelblaster.api.own_parts import require_model
from kernelblaster.api.problems import DatasetName
from kernelblaster.config import ModelConfig, ModelKind, RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.environment.actions import MAX_TURNS, MOST_TURNS
from kernelblaster.environment.baselines import EpisodeBaseline
from kernelblaster.environment.catalogue import level_of, problem_identifier
from kernelblaster.environment.episode import KernelEnvironments
from kernelblaster.environment.playing import Played, Player
from kernelblaster.environment.samples import EvalHeader, SampleStore, Turn, kept_turns
from kernelblaster.environment.scores import Episode, Scores, scores_by_level, scores_of
from kernelblaster.environment.submission import Language, require_judged
from kernelblaster.errors import ExitCode, UsageError
from kernelblaster.models.backends import shipped_recording
from kernelblaster.models.base import ChatModel
from kernelblaster.models.counted import CountedModel
from kernelblaster.models.default_caps import with_default_cap
from kernelblaster.models.factory import build_model
from kernelblaster.models.ledger import CostLedger, stored_totals
from kernelblaster.problems.problem import Problem
from kernelblaster.registry import require_callable
from kernelblaster.runs.choices import choose_model_config
from kernelblaster.runs.interrupts import run_to_end

LEDGER = "ledger.jsonl"
EXCHANGE = "exchange"
OnTurn = Callable[[Turn], object]


class EvalReport(BaseModel):
    """Figures of the episodes that are over, and what is left.

    Rates and means are as of `Scores`; episodes that wait or were not judged are in none of them.
    """

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    header: EvalHeader
    asked: int
    """Episodes that were asked for."""
    overall: Scores
    levels: dict[int, Scores]
    pending: int
    """Episodes that wait for replies of a batch exchange."""
    request_files: list[str]
    """Where their requests stand."""
    unjudged: list[str]
    """Episodes that the machine, or a broken problem, did not let end, with the reason."""
    stopped: str | None
    """The cap of the budget that was reached."""
    dollars: float | None
    """Spent in all starts; None where a price is unknown."""
    tokens: int

    @property
    def exit_code(self) -> ExitCode:
        """Of a command that made this report."""
        if self.stopped is not None:
            return ExitCode.BUDGET
        if self.unjudged:
            return ExitCode.MACHINE
        return ExitCode.WAITING if self.pending else ExitCode.OK


class KeptScores(BaseModel):
    """Figures of an evaluation that is kept, as far as it has come."""

    model_config = ConfigDict(frozen=True, allow_inf_nan=False)

    header: EvalHeader
    turns: int
    """Turns of an episode that count."""
    begun: int
    """Episodes with a turn."""
    overall: Scores
    """Of those that were over after so many turns."""
    levels: dict[int, Scores]


def kept_scores(path: Path, *, turns: int | None = None) -> KeptScores:
    """Figures of what an evaluation has kept, without a device or a model.

    Args:
        path: directory of `evaluate_model`, or the `turns.jsonl` in it.
        turns: count an episode's first turns alone, as if it had not been allowed more; all of them if None.

    Raises UsageError.
    """
    header, found = kept_turns(path)
    most = header.turns if turns is None else min(turns, header.turns)
    _require(1, most)
    episodes: defaultdict[str, list[Episode]] = defaultdict(list)
    for (problem, _), played in found.items():
        if len(played) >= most or played[-1].done:
            episodes[problem].append(Episode(played[:most]))
    return KeptScores(
        header=header,
        turns=most,
        begun=len(found),
        overall=scores_of(episodes),
        levels=scores_by_level(episodes, {problem: level_of(problem) for problem in episodes}),
    )


def evaluate_model(
    tasks: Sequence[str] = (),
    *,
    directory: Path,
    samples: int = 1,
    turns: int = 1,
    language: Language | str = Language.AUTO,
    config: RunConfig | None = None,
    model: ChatModel | None = None,
    exchange: Path | None = None,
    dataset: DatasetName | None = None,
    reward: str = "seed",
    baseline: EpisodeBaseline | str = EpisodeBaseline.START,
    sanitize: bool = True,
    device: Device | str | None = None,
    on_stage: Tell | None = None,
    on_turn: OnTurn | None = None,
) -> EvalReport:
    """Let a model play episodes, and score them. The same call continues what an earlier one left in `directory`.

    Args:
        tasks: task lists (`heldout`, `level1`) and exact names of problems; all problems if empty.
        directory: turns, ledger and batch exchange lie here.
        samples: episodes of each problem.
        turns: most of an episode: 1 scores single replies, more lets the model read feedback.
        language: that the model is to write.
        config: model, budget, precision, size; the defaults if None.
        model: one of your own in place of the configured one.
        exchange: folder of the batch exchange; in `directory` if None.
        dataset: a data set other than the configured one.
        reward: name of a scheme of `REWARDS`.
        baseline: what speed-ups are against, see `EpisodeBaseline`.
        sanitize: run the device's sanitizers over what crashes or is wrong, where the model has a turn left to read it.
        device, on_stage: see `open_evaluator`.
        on_turn: told each turn that is judged.

    Raises UsageError, DeviceError, ModelError.
    """
    config = config or RunConfig()
    language = _language(language)
    _require(samples, turns)
    require_model(model)
    require_callable("on_turn", on_turn)
    if model is None:
        config = config.model_copy(update={"model": _model_config(config.model)})
    with open_environment(
        config,
        dataset=dataset,
        reward=reward,
        baseline=baseline,
        sanitize=sanitize,
        confirm=False,
        asked=tasks,
        device=device,
        on_stage=on_stage,
    ) as environments:
        problems = environments.catalogue.choose(tasks)
        header = _header(environments, model.name if model else config.model.name, config, dataset, turns, language)
        store = SampleStore(directory, header)
        ledger = _ledger(directory / LEDGER, config, model)
        player = Player(
            environments=environments,
            model=CountedModel(model, ledger)
            if model
            else build_model(config.model, exchange or directory / EXCHANGE, ledger, environments.judge.facts.name),
            store=store,
            turns=turns,
            language=language,
            threads=config.concurrency,
            on_turn=on_turn or _ignore,
        )
        played = run_to_end(player.play(problems, samples))
        if not played.pending and not played.unjudged and played.stopped is None:
            ledger.all_kept()
        return _report(player, problems, samples, header, played, ledger)


def _language(name: str) -> Language:
    """Raises UsageError where there is none of that name, or it is not judged here."""
    try:
        language = Language(name)
    except ValueError as error:
        raise UsageError(f"there is no language {name!r} here", hint=f"choose from {', '.join(Language)}") from error
    require_judged(language)
    return language


def _model_config(asked: ModelConfig) -> ModelConfig:
    """Which model is played. Raises UsageError where none is named: what ships are answers to searches."""
    chosen = choose_model_config(asked).config
    if chosen.kind == ModelKind.RECORDED and chosen.recording in (None, shipped_recording()):
        raise UsageError(
            "there is no model to evaluate: the shipped recording answers searches alone",
            hint="set OPENAI_API_KEY, or give --base-url, --model-kind batch_exchange or --recording FILE",
        )
    return chosen


def _require(samples: int, turns: int) -> None:
    if samples < 1:
        raise UsageError(f"{samples} samples of a problem", hint="ask for one or more")
    if not 1 <= turns <= MOST_TURNS:
        raise UsageError(f"episodes of {turns} turns", hint=f"give 1 to {MOST_TURNS}, such as {MAX_TURNS}")


def _header(
    environments: KernelEnvironments,
    model: str,
    config: RunConfig,
    dataset: DatasetName | None,
    turns: int,
    language: Language,
) -> EvalHeader:
    judge, settings = environments.judge, environments.settings
    return EvalHeader(
        model=model,
        dataset=str(dataset or config.dataset),
        turns=turns,
        language=language,
        conditions=judge.conditions,
        modelled=judge.facts.kind is DeviceKind.EMULATED,
        reward={name: str(value) for name, value in settings.recorded.items() if name != "baseline"},
        baseline=settings.baseline,
    )


def _ledger(path: Path, config: RunConfig, model: ChatModel | None) -> CostLedger:
    """The ledger, under the configured caps, or under a default one where the configured model may charge."""
    caps = config.budget if model else with_default_cap(config.budget, config.model, stored_totals(path))
    return CostLedger(path, caps)


def _report(
    player: Player, problems: Sequence[Problem], samples: int, header: EvalHeader, played: Played, ledger: CostLedger
) -> EvalReport:
    episodes = {problem_identifier(one): player.episodes(one, samples) for one in problems}
    spent = ledger.totals()
    return EvalReport(
        header=header,
        asked=samples * len(problems),
        overall=scores_of(episodes),
        levels=scores_by_level(episodes, {problem_identifier(one): one.id.level for one in problems}),
        pending=len(played.pending),
        request_files=sorted(set(played.pending.values())),
        unjudged=[f"{one.problem}, sample {one.sample}: {one.reason}" for one in played.unjudged],
        stopped=played.stopped,
        dollars=spent.dollars,
        tokens=spent.prompt_tokens + spent.completion_tokens,
    )


def _ignore(turn: Turn) -> None:
    """Nobody watches."""
