"""Code memory: verified kernels. A search begins with the one of its own problem; a prompt may show one of another.

What was seen to carry over from problem to problem is code. A core is kept by problem (its id, and what it computes,
for other data sets have that id, too), operator family, architecture, kind of device, precision, shape regime and
libraries; of several of one place the fastest stays, whoever merges in what order, and beside it the fastest that was
kept as a whole, where the fastest was not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kernelblaster.cuda_source.excerpts import kernel_excerpt
from kernelblaster.devices.facts import DeviceFacts, DeviceKind, Library
from kernelblaster.knowledge.schema import MOST_WHOLE, Core, ShapeRegime
from kernelblaster.problems.families import OpFamily, family_of
from kernelblaster.problems.problem import Precision, Problem

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
    definition: str | None = None


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


def whole_code(source: str) -> str | None:
    """A verified source as it is kept whole; None where it is too long."""
    return source if len(source.encode()) <= MOST_WHOLE else None


def merge_cores(left: Iterable[Core], right: Iterable[Core]) -> tuple[Core, ...]:
    """The fastest core of each place, and the fastest whole one; commutative, associative and idempotent.

    Both are minima of one order in which, of equally fast ones, a whole one comes first: mostly they are the same core.
    """
    best: dict[tuple[object, ...], Core] = {}
    for core in (*left, *right):
        place = (
            *(core.problem, core.definition, core.op_family, core.arch, core.device_kind, core.precision),
            *(core.regime, core.libraries),
        )
        for rank in (place, *([(*place, "whole")] if core.whole is not None else [])):
            known = best.get(rank)
            if known is None or _by_time(core) < _by_time(known):
                best[rank] = core
    distinct = {_content(core): core for core in best.values()}
    kept = sorted(distinct.values(), key=lambda core: (-_share(core), _content(core)))[:MOST_CORES]
    return tuple(sorted(kept, key=lambda core: (core.problem, _content(core))))


def own_kernel(wanted: Wanted, cores: Iterable[Core]) -> Core | None:
    """The whole kernel of the very problem: of the same regime where there is one, then the fastest; or None."""
    own = [core for core in cores if _is_of(wanted, core) and core.precision is wanted.precision]
    whole = [core for core in own if core.whole is not None and _runs_here(wanted, core)]
    return min(whole, key=lambda core: (core.regime is not wanted.regime, _by_time(core)), default=None)


def known_kernel(
    problem: Problem,
    cores: Sequence[Core],
    facts: DeviceFacts,
    precision: Precision,
    libraries: tuple[Library, ...],
    attainable_us: float,
) -> str | None:
    """The source of the fastest whole kernel of a problem that can run on a device; None where there is none.

    On an emulated device one that was verified on a GPU of its architecture will do, where none was on such a device.
    """
    for kind in dict.fromkeys((facts.kind, DeviceKind.CUDA)):
        wanted = Wanted(
            problem=str(problem.id),
            op_family=family_of(problem.reference_path),
            arch=facts.arch,
            device_kind=kind,
            precision=precision,
            regime=ShapeRegime.of(attainable_us),
            share=None,
            libraries=libraries,
            definition=problem.definition_digest,
        )
        core = own_kernel(wanted, cores)
        if core is not None:
            return core.whole
    return None


def donor_for(wanted: Wanted, cores: Sequence[Core]) -> Core | None:
    """The core to show: of another problem of the same or a kindred family, closer to its attainable time; or None.

    The same family comes first, then the same precision, then the same regime, then the larger share.
    """
    fitting = [core for core in cores if _fits(wanted, core)]
    return max(fitting, key=lambda core: _nearness(wanted, core), default=None)


def _fits(wanted: Wanted, core: Core) -> bool:
    related = core.op_family is wanted.op_family or any({core.op_family, wanted.op_family} <= kin for kin in _KIN)
    teaches = wanted.share is None or _share(core) > wanted.share
    return not _is_of(wanted, core) and related and _runs_here(wanted, core) and teaches


def _is_of(wanted: Wanted, core: Core) -> bool:
    """Whether a core is of the very problem, as far as is known."""
    both = wanted.definition is not None and core.definition is not None
    return core.problem == wanted.problem and (not both or core.definition == wanted.definition)


def _runs_here(wanted: Wanted, core: Core) -> bool:
    here = core.arch == wanted.arch and core.device_kind is wanted.device_kind
    return here and set(core.libraries) <= set(wanted.libraries)


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


def _by_time(core: Core) -> tuple[float, bool, str]:
    return core.median_us, core.whole is None, _content(core)


def _content(core: Core) -> str:
    return core.model_dump_json()
