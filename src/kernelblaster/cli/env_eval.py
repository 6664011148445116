"""`kernelblaster env eval` and `env report`: how well a model writes kernels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from kernelblaster.cli import terminal
from kernelblaster.cli.options import (
    BASELINE_HELP,
    REWARD_HELP,
    DatasetOption,
    DeviceOption,
    ExchangeOption,
    GpuTypeOption,
    JsonOption,
    ModelOptions,
    PrecisionOption,
    SizeOption,
    grouped,
    positive,
)
from kernelblaster.cli.progress import Progress
from kernelblaster.cli.settings import ConfigOption, SetOption, configured, setting

if TYPE_CHECKING:
    from kernelblaster import EvalReport, KeptScores, Scores, Turn


@dataclass(frozen=True)
class EvalOptions:
    """What is played, and how often."""

    tasks: Annotated[
        list[str] | None,
        typer.Argument(help="Task lists (heldout, level1) and exact names (L1_23); all problems if none is given."),
    ] = None
    samples: Annotated[int, typer.Option("--samples", min=1, help="Episodes of each problem: n of pass@k.")] = 1
    turns: Annotated[int, typer.Option("--turns", min=1, max=1000, help="Most turns of an episode.")] = 1
    language: Annotated[
        str, typer.Option("--language", help="cuda, triton, inline (CUDA in Python), or auto: CUDA is asked for.")
    ] = "auto"
    reward: Annotated[str, typer.Option("--reward", help=REWARD_HELP)] = "seed"
    baseline: Annotated[str, typer.Option("--baseline", help=BASELINE_HELP)] = "start"
    sanitize: Annotated[
        bool,
        typer.Option("--sanitize/--no-sanitize", help="Let the model read what sanitizers find where it fails."),
    ] = True
    to: Annotated[
        Path | None,
        typer.Option("--to", help="Where turns are kept; OUT/env-eval/MODEL if not given. The same command continues."),
    ] = None


@dataclass(frozen=True)
class EvalPlaceOptions:
    """Where it is judged, what it may cost, and where settings come from."""

    exchange: ExchangeOption = None
    max_minutes: Annotated[float | None, setting("max_minutes", callback=positive)] = None
    max_dollars: Annotated[float | None, setting("max_dollars", callback=positive)] = None
    max_tokens: Annotated[int | None, setting("max_tokens", callback=positive)] = None
    precision: PrecisionOption = None
    device: DeviceOption = None
    gpu_type: GpuTypeOption = None
    size: SizeOption = None
    out: Annotated[Path | None, setting("out")] = None
    config: ConfigOption = None
    assignments: SetOption = None
    dataset_dir: DatasetOption = None
    json_output: JsonOption = False


@grouped(EvalOptions, ModelOptions, EvalPlaceOptions)
def evaluate(played: EvalOptions, model: ModelOptions, place: EvalPlaceOptions) -> int:
    """Let a model write kernels: pass@k, fast_p, mean reward and hack rate, by level.

    Continues what an earlier start left. Exit code 75 while a batch exchange waits for replies.
    """
    from kernelblaster import evaluate_model

    parameters = {name: value for group in (model, place) for name, value in vars(group).items()}
    config = configured(parameters, file=place.config, assignments=place.assignments).config
    with Progress() as progress:
        report = evaluate_model(
            played.tasks or (),
            directory=played.to or config.out / "env-eval" / config.model.name.replace("/", "_"),
            samples=played.samples,
            turns=played.turns,
            language=played.language,
            config=config,
            exchange=place.exchange,
            dataset=place.dataset_dir,
            reward=played.reward,
            baseline=played.baseline,
            sanitize=played.sanitize,
            on_stage=progress.tell,
            on_turn=_Count(progress).tell,
        )
    if place.json_output:
        terminal.print_json(report)
    else:
        print_report(terminal.console(), report)
    return int(report.exit_code)


def report(
    paths: Annotated[
        list[Path], typer.Argument(metavar="DIR|TURNS.JSONL ...", help="Directories of `env eval`, or files of turns.")
    ],
    turns: Annotated[
        int | None, typer.Option("--turns", min=1, help="Count only so many turns of an episode, from its first.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Tables of Markdown.")] = False,
    json_output: JsonOption = False,
) -> int:
    """Show the figures of evaluations that are kept: each file apart, by level. Needs no device and no model."""
    from kernelblaster import kept_scores

    found = [kept_scores(path, turns=turns) for path in paths]
    if json_output:
        terminal.print_json([one.model_dump(mode="json") for one in found])
        return 0
    console = terminal.console()
    for path, kept in zip(paths, found, strict=True):
        plural = "" if kept.turns == 1 else "s"
        over = f"{kept.overall.episodes} of {kept.begun} episodes are over after {kept.turns} turn{plural}"
        about = f"{_title(kept)}; {kept.header.language}, reward {kept.header.reward['reward']}: {over} ({path})"
        console.print(about, style="bold", markup=False, soft_wrap=True)
        if markdown:
            console.print("\n" + _markdown(kept) + "\n", markup=False, soft_wrap=True)
        elif kept.overall.episodes:
            console.print(_table(kept))
    return 0


class _Count:
    """Tells how many turns this start has judged."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._turns = 0

    def tell(self, turn: Turn) -> None:
        """One more."""
        self._turns += 1
        self._progress.tell(f"{self._turns} turns judged, the last of {turn.problem}: {turn.verdict}")


