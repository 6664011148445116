"""What all functions of a module share: the parsed program, where symbols are, and the table of source positions."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ptxemu.ptx import module as out
from ptxemu.ptx.calls import CallGraph
from ptxemu.ptx.tree import Program, SourceChain

SPECIALS = frozenset(
    [f"{name}.{axis}" for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "xyz"]
    + ["envreg1", "envreg2"]  # the workspace of cooperative groups
    + ["laneid", "warpid", "nwarpid", "smid", "nsmid", "gridid", "dynamic_smem_size", "total_smem_size"]
    + [f"{name}.{axis}" for name in ("clusterid", "nclusterid", "cluster_ctaid", "cluster_nctaid") for axis in "xyz"]
    + ["cluster_ctarank", "cluster_nctarank", "is_explicit_cluster"]
    + [f"lanemask_{kind}" for kind in ("eq", "lt", "le", "gt", "ge")]
)
"""Registers that hold a property of the thread or the launch."""


class ModuleContext:
    """What all functions of a module share."""

    def __init__(self, program: Program, system_dirs: Sequence[Path] = ()) -> None:
        self.program = program
        self._system_dirs = tuple(system_dirs)
        self.module = out.Module()
        self.calls = CallGraph(program)
        self.globals: dict[str, int] = {}
        self.shared = {one.name: one for one in program.variables if one.space == ".shared"}
        self._sources: dict[SourceChain, int] = {}
        self._places: dict[tuple[str, int], int] = {}
        self._system_files: dict[str, bool] = {}

    def source(self, chain: SourceChain) -> int:
        """Index of a source position in the module's table: the innermost that is not in a system header."""
        if chain not in self._sources:
            own = (place for place in chain if not self._is_system(self.program.files.get(place[0], "")))
            self._sources[chain] = self._place(next(own, chain[0])) if chain else 0
        return self._sources[chain]

    def _place(self, place: tuple[str, int]) -> int:
        if place not in self._places:
            self._places[place] = len(self.module.sources)
            self.module.sources.append((self.program.files.get(place[0], ""), place[1]))
        return self._places[place]

    def _is_system(self, file: str) -> bool:
        if file not in self._system_files:
            path = Path(file).resolve()
            self._system_files[file] = any(path.is_relative_to(directory) for directory in self._system_dirs)
        return self._system_files[file]
