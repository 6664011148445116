"""A candidate's working files: links to its inputs, a file for each output, and the job that names them.

Inputs are links, so that the values behind a running process can be exchanged before it is told to reload; hard ones,
so that a process which sees nothing but their directory can follow them. What it writes lies in another directory, and
outputs that were set aside in a third, out of its sight.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import Job, JobTensor, PerturbationKind
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.inputs.drawn import DrawnInputs
from kernelblaster.evaluation.inputs.perturbations import mirror_of
from kernelblaster.problems.problem import TensorRole


class Workspace:
    """Files of one process of one candidate. A context manager: they are removed on exit.

    Args:
        parent: where its directory is made.
        drawn: the input set it starts with; any later one has the same shapes.
        instruction_budget: warp instructions of a launch that are enough, see `Job`.
    """

    def __init__(self, parent: Path, drawn: DrawnInputs, instruction_budget: int = 0) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
        for name in ("in", "out", "kept"):
            (self._directory / name).mkdir()
        self._paths = {
            spec.name: self._directory / ("out" if spec.role is TensorRole.OUTPUT else "in") / f"{i}.bin"
            for i, spec in enumerate(drawn.specs)
        }
        self.outputs = {spec.name: self._paths[spec.name] for spec in drawn.outputs}
        self._kept = 0
        self._spare: dict[str, list[Path]] = {name: [] for name in self.outputs}
        self.job = Job(
            tensors=tuple(
                JobTensor(
                    spec,
                    self._paths[spec.name],
                    drawn.perturbation_kinds.get(spec.name, PerturbationKind.FIXED),
                    mirror_of(drawn.key.problem, spec.name),
                )
                for spec in drawn.specs
            ),
            sizes=dict(drawn.key.problem.workloads[drawn.key.workload]),
            scalars=dict(drawn.key.problem.scalars),
            instruction_budget=instruction_budget,
        )
        self.point_to(drawn)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the files."""
        shutil.rmtree(self._directory, ignore_errors=True)

    def point_to(self, drawn: DrawnInputs) -> None:
        """Put other values behind the inputs; a running session sees them after `reload`."""
        for spec in drawn.specs:
            if spec.role is TensorRole.OUTPUT:
                continue
            link = self._paths[spec.name]
            fresh = link.with_suffix(".new")
            try:
                fresh.hardlink_to(drawn.files[spec.name])
            except OSError as error:
                raise DeviceError(
                    f"cannot link inputs in {self._directory}: {error.strerror}",
                    hint="set TMPDIR to a file system with hard links",
                ) from error
            os.replace(fresh, link)
            # Two links to one file: then replacing does nothing, and leaves the fresh one.
            fresh.unlink(missing_ok=True)

    def keep_outputs(self) -> dict[str, Path]:
        """Set the outputs that are there aside, so that the next call writes other files. Returns where they lie."""
        self._kept += 1
        aside = {}
        for place, (name, path) in enumerate(self.outputs.items()):
            aside[name] = self._directory / "kept" / f"{self._kept}-{place}.bin"
            if path.exists():
                os.replace(path, aside[name])
            if self._spare[name]:
                os.replace(self._spare[name].pop(), path)
        return aside

    def reuse(self, aside: Mapping[str, Path]) -> None:
        """Let files that were set aside be written again: memory that a file has is filled several times faster."""
        for name, path in aside.items():
            if path.exists():
                self._spare[name].append(path)
