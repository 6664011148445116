"""`kernelblaster reprofile`: measure and profile the finished kernels of a run again."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernelblaster.cli.options import DatasetOption, DeviceOption, JsonOption, SizeOption
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode, UsageError


def reprofile(
    run_dir: Annotated[Path, typer.Argument(help="Directory of a run: the one that holds run.json.")],
    device: DeviceOption = "auto",
    size: SizeOption = None,
    dataset_dir: DatasetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Evaluate every final kernel of a run against its start once more, with counters."""
    from kernelblaster.cli.evaluation_report import print_evaluation
    from kernelblaster.cli.progress import Progress
    from kernelblaster.records.layout import ASIDE, FINAL_KERNEL
    from kernelblaster.records.run_record import read_record
    from kernelblaster.runs.evaluations import find_searched, open_evaluator

    record = read_record(run_dir / "run.json")
    config = record.config.model_copy(update={"device": device, "size": size or record.size})
    finals = [path for path in sorted(run_dir.glob(f"level*/*/{FINAL_KERNEL}")) if ASIDE not in path.parent.name]
    if not finals:
        raise UsageError(f"{run_dir} holds no {FINAL_KERNEL}", hint="nothing beat the start there; search again")
    evaluations = {}
    with Progress() as progress, open_evaluator(config, progress.tell) as evaluator:
        for path in finals:
            problem = find_searched(path.parent, config, dataset_dir)
            start = problem.init_path.read_text(encoding="utf-8")
            evaluations[path] = evaluator.evaluate(problem, path.read_text(encoding="utf-8"), baseline=start)
    if json_output:
        print_json(list(evaluations.values()))
    else:
        for path, evaluation in evaluations.items():
            print_evaluation(evaluation, title=str(path))
    return int(ExitCode.OK if all(e.correct for e in evaluations.values()) else ExitCode.FAILED)
