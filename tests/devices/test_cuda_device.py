"""CudaDevice where there is no GPU: stand-ins for ncu, compute-sanitizer and the driver's facts, real processes."""

from __future__ import annotations

import dataclasses
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelblaster.devices.base import Build, Job, profile_once
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.cuda import device as module
from kernelblaster.devices.cuda.ncu import NO_KERNEL
from kernelblaster.devices.cuda.probe import GpuInfo
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.failures import RunFailure
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import ProfileSource, SanitizerFinding
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.sandbox.limits import Limits
from kernelblaster.sandbox.process import strongest

GPU = GpuInfo("NVIDIA H200", "sm_90", "GPU-1", 150 << 30, "580.1", "13.0")
FACTS = DeviceFacts(
    kind=DeviceKind.CUDA,
    name="NVIDIA H200",
    arch="sm_90",
    compile_arch="sm_90a",
    sm_count=132,
    clock_mhz=1980,
    memory_bytes=150 << 30,
    l2_bytes=1 << 20,
    shared_per_block=232448,
    shared_per_sm=233472,
    registers_per_sm=65536,
    max_warps_per_sm=64,
    peak_bandwidth=4.3e12,
    peak_flops={"fp32": 6.7e13},
    peak_source="test",
    uuid="GPU-1",
)
CAPTURED = Path(__file__).parents[1] / "fixtures"
MakeJob = Callable[..., Job]
needs_isolation = pytest.mark.skipif(
    not strongest().level.isolates, reason=f"no isolation here: {strongest().missing()}"
)

# Finds the values of --log-file and --export, runs the program behind the options, reports; {pages} prints a page.
STAND_IN = """#!/bin/sh
asked="$*"
case "$1" in --import) {pages}; exit 0;; esac
while [ $# -gt 0 ]; do
  case "$1" in
    --log-file) log="$2"; shift 2;;
    --export) export_to="$2"; shift 2;;
    /*) break;;
    *) shift;;
  esac
done
"$@"
code=$?
{report}
exit $code
"""


def tool(path: Path, report: str, capture: str | None = None, pages: str = ":") -> Path:
    """A stand-in whose `report` is shell; `$capture` is a captured file, laid beside it, where isolation shows it."""
    if capture is not None:
        beside = path.with_name("capture")
        beside.write_bytes((CAPTURED / capture).read_bytes())
        report = f'capture="{beside}"; {report}'
    path.write_text(STAND_IN.replace("{report}", report).replace("{pages}", pages))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.fixture
def make_device(
    monkeypatch: pytest.MonkeyPatch, toolchain: Toolchain, tmp_path: Path
) -> Callable[..., module.CudaDevice]:
    def make(**changes: object) -> module.CudaDevice:
        tools = dataclasses.replace(toolchain, **changes)
        monkeypatch.setattr(module, "detect_gpu", lambda: GPU)
        monkeypatch.setattr(module, "device_facts", lambda _: FACTS)
        monkeypatch.setattr(module.Toolchain, "find", classmethod(lambda _: tools))
        return module.CudaDevice(CandidateRules(), cache=tmp_path, limits=Limits(isolation=strongest().level))

    return make


def test_no_gpu_is_said_with_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "detect_gpu", lambda: None)
    with pytest.raises(DeviceError) as error:
        module.CudaDevice(CandidateRules())
    assert "--device emulated" in error.value.hint


def test_an_nvcc_newer_than_the_driver_is_refused(make_device: Callable[..., module.CudaDevice]) -> None:
    with pytest.raises(DeviceError, match="newer driver"):
        make_device(version=(14, 0, 1))


def test_counters_become_a_profile(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    ncu = tool(tmp_path / "ncu", 'cat "$capture" > "$log"', "ncu/h200_probe.csv")
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=20)
    assert profile.source is ProfileSource.NCU
    assert len(profile.kernels) == 5
    assert profile.totals[Metric.DURATION] == 2260640


def test_rules_and_lines_of_a_report_join_the_profile(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    beside = tmp_path / "pages"
    beside.mkdir()
    for name in ("details", "source"):
        text = (CAPTURED / "ncu" / f"h200_{name}.csv").read_text().replace("/build/probe.cu", "/build/candidate.cu")
        (beside / name).write_text(text)
    ncu = tool(
        tmp_path / "ncu", 'cat "$capture" > "$log"; : > "$export_to"', "ncu/h200_probe.csv",
        pages=f'cat "{beside}/$5" > "$(echo "$asked" | sed "s/.*--log-file //")"',
    )  # fmt: skip
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=20)
    _, strided, transpose, *_ = profile.kernels
    assert "UncoalescedGlobalAccess" in {one.rule for one in strided.rules}
    assert [(line.line, line.reason) for line in transpose.lines] == [(6, "queue to shared memory")]


