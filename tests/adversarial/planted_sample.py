"""Which planted kernels the tests judge."""

from __future__ import annotations

from planted import Kind, Planted, load_all

from kernelblaster.devices.facts import DeviceKind

EVERY_ROW, EVERY_HONEST = 6, 15
QUICK = frozenset({"level1/19", "level1/23", "level1/26"})
"""Problems whose honest kernels stand for all: elementwise ones and rows, seconds to emulate where others take many."""


def runnable() -> list[Planted]:
    """Those that can run on the emulated device."""
    return [planted for planted in load_all() if planted.runs_on(DeviceKind.EMULATED)]


def sample() -> list[Planted]:
    """The first exploit of every sixth row, and a few honest kernels."""
    exploits = [planted for planted in runnable() if planted.kind is Kind.EXPLOIT and not planted.gaps]
    firsts = {planted.row: planted for planted in reversed(exploits)}
    honest = [planted for planted in runnable() if planted.kind is Kind.HONEST and planted.problem in QUICK]
    return [*list(firsts.values())[::EVERY_ROW], *honest[::EVERY_HONEST]]
