"""A candidate's working files: links to its inputs, a file for its output, and the job that names them.

Inputs are symbolic links, so that the values behind a running process can be exchanged before it is told to reload;
the candidate's process never learns where an input set lies before it is given it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from kernelblaster.devices.base import Change, Job, JobTensor
from kernelblaster.evaluation.inputs import InputSet
from kernelblaster.problems.problem import TensorRole


class Bench:
    """Files of one process of one candidate. A context manager: they are removed on exit.

    Args:
        parent: where its directory is made.
        drawn: the input set it starts with; any later one has the same shapes.
    """

    def __init__(self, parent: Path, drawn: InputSet) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
        self._paths = {spec.name: self._directory / f"{i}.bin" for i, spec in enumerate(drawn.specs)}
        self.output = self._paths[drawn.output.name]
        self._kept = 0
        self.job = Job(
            tensors=tuple(
                JobTensor(spec, self._paths[spec.name], drawn.changes.get(spec.name, Change.FIXED))
                for spec in drawn.specs
            ),
            sizes=dict(drawn.key.problem.sizes[drawn.key.size]),
            scalars=dict(drawn.key.problem.scalars),
        )
        self.point_to(drawn)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._directory, ignore_errors=True)

    def point_to(self, drawn: InputSet) -> None:
        """Put other values behind the inputs; a running session sees them after `reload`."""
        for spec in drawn.specs:
            if spec.role is TensorRole.OUTPUT:
                continue
            link = self._paths[spec.name]
            fresh = link.with_suffix(".new")
            fresh.symlink_to(drawn.files[spec.name])
            os.replace(fresh, link)

    def keep_output(self) -> Path:
        """Set the output, if there is one, aside, so that the next call writes a new file. Returns where it lies."""
        self._kept += 1
        kept = self.output.with_suffix(f".kept{self._kept}")
        if self.output.exists():
            os.replace(self.output, kept)
        return kept
