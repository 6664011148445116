"""What a kernel does, found in its source, its PTX or its machine code: the facts that a claim about it is held to.

A feature is found by what a program must contain to have it (an instruction, an intrinsic, a class of the toolkit),
never by names that an author chose. Comments do not count. PTX in `asm` statements is part of a source. What is found
was written; whether it was executed, machine code of the kernels that ran and counters say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import lru_cache

from kernelblaster.cuda_source.lexer import blank_comments


class Feature(StrEnum):
    """Something that a kernel does, by the hardware or algorithm that it uses."""

    WGMMA = "wgmma"
    """Warp-group products of Hopper."""
    MMA_SYNC = "mma_sync"
    """Products of one warp: mma.sync or the wmma classes."""
    TMA_LOAD = "tma_load"
    """Copies by tensor map into shared memory."""
    TMA_STORE = "tma_store"
    BULK_COPY = "bulk_copy"
    """Copies of contiguous bytes by the copy unit."""
    MULTICAST = "multicast"
    CLUSTER = "cluster"
    DISTRIBUTED_SHARED = "distributed_shared"
    """Reads or writes shared memory of another block of its cluster."""
    MBARRIER = "mbarrier"
    CP_ASYNC = "cp_async"
    """Copies of 4 to 16 bytes per thread into shared memory without registers (sm_80)."""
    SET_REGISTERS = "set_registers"
    """setmaxnreg: warps of different roles hold different numbers of registers."""
    LDMATRIX = "ldmatrix"
    STMATRIX = "stmatrix"
    VECTOR_ACCESS = "vector_access"
    """Accesses of 16 bytes per thread."""
    CACHE_HINTS = "cache_hints"
    PREFETCH = "prefetch"
    ATOMICS = "atomics"
    """On global memory, or on either where the source does not tell."""
    SHUFFLE = "shuffle"
    GRID_SYNC = "grid_sync"
    """A cooperative launch."""
    GRAPH = "graph"
    PERSISTENT = "persistent"
    """The grid is sized by the number of SMs."""
    FAST_MATH = "fast_math"
    LAUNCH_BOUNDS = "launch_bounds"


# A candidate writes these texts: what may repeat is bounded, so that time grows with the length and not its square.
_SOURCE = {
    Feature.WGMMA: r"\bwgmma\.mma_async",
    Feature.MMA_SYNC: r"\bmma\.sync|\bwmma::mma_sync",
    Feature.TMA_LOAD: r"cp\.async\.bulk\.tensor\.[^;\"]{0,200}shared::\w+\.global"
    r"|cp_async_bulk_tensor_\w{0,60}global_to_shared",
    Feature.TMA_STORE: r"cp\.async\.bulk\.tensor\.[^;\"]{0,200}global\.shared"
    r"|cp_async_bulk_tensor_\w{0,60}shared_to_global",
    Feature.BULK_COPY: r"cp\.async\.bulk\.(?:shared|global)|cp_async_bulk_(?:global|shared)_to",
    Feature.MULTICAST: r"multicast::cluster",
    Feature.CLUSTER: r"__cluster_dims__|ClusterDimension|barrier\.cluster|this_cluster",
    Feature.DISTRIBUTED_SHARED: r"\bmapa\b|map_shared_rank|(?:ld|st|atom|red)\.(?:async\.)?[\w.:]{0,80}shared::cluster",
    Feature.MBARRIER: r"\bmbarrier\.|cuda::barrier|cuda_barrier",
    Feature.CP_ASYNC: r"cp\.async\.c[ag]|__pipeline_memcpy_async",
    Feature.SET_REGISTERS: r"\bsetmaxnreg\.",
    Feature.LDMATRIX: r"\bldmatrix\.",
    Feature.STMATRIX: r"\bstmatrix\.",
    Feature.VECTOR_ACCESS: r"\b(?:u?int4|float4|ulonglong2|longlong2|double2)\b|(?:ld|st)\.[\w.:]{0,80}v4\.[bfu]32",
    Feature.CACHE_HINTS: r"__(?:ld|st)(?:cs|cg|lu|cv|wt|wb)\b|L[12]::(?:evict|no_allocate|cache_hint)|\bcreatepolicy\.",
    Feature.PREFETCH: r"\bprefetchu?\.|bulk\.prefetch|prefetch_tensormap",
    Feature.ATOMICS: r"\batomic(?:Add|Max|Min|CAS|Exch|Inc|Or|And)\w*\s*\("
    r"|\b(?:atom|red)\.[\w.:]{0,80}global|\bfetch_add\b",
    Feature.SHUFFLE: r"__shfl_|__reduce_\w+_sync|\bshfl\.sync|\bredux\.sync",
    Feature.GRID_SYNC: r"cudaLaunchCooperativeKernel|AttributeCooperative|this_grid\s*\(",
    Feature.GRAPH: r"\bcudaGraph|cudaStreamBeginCapture",
    Feature.PERSISTENT: r"MultiProcessorCount|multiProcessorCount|MultiprocessorCount",
    Feature.FAST_MATH: r"\b__(?:exp|log|sin|cos|pow)\d*f\b|__fdividef|\b(?:ex2|lg2|rcp|rsqrt|tanh)\.approx",
    Feature.LAUNCH_BOUNDS: r"__launch_bounds__",
}

_MACHINE = {
    Feature.WGMMA: r"\b[HIQ]GMMA\b",
    Feature.MMA_SYNC: r"\b[HIDQ]MMA\.(?!MMA)",
    Feature.TMA_LOAD: r"\bUTMALDG\b",
    Feature.TMA_STORE: r"\bUTMA(?:STG|REDG)\b",
    Feature.BULK_COPY: r"\bUBLKCP\b",
    Feature.MULTICAST: r"\b(?:UTMALDG|UBLKCP)\S{0,80}MULTICAST",
    Feature.DISTRIBUTED_SHARED: r"\bMAPA\b|\b(?:LD|ST)\.E\S{0,80}\.CTA|\bUCGABAR",
    Feature.MBARRIER: r"\bSYNCS\b",
    Feature.CP_ASYNC: r"\bLDGSTS\b",
    Feature.SET_REGISTERS: r"\bUSETMAXREG\b",
    Feature.LDMATRIX: r"\bLDSM\b",
    Feature.STMATRIX: r"\bSTSM\b",
    Feature.VECTOR_ACCESS: r"\b(?:LDG|STG)\S{0,80}\.128\b",
    Feature.CACHE_HINTS: r"\b(?:LDG|STG)\S{0,80}\.(?:EF|EL|LU|NA)\b",
    Feature.PREFETCH: r"\bCCTL\S{0,80}\.PF|\bUTMAPF\b|\bUBLKPF\b",
    Feature.ATOMICS: r"\b(?:ATOMG?|REDG?)\b",
    Feature.SHUFFLE: r"\bSHFL\b|\bREDUX\b",
    Feature.FAST_MATH: r"\bMUFU\b",
}

INSTRUCTIONS = "instructions"
"""All of a listing, beside those of its features."""
_INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,8}\*/")
"""The address before each one."""
_IN_SOURCE = {feature: re.compile(pattern) for feature, pattern in _SOURCE.items()}
_IN_MACHINE = {feature: re.compile(pattern) for feature, pattern in _MACHINE.items()}
MACHINE_FEATURES = frozenset(_IN_MACHINE)
"""What machine code can confirm or refute; the others lie in host code or attributes."""


@lru_cache(maxsize=64)
def source_features(source: str) -> frozenset[Feature]:
    """Features that a CUDA source, or PTX, contains. A step of the search asks several times for the same kernels."""
    text = blank_comments(source)
    return frozenset(feature for feature, pattern in _IN_SOURCE.items() if pattern.search(text))


def machine_features(listing: str) -> frozenset[Feature]:
    """Features that a listing of machine code (of nvdisasm, or opcodes alone) contains."""
    return frozenset(feature for feature, pattern in _IN_MACHINE.items() if pattern.search(listing))


def machine_counts(listing: str) -> dict[str, int] | None:
    """Instructions of a listing of machine code that show each feature, and of all; what none shows is left out.

    None where it lists no instruction: a tool that fails may have printed headers before.
    """
    instructions = len(_INSTRUCTION.findall(listing))
    if not instructions:
        return None
    found = {str(feature): len(pattern.findall(listing)) for feature, pattern in _IN_MACHINE.items()}
    return {INSTRUCTIONS: instructions, **{feature: count for feature, count in found.items() if count}}


def shown_by(counts: Mapping[str, int] | None) -> frozenset[Feature] | None:
    """Features of stored counts, those of other versions left out; None where there are none.

    Earlier versions stored no counts, rather than None, of a listing without instructions.
    """
    return frozenset(feature for feature in Feature if counts.get(feature)) if counts else None


def confirmed(source: frozenset[Feature], machine: frozenset[Feature] | None) -> frozenset[Feature]:
    """What was written and compiled: machine code, where it is known, has the last word on what it can show."""
    if machine is None:
        return source
    return (source - MACHINE_FEATURES) | machine
