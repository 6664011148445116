"""Recorders that wait: what they record is what others record, each serves one candidate, and none is left."""

from __future__ import annotations

import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import python_sources as sources
from recorder_support import request_for

from kernelblaster.devices.failures import BuildFailure
from kernelblaster.problems.problem import Precision
from kernelblaster.python_candidates.recording import has_triton, record
from kernelblaster.python_candidates.warm_recorders import WarmRecorders

pytestmark = pytest.mark.skipif(not has_triton(), reason="needs Triton")


def _children() -> set[int]:
    return set(map(int, Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()))


def test_a_recorder_that_waited_records_the_same_and_serves_nobody_else() -> None:
    request, before = request_for(Precision.FP16), _children()
    marks = sources.HEAD + "import builtins\nassert not hasattr(builtins, 'seen')\nbuiltins.seen = True\n"
    second = marks + sources.HONEST.removeprefix(sources.HEAD)
    with WarmRecorders(spare=1) as recorders:
        first = recorders.record(sources.HONEST, request)
        (waiting,) = _children() - before
        again, cold = recorders.record(sources.HONEST, request), record(sources.HONEST, request)
        assert again.plans == first.plans == cold.plans
        assert waiting not in _children()
        with pytest.raises(BuildFailure):
            recorders.record("raise ValueError\n", request)
        assert recorders.record(second, request).plans == first.plans
        assert recorders.record(second, request).plans == first.plans
    assert _children() == before


def test_a_recorder_that_died_while_it_waited_is_replaced_and_threads_share() -> None:
    request, before = request_for(Precision.FP16), _children()
    with WarmRecorders(spare=2) as recorders, ThreadPoolExecutor(3) as threads:
        expected = recorders.record(sources.HONEST, request)
        for process in _children() - before:
            os.kill(process, signal.SIGKILL)
        time.sleep(0.5)
        found = threads.map(lambda _: recorders.record(sources.HONEST, request), range(3))
        assert [one.plans for one in found] == [expected.plans] * 3
    assert _children() == before