def test_metrics_come_from_the_report_where_ncu_prints_nothing_beside_it(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    ncu = tool(
        tmp_path / "ncu", 'echo "==PROF== Connected" > "$log"; cat "$capture" > "$export_to"', "ncu/h200_probe.csv",
        pages='[ "$5" = raw ] && cat "$2" > "$(echo "$asked" | sed "s/.*--log-file //")"',
    )  # fmt: skip
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=20)
    assert profile.totals[Metric.DURATION] == 2260640


def test_of_a_call_of_many_launches_the_first_are_counted_and_all_are_timed(
    make_device: Callable[..., module.CudaDevice],
    tmp_path: Path,
    host_build: Build,
    make_job: MakeJob,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stand-in gives five launches, three of them where it is asked for so many."""
    monkeypatch.setattr("kernelblaster.devices.cuda.profiler.MOST_LAUNCHES", 3)
    monkeypatch.setattr("kernelblaster.devices.cuda.profiler.LONG_S", 0.0)
    whole, part = 'cat "$capture"', 'sed "/softmax_row/d; /matmul_naive/d" "$capture"'
    report = f'case "$asked" in *--launch-count*) {part} > "$log";; *) {whole} > "$log";; esac'
    ncu = tool(tmp_path / "ncu", report, "ncu/h200_probe.csv")
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=20)
    assert len(profile.kernels) == 5
    assert profile.totals[Metric.DURATION] == 2260640
    full, timed = profile.kernels[:3], profile.kernels[3:]
    assert all(Metric.SHARED_LOAD_CONFLICTS in kernel.metrics for kernel in full)
    assert all(Metric.SHARED_LOAD_CONFLICTS not in kernel.metrics for kernel in timed)
    assert profile.warnings


def test_a_call_that_takes_too_long_under_ncu_is_timed_by_events(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    ncu = tool(tmp_path / "ncu", 'echo "==PROF== Connected" > "$log"')
    ncu.write_text(ncu.read_text().replace('"$@"\n', 'echo "==PROF== Connected" > "$log"; sleep 20\n'))
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=2)
    assert profile.source is ProfileSource.EVENTS
    assert profile.warnings


def test_a_report_that_cannot_be_printed_costs_rules_and_lines_alone(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    report = 'cat "$capture" > "$log"; : > "$export_to"'
    ncu = tool(tmp_path / "ncu", report, "ncu/h200_probe.csv", pages="exit 1")
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=20)
    assert profile.source is ProfileSource.NCU
    assert not any(kernel.rules or kernel.lines for kernel in profile.kernels)


def test_a_report_is_read_once_the_gpu_is_no_longer_needed(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    ncu = tool(tmp_path / "ncu", 'echo "==PROF== Connected" > "$log"; : > "$export_to"', pages="exit 1")
    with make_device(ncu=ncu).profiler(host_build, make_job(), timeout_s=20) as profiler:
        read = profiler.collect()
        with pytest.raises(RunFailure, match="ncu failed"):
            read()


def test_refused_counters_fall_back_to_events_with_the_hint(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    ncu = tool(tmp_path / "ncu", 'echo "==ERROR== ERR_NVGPUCTRPERM - no permission" > "$log"')
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=20)
    assert profile.source is ProfileSource.EVENTS
    assert profile.totals[Metric.DURATION] > 0
    assert "NVreg_RestrictProfilingToAdminUsers=0" in profile.warnings[0]


def test_a_machine_without_ncu_profiles_by_events(
    make_device: Callable[..., module.CudaDevice], host_build: Build, make_job: MakeJob
) -> None:
    profile = profile_once(make_device(ncu=None), host_build, make_job(), timeout_s=20)
    assert profile.source is ProfileSource.EVENTS
    assert profile.warnings == ["ncu is not installed: times only"]


def test_a_metric_this_gpu_lacks_does_not_cost_the_others(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    script = (
        f'case "$asked" in *{Metric.PIPE_FP16}*) echo "==ERROR== Failed to find metric {Metric.PIPE_FP16}" > "$log";; '
        '*) cat "$capture" > "$log";; esac'
    )
    ncu = tool(tmp_path / "ncu", script, "ncu/h200_probe.csv")
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=20)
    assert profile.source is ProfileSource.NCU


REHEARSED = """echo '"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum"' > "$log"
echo '"","","","","ns"' >> "$log"; echo '"0","kb_warmup","(32, 1, 1)","(1, 1, 1)","1,000"' >> "$log"
"""


def test_the_empty_kernel_is_no_part_of_a_profile(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    other = """echo '"1","k(float *)","(64, 1, 1)","(2, 1, 1)","5,000"' >> "$log"; """
    ncu = tool(tmp_path / "ncu", REHEARSED + other)
    profile = profile_once(make_device(ncu=ncu), host_build, make_job(), timeout_s=20)
    assert [kernel.name for kernel in profile.kernels] == ["k(float *)"]
    assert profile.totals[Metric.DURATION] == 5000


def test_a_call_without_kernels_says_so_and_does_not_weaken_the_fence_of_those_that_follow(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    device = make_device(ncu=tool(tmp_path / "ncu", REHEARSED))
    profile = profile_once(device, host_build, make_job(), timeout_s=20)
    assert profile.source is ProfileSource.EVENTS
    assert profile.warnings == [NO_KERNEL]
    assert device._counters.isolation is device.isolation


def test_findings_of_all_sanitizers_are_collected(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    sanitizer = tool(tmp_path / "cs", 'cat "$capture" > "$log"', "sanitizer/racecheck_race.txt")
    findings = make_device(sanitizer=sanitizer).sanitize(host_build, make_job(), timeout_s=20)
    assert [finding.tool for finding in findings] == ["memcheck", "racecheck", "initcheck", "synccheck"]


def test_sanitizers_run_side_by_side_once_it_is_known_where_they_work(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    all_there = threading.Barrier(4, timeout=20)
    device = make_device(sanitizer=tool(tmp_path / "cs", 'cat "$capture" > "$log"', "sanitizer/racecheck_race.txt"))
    first = device.sanitize(host_build, make_job(), timeout_s=20)

    def together(sanitizer: Path, name: str, *_: object) -> list[SanitizerFinding]:
        all_there.wait()
        return [SanitizerFinding(tool=name, message="")]

    monkeypatch.setattr(device, "_sanitize_with", together)
    found = device.sanitize(host_build, make_job(), timeout_s=20)
    assert [finding.tool for finding in found] == [finding.tool for finding in first]


def test_reads_of_a_foreign_drivers_own_memory_are_not_held_against_a_candidate(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    sanitizer = tool(tmp_path / "cs", 'cat "$capture" > "$log"', "sanitizer/racecheck_race.txt")
    problem = dataclasses.replace(host_build.harness.problem, weakly_verified=True)
    foreign = dataclasses.replace(host_build, harness=dataclasses.replace(host_build.harness, problem=problem))
    device = make_device(sanitizer=sanitizer)
    tools = [{finding.tool for finding in device.sanitize(b, make_job(), timeout_s=20)} for b in (host_build, foreign)]
    assert tools[0] - tools[1] == {"initcheck"}


def test_a_sanitizer_that_breaks_is_not_the_candidates_fault(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    sanitizer = tool(tmp_path / "cs", 'echo "========= Internal Sanitizer Error: bad" > "$log"')
    with pytest.raises(DeviceError, match="Internal Sanitizer Error"):
        make_device(sanitizer=sanitizer).sanitize(host_build, make_job(), timeout_s=20)


def test_a_sanitizer_without_a_report_has_not_found_the_candidate_clean(
    make_device: Callable[..., module.CudaDevice], tmp_path: Path, host_build: Build, make_job: MakeJob
) -> None:
    with pytest.raises(DeviceError, match="no report"):
        make_device(sanitizer=tool(tmp_path / "cs", ":")).sanitize(host_build, make_job(), timeout_s=20)


@needs_isolation
def test_a_profiler_that_fails_in_the_fence_profiles_outside_and_says_so(
    make_device: Callable[..., module.CudaDevice],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    host_build: Build,
    make_job: MakeJob,
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "needed"
    outside.touch()
    script = f'if cat {outside}; then cat "$capture" > "$log"; else echo "==ERROR== isolated" > "$log"; fi'
    device = make_device(ncu=tool(tmp_path / "ncu", script, "ncu/h200_probe.csv"))
    profiles = [profile_once(device, host_build, make_job(), timeout_s=20) for _ in range(2)]
    assert [profile.source for profile in profiles] == [ProfileSource.NCU] * 2
    assert "weaker isolation (limits)" in profiles[0].warnings[0]
    assert profiles[1].warnings == profiles[0].warnings


@needs_isolation
def test_a_sanitizer_that_fails_in_the_fence_runs_outside_and_says_so(
    make_device: Callable[..., module.CudaDevice],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    host_build: Build,
    make_job: MakeJob,
    caplog: pytest.LogCaptureFixture,
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "needed"
    outside.touch()
    script = f'cat {outside} && cat "$capture" > "$log"'
    sanitizer = tool(tmp_path / "cs", script, "sanitizer/racecheck_race.txt")
    findings = make_device(sanitizer=sanitizer).sanitize(host_build, make_job(), timeout_s=20)
    assert len(findings) == 4
    assert [record.message.split(":")[0] for record in caplog.records] == ["compute-sanitizer runs under limits"]


def test_no_sanitizer_means_no_findings(
    make_device: Callable[..., module.CudaDevice], host_build: Build, make_job: MakeJob
) -> None:
    assert make_device(sanitizer=None).sanitize(host_build, make_job(), timeout_s=20) == []
