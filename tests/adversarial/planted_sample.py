"""Which planted kernels the tests judge."""

from __future__ import annotations

from datetime import date

from planted import Kind, Planted, load_all

from kernelblaster.devices.facts import DeviceKind

TODAY = date.today().toordinal()
EVERY_ROW, EVERY_HONEST = 10, 24
QUICK = frozenset({"level1/19", "level1/23", "level1/26"})
"""Problems whose honest kernels stand for all: elementwise ones and rows, seconds to emulate where others take many."""


def runnable() -> list[Planted]:
    """Those that can run on the emulated device."""
    return [planted for planted in load_all() if planted.runs_on(DeviceKind.EMULATED)]


def sample() -> list[Planted]:
    """The first exploit of some rows, and a few honest kernels: other ones each day, all of them within a few weeks."""
    exploits = [planted for planted in runnable() if planted.kind is Kind.EXPLOIT and not planted.gaps]
    firsts = {planted.row: planted for planted in reversed(exploits)}
    honest = [planted for planted in runnable() if planted.kind is Kind.HONEST and planted.problem in QUICK]
    return [*list(firsts.values())[TODAY % EVERY_ROW :: EVERY_ROW], *honest[TODAY % EVERY_HONEST :: EVERY_HONEST]]
