"""The report of a candidate's process is the emulator's own word: who meddles with it is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from emulated_bench import TIMEOUT_S, Bench, needs_tools

from kernelblaster.devices.emulated.own_report import MOST_REPORT_BYTES, OwnReport
from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.errors import DeviceError
from ptxemu.counters.report import NotSampled

COPY = '{"transfer": "device_to_device", "bytes": 4}\n'
START, STOP = '{"mark": "start"}\n', '{"mark": "stop"}\n'
UNSAMPLED = '{"unsampled": "a loop"}\n'
STOPS = """
#include <dlfcn.h>
__global__ void square(const float* x, float* y, int n) { for (int i = 0; i < n * n; ++i) y[i] = x[i] * x[i]; }
static void profile(const char* name) { reinterpret_cast<cudaError_t (*)()>(dlsym(RTLD_DEFAULT, name))(); }
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    profile("cudaProfilerStop");
    square<<<1, 1>>>((const float*)x, (float*)output, n);
    profile("cudaProfilerStart");
}
"""
HOST_FUNCTION = """
static void nothing(void*) {}
__global__ void square(const float* x, float* y, int n) { for (int i = 0; i < n * n; ++i) y[i] = x[i] * x[i]; }
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    cudaGraphNode_t node;
    cudaGraphNodeParams call{};
    call.type = cudaGraphNodeTypeHost;
    call.host.fn = nothing;
    cudaGraphCreate(&graph, 0);
    cudaGraphAddNode(&node, graph, nullptr, nullptr, 0, &call);
    cudaGraphInstantiate(&ready, graph, 0);
    cudaGraphLaunch(ready, 0);
    square<<<1, 1>>>((const float*)x, (float*)output, n);
}
"""


@pytest.fixture
def report(tmp_path: Path) -> OwnReport:
    return OwnReport(tmp_path / "report.jsonl", "PTXEMU_REPORT")


def write(report: OwnReport, text: str) -> OwnReport:
    report.path.write_text(text, encoding="utf-8")
    return report


def test_a_report_is_as_long_as_the_emulator_says(report: OwnReport) -> None:
    text = START + COPY + STOP
    write(report, text).check(len(text))
    for told in (len(text) - 1, len(text) + 1):
        with pytest.raises(RunFailure) as failure:
            report.check(told)
        assert failure.value.kind is RunFailureKind.POLICY


def test_a_call_that_does_too_much_is_no_forgery(report: OwnReport) -> None:
    with pytest.raises(RunFailure) as failure:
        write(report, COPY).check(MOST_REPORT_BYTES + 1)
    assert failure.value.kind is RunFailureKind.RUNTIME


def test_what_is_added_behind_the_call_does_not_count(report: OwnReport) -> None:
    text = START + COPY + STOP
    write(report, text + COPY).cut(len(text))
    assert len(report.records()) == 1


@pytest.mark.parametrize("marks", [(), (START,), (START, STOP, START, STOP), (STOP, START)])
def test_the_harness_alone_begins_and_ends_the_profile(report: OwnReport, marks: tuple[str, ...]) -> None:
    with pytest.raises(RunFailure) as failure:
        write(report, COPY + "".join(marks)).records()
    assert failure.value.kind is RunFailureKind.POLICY


@pytest.mark.parametrize(
    "line", ['{"transfer": "fill", "bytes": -1}\n', '{"host_ns": -900}\n', "7\n", "[" * 9999 + "\n"]
)
def test_counts_below_zero_are_none(report: OwnReport, line: str) -> None:
    with pytest.raises(DeviceError):
        write(report, START + line + STOP).records()


def test_a_failed_call_is_the_candidates_whatever_it_wrote(report: OwnReport) -> None:
    report.look_for_a_reason()
    report.path.write_bytes(b"\xff\xfe not a record\n")
    report.look_for_a_reason()
    assert report.findings_of_a_failure() == []
    with pytest.raises(NotSampled):
        write(report, UNSAMPLED).look_for_a_reason()


@pytest.mark.nvcc
@needs_tools
@pytest.mark.parametrize(("source", "kind"), [(STOPS, RunFailureKind.POLICY), (HOST_FUNCTION, RunFailureKind.RUNTIME)])
def test_calls_that_stop_counting_or_need_a_thread_fail(bench: Bench, source: str, kind: RunFailureKind) -> None:
    job = bench.job(np.ones((8, 8), np.float32))
    with pytest.raises(RunFailure) as failure:
        bench.device.counted(bench.build(source), job, timeout_s=TIMEOUT_S)
    assert failure.value.kind is kind
