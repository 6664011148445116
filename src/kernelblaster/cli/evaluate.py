"""`kernelblaster evaluate`: build, verify, time and profile one kernel, without any model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernelblaster.cli.options import (
    DatasetOption,
    DeviceOption,
    GpuTypeOption,
    JsonOption,
    LibrariesOption,
    PrecisionOption,
    SampleOption,
    SizeOption,
    positive,
)
from kernelblaster.cli.settings import ConfigOption, SetOption, configured, setting
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode

if TYPE_CHECKING:
    from kernelblaster import Diagnosis, Problem


def evaluate(
    problem: Annotated[str, typer.Argument(help="level1/23, 23 (level 1), 023_Softmax, or a problem directory.")],
    file: Annotated[Path, typer.Argument(help="The kernel to evaluate; `init` names the problem's own start.")],
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="Compare against this kernel, in turns; `init` for the start."),
    ] = None,
    precision: PrecisionOption = None,
    device: DeviceOption = None,
    gpu_type: GpuTypeOption = None,
    size: SizeOption = None,
    libraries: LibrariesOption = None,
    profile: Annotated[bool, typer.Option("--profile/--no-profile", help="Collect hardware counters.")] = True,
    process_pairs: Annotated[
        int,
        typer.Option(
            "--process-pairs",
            min=1,
            max=1000,
            help="Pairs of fresh processes to compare with the baseline, where it seems faster.",
        ),
    ] = 1,
    input_sets: Annotated[int | None, setting("input_sets", min=1, max=1000)] = None,
    call_timeout: Annotated[float | None, setting("call_timeout", callback=positive)] = None,
    sample: SampleOption = None,
    config: ConfigOption = None,
    assignments: SetOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
    rival: Annotated[Path | None, typer.Option("--rival", hidden=True)] = None,
    sessions: Annotated[int | None, typer.Option("--sessions", min=1, max=1000, hidden=True)] = None,
) -> int:
    """Judge one kernel. Exit code 0 only for the verdict `correct`."""
    given = dict(locals())
    import kernelblaster as library
    from kernelblaster.cli.progress import Progress

    # Names that these options had in earlier versions.
    baseline, process_pairs = baseline or rival, sessions or process_pairs
    effective = configured(given, file=config, assignments=assignments).config
    found = library.load_problem(problem, dataset=dataset_dir or effective.dataset)
    with Progress() as progress:
        diagnosis = library.diagnose(
            found,
            _kernel(file, found),
            baseline=None if baseline is None else _kernel(baseline, found),
            config=effective,
            profile=profile,
            process_pairs=process_pairs,
            on_stage=progress.tell,
        )
    if json_output:
        print_json(diagnosis.evaluation)
    else:
        _print(diagnosis, found, file)
    return int(ExitCode.OK if diagnosis.evaluation.correct else ExitCode.FAILED)


def _print(diagnosis: Diagnosis, problem: Problem, file: Path) -> None:
    from kernelblaster.cli.advice import print_advice
    from kernelblaster.cli.evaluation_report import print_evaluation

    name = problem.init_path.name if str(file) == "init" else file.name
    print_evaluation(diagnosis.evaluation, title=f"{problem.title}: {file}", file=name)
    if diagnosis.advice is not None:
        print_advice(diagnosis.evaluation, diagnosis.advice, diagnosis.source, name)


def _kernel(file: Path, problem: Problem) -> str | Path:
    """`init` stands for the start of a problem."""
    from kernelblaster import read_start

    return read_start(problem) if str(file) == "init" else file
