"""`kernelblaster reprofile`: measure and profile the finished kernels of a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli.options import DatasetOption, DeviceOption, JsonOption, SizeOption
from kernelblaster.cli.terminal import print_json
from kernelblaster.config import AUTOMATIC
from kernelblaster.errors import ExitCode


def reprofile(
    run_dir: Annotated[Path, typer.Argument(help="Directory of a run: the one that holds run.json.")],
    device: DeviceOption = None,
    size: SizeOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Evaluate every final kernel of a run against its start once more, with counters."""
    from kernelblaster import reprofile as measure_again
    from kernelblaster.cli.evaluation_report import print_evaluation
    from kernelblaster.cli.progress import Progress

    with Progress() as progress:
        evaluations = measure_again(
            run_dir, device=device or AUTOMATIC, size=size, dataset_dir=dataset_dir, on_stage=progress.tell
        )
    if json_output:
        print_json(list(evaluations.values()))
    else:
        for path, evaluation in evaluations.items():
            print_evaluation(evaluation, title=str(path))
    return int(ExitCode.OK if all(e.correct for e in evaluations.values()) else ExitCode.FAILED)
