"""The driver's carve-out of shared memory, of all launches that were captured on an H200."""

from __future__ import annotations

from conformance_suite import read_capture

from ptxemu.metrics.names import NsightMetric
from ptxemu.model.occupancy import blocks_by_carve_out, occupancy, sm_limits


def test_carve_outs_are_those_of_every_captured_launch() -> None:
    limits, wrong, launches = sm_limits("sm_90"), [], 0
    for case in read_capture().cases:
        for kernel in case.kernels:
            shared = int(kernel.metrics[NsightMetric.SHARED_PER_BLOCK]) - limits.shared_reserved
            fit = occupancy(
                limits,
                threads=int(kernel.metrics[NsightMetric.BLOCK_SIZE]),
                registers=int(kernel.metrics[NsightMetric.REGISTERS_PER_THREAD]),
                shared_bytes=shared,
            )
            found = blocks_by_carve_out(limits, fit, shared)
            launches += 1
            if found != kernel.metrics[NsightMetric.LIMIT_SHARED]:
                wrong.append((case.run.case, found, kernel.metrics[NsightMetric.LIMIT_SHARED]))
    assert launches > 400
    assert wrong == []
