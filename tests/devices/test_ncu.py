"""ncu's CSV as captured on an H200, and what it looks like when counters are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.devices.cuda.ncu import NcuFailure, ncu_command, parse_csv, unknown_metrics
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import totals

CAPTURED = Path(__file__).parents[1] / "fixtures" / "ncu" / "h200_probe.csv"


def test_every_launch_of_the_captured_run_is_read_in_order() -> None:
    kernels = parse_csv(CAPTURED.read_text())
    assert [kernel.name.split("(")[0] for kernel in kernels] == [
        "copy_scalar",
        "copy_strided",
        "transpose_conflict",
        "matmul_naive",
        "softmax_row",
    ]
    assert kernels[0].grid == (262144, 1, 1)
    assert kernels[2].block == (32, 8, 1)


def test_numbers_lose_their_thousands_separators() -> None:
    copy, strided, transpose, *_ = parse_csv(CAPTURED.read_text())
    assert copy.metrics[Metric.DURATION] == 195360
    assert strided.metrics[Metric.DRAM_READ] == 4295014144
    assert transpose.metrics[Metric.SHARED_LOAD_CONFLICTS] == 65580324
    assert copy.metrics[Metric.LOAD_SECTOR_USE] == 100


def test_totals_of_the_captured_run_add_up() -> None:
    combined = totals(parse_csv(CAPTURED.read_text()))
    assert combined[Metric.DURATION] == 195360 + 1176000 + 327104 + 513408 + 48768


def test_what_was_not_collected_is_absent() -> None:
    text = (
        '"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","sm__cycles_elapsed.max"\n'
        '"","","","","ns","cycle"\n'
        '"0","k(float *, ""q"")","(1, 1, 1)","(2, 3, 4)","n/a","1,234"\n'
    )
    (kernel,) = parse_csv(text)
    assert kernel.name == 'k(float *, "q")'
    assert kernel.grid == (2, 3, 4)
    assert kernel.metrics == {Metric.ELAPSED_CYCLES: 1234}


def test_refused_counters_are_told_from_other_failures() -> None:
    with pytest.raises(NcuFailure) as refused:
        parse_csv("==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU counters")
    assert refused.value.permission
    with pytest.raises(NcuFailure, match="launched none"):
        parse_csv("==WARNING== No kernels were profiled.")
    with pytest.raises(NcuFailure) as failed:
        parse_csv("==ERROR== no such device")
    assert not failed.value.permission
    with pytest.raises(NcuFailure, match="no output"):
        parse_csv("")


def test_unknown_metrics_are_named() -> None:
    text = "==ERROR== Failed to find metric sm__old.avg\n==ERROR== Failed to find metric 'l2__x.sum'.\n"
    assert unknown_metrics(text) == {"sm__old.avg", "l2__x.sum"}


def test_clocks_are_left_alone_and_only_marked_work_is_profiled() -> None:
    command = ncu_command(Path("/opt/ncu"), ["a.sum", "b.avg"])
    options = dict(zip(command[1::2], command[2::2], strict=False))
    assert options["--metrics"] == "a.sum,b.avg"
    assert options["--clock-control"] == "none"
    assert options["--cache-control"] == "all"
    assert options["--profile-from-start"] == "off"


def test_a_failure_says_what_the_driver_reported() -> None:
    with pytest.raises(NcuFailure, match="resource"):
        parse_csv("==ERROR== An error was reported by the driver:\n==ERROR== a resource is in use\n")


def test_the_empty_kernel_of_the_harness_takes_no_launch_from_the_candidate() -> None:
    command = ncu_command(Path("/opt/ncu"), ["a.sum"], launches=24)
    assert command[command.index("--launch-count") + 1] == "25"
    assert "--launch-count" not in ncu_command(Path("/opt/ncu"), ["a.sum"])