def print_report(console: Console, report: EvalReport) -> None:
    """Print the figures of an evaluation, and what is left of it."""
    console.print(_title(report), style="bold", markup=False, soft_wrap=True)
    console.print(f"{report.overall.episodes} of {report.asked} episodes are over", markup=False)
    if report.overall.episodes:
        console.print(_table(report))
    for line in _left(report):
        console.print(line, style="yellow", markup=False, soft_wrap=True)


def _title(report: EvalReport | KeptScores) -> str:
    """Who was judged, and by what."""
    header = report.header
    times = "; times are modelled, not measured" if header.modelled else ""
    judged = f"{header.conditions['device_name']}, {header.conditions['precision']}, {header.conditions['workload']}"
    return f"{header.model} on {judged}{times}"


def _columns(overall: Scores) -> list[str]:
    figures = ["problems", *(f"pass@{k}" for k in overall.pass_at), *(f"fast_{p}" for p in overall.fast)]
    return ["level", *figures, "reward", "hacks", "suspicious", "device limits"]


def _rows(report: EvalReport | KeptScores) -> list[list[str]]:
    overall = report.overall
    levels = [[str(level), *_row(scores, overall)] for level, scores in report.levels.items()]
    return [*levels, ["all", *_row(overall, overall)]]


def _table(report: EvalReport | KeptScores) -> Table:
    table = Table(header_style="dim", box=None, pad_edge=False)
    for name in _columns(report.overall):
        table.add_column(name, justify="left" if name == "level" else "right")
    for row in _rows(report):
        table.add_row(*row)
    return table


def _markdown(kept: KeptScores) -> str:
    columns = _columns(kept.overall)
    lines = [columns, ["---", *["---:"] * (len(columns) - 1)], *_rows(kept)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _row(scores: Scores, overall: Scores) -> list[str]:
    passed = [_figure(scores.pass_at.get(k), scores.pass_at_1_error if k == 1 else None) for k in overall.pass_at]
    return [
        str(scores.problems),
        *passed,
        *(_figure(scores.fast.get(p)) for p in overall.fast),
        _figure(scores.reward, scores.reward_error),
        *(_figure(rate) for rate in (scores.hack_rate, scores.suspicious_rate, scores.device_limit_rate)),
    ]


def _figure(value: float | None, error: float | None = None) -> str:
    """A figure, with its standard error over problems."""
    if value is None:
        return ""
    return f"{value:.3f}" if error is None else f"{value:.3f} ± {error:.3f}"


def _left(report: EvalReport) -> list[str]:
    """What is not in the figures, and what to do about it."""
    lines = [f"not judged: {one}" for one in report.unjudged]
    if report.pending:
        lines.append(f"{report.pending} episodes wait for replies to {', '.join(report.request_files)}")
    if report.stopped is not None:
        lines.append(report.stopped)
    return lines
