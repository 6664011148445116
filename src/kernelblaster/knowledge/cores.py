"""Code memory: verified kernels of other problems, of which a prompt may show one.

What was seen to carry over from problem to problem is code. A core is kept by problem, operator family, architecture,
kind of device, precision, shape regime and libraries; of several of one place the fastest stays, whoever merges in what
order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelblaster.cuda_source.excerpts import kernel_excerpt
from kernelblaster.devices.facts import DeviceKind, Library
from kernelblaster.knowledge.schema import Core, ShapeRegime
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

MOST_CHARACTERS = 6000
"""Of a core: some 1,500 tokens."""
MOST_CORES = 400
"""In one document; those that are farthest from their attainable time go first."""
_UNKNOWN_SHARE = 0.5
_KIN = (
    {OpFamily.MATMUL, OpFamily.FUSED_MATMUL, OpFamily.MLP, OpFamily.ATTENTION, OpFamily.CONVOLUTION},
    {OpFamily.SOFTMAX, OpFamily.NORMALIZATION, OpFamily.REDUCTION, OpFamily.LOSS, OpFamily.SCAN, OpFamily.MATVEC},
    {OpFamily.ELEMENTWISE, OpFamily.POOLING, OpFamily.STENCIL, OpFamily.GATHER},
)
"""Families whose kernels are built alike."""


@dataclass(frozen=True)
class Wanted:
    """For whom a core is looked for. `share` is the attainable time over that of the kernel to be improved."""

    problem: str
    op_family: OpFamily
    arch: str
    device_kind: DeviceKind
    precision: Precision
    regime: ShapeRegime
    share: float | None
    libraries: tuple[Library, ...] = ()


@dataclass(frozen=True)
class ShownCode:
    """As `Core.source` and `Core.excerpt`."""

    source: str
    excerpt: bool


def shown_code(code: str, hottest: str) -> ShownCode | None:
    """What of a verified source without comments is remembered: all of it, or an excerpt of `MOST_CHARACTERS`.

    `hottest` is the kernel that a profile says takes longest. None where a long source holds no kernel.
    """
    if len(code) <= MOST_CHARACTERS:
        return ShownCode(code, excerpt=False)
    excerpt = kernel_excerpt(code, hottest, MOST_CHARACTERS)
    return None if excerpt is None else ShownCode(excerpt, excerpt=True)


def merge_cores(left: Iterable[Core], right: Iterable[Core]) -> tuple[Core, ...]:
    """The fastest core of each place; commutative, associative and idempotent."""
    best: dict[tuple[object, ...], Core] = {}
    for core in (*left, *right):
        place = (core.problem, core.op_family, core.arch, core.device_kind, core.precision, core.regime, core.libraries)
        known = best.get(place)
        if known is None or _by_time(core) < _by_time(known):
            best[place] = core
    kept = sorted(best.values(), key=lambda core: (-_share(core), _content(core)))[:MOST_CORES]
    return tuple(sorted(kept, key=lambda core: (core.problem, _content(core))))


def donor_for(wanted: Wanted, cores: Sequence[Core]) -> Core | None:
    """The core to show: of another problem of the same or a kindred family, closer to its attainable time; or None.

    The same family comes first, then the same precision, then the same regime, then the larger share.
    """
    fitting = [core for core in cores if _fits(wanted, core)]
    return max(fitting, key=lambda core: _nearness(wanted, core), default=None)


def _fits(wanted: Wanted, core: Core) -> bool:
    related = core.op_family is wanted.op_family or any({core.op_family, wanted.op_family} <= kin for kin in _KIN)
    here = core.arch == wanted.arch and core.device_kind is wanted.device_kind
    allowed = set(core.libraries) <= set(wanted.libraries)
    teaches = wanted.share is None or _share(core) > wanted.share
    return core.problem != wanted.problem and related and here and allowed and teaches


def _nearness(wanted: Wanted, core: Core) -> tuple[bool, bool, bool, float, str]:
    return (
        core.op_family is wanted.op_family,
        core.precision is wanted.precision,
        core.regime is wanted.regime,
        _share(core),
        core.id,
    )


def _share(core: Core) -> float:
    return _UNKNOWN_SHARE if core.share is None else core.share


def _by_time(core: Core) -> tuple[float, str]:
    return core.median_us, _content(core)


def _content(core: Core) -> str:
    return core.model_dump_json()
