"""`kernelblaster emulate` with real programs."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path

import pytest
from cli_support import Done, call, clean_environment

from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.errors import ExitCode
from ptxemu.program.result import RunResult

pytestmark = [pytest.mark.nvcc, pytest.mark.usefixtures("nvcc")]
EMULATED = Path(__file__).parents[1] / "ptxemu" / "program"
SAXPY = EMULATED / "programs" / "saxpy.cu"
UNUSUAL = EMULATED / "programs" / "unusual.cu"


Emulate = Callable[..., Done]


@pytest.fixture
def emulate(invoke_with_streams: Emulate) -> Emulate:
    """Calls the command in this process."""
    return partial(invoke_with_streams, "emulate")


def test_program_runs_and_its_kernels_are_reported(emulate: Emulate, tmp_path: Path) -> None:
    done = emulate(SAXPY, "--json", "launches.json", "--record", "out.json", "--", "5000")
    assert done.code == 7
    assert done.out == "hello from thread 3\ny[10] = 30.000000, no error, took time\n"
    assert "saxpy(float, float const*, float*, int) (20, 1, 1)x(256, 1, 1)" in done.err
    line = next(line for line in done.err.splitlines() if "gpu__time_duration.sum" in line)
    assert line.split()[-1] == "modelled"
    assert "NVIDIA H200 (emulated)" in done.err
    emulation = RunResult.decoded(json.loads((tmp_path / "out.json").read_text()))
    (launch,) = emulation.launches
    assert (launch.grid, launch.block) == ((20, 1, 1), (256, 1, 1))
    assert launch.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"] == 2 * 5000 * 4 / 32
    assert emulation.exit_code == 7
    assert emulation.findings is None
    (listed,) = json.loads((tmp_path / "launches.json").read_text())
    assert listed == {"device": "NVIDIA H200 (emulated)", **json.loads(json.dumps(asdict(launch)))}


def test_results_that_could_not_be_written_are_refused_before_the_program_runs(
    emulate: Emulate, tmp_path: Path
) -> None:
    for option, target in (("--json", tmp_path / "missing" / "out.json"), ("--record", tmp_path)):
        done = emulate(SAXPY, option, target)
        assert (done.code, done.out) == (ExitCode.USAGE, "")
        assert str(target) in done.err


def test_architecture_is_chosen(emulate: Emulate, tmp_path: Path) -> None:
    done = emulate(SAXPY, "--arch", "sm_80", "--record", "out.json")
    assert "NVIDIA A100 80GB (emulated)" in done.err
    assert json.loads((tmp_path / "out.json").read_text())["device"]["arch"] == "sm_80"
    unknown = emulate(SAXPY, "--arch", "sm_61")
    assert unknown.code == ExitCode.USAGE
    assert "sm_61" in unknown.err.splitlines()[0]


def test_streams_and_exit_code_are_the_programs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kernelblaster", "emulate", str(UNUSUAL), "--", "echo"],
        input="a line\n", capture_output=True, text=True, cwd=tmp_path, env=clean_environment(), timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "read a line\n")
    assert "to stderr" in done.stderr


def test_printf_and_failures_of_the_device_reach_the_user(emulate: Emulate) -> None:
    assert emulate(UNUSUAL, "--", "greet").out == "thread 0 of 2\nthread 1 of 2\ncudaSuccess\n"
    failed = emulate(UNUSUAL, "--", "assert")
    assert (failed.code, failed.out) == (5, "cudaErrorAssert\n")
    assert "assertion `n < 3' failed" in failed.err
    reached = emulate(UNUSUAL, "--", "reach")
    assert (reached.code, reached.out) == (5, "cudaErrorIllegalAddress\n")
    assert "unusual.cu:10" in reached.err


def test_crash_and_hang_are_told_apart(emulate: Emulate) -> None:
    crashed = emulate(UNUSUAL, "--", "crash")
    assert crashed.code == 128 + 6
    assert "SIGABRT" in crashed.err
    for mode in ("sleep", "hang"):
        stopped = emulate(UNUSUAL, "--timeout", "1", "--", mode)
        assert stopped.code == ExitCode.TIMED_OUT
        assert " 1 s" in stopped.err


def test_findings_of_the_checks_fail_a_program_that_ends_well(emulate: Emulate, tmp_path: Path) -> None:
    races = EMULATED / "planted" / "races.cu"
    found = emulate(races, "--checks", "--record", "out.json", "--", "tree_without_barrier")
    assert found.code == ExitCode.FAILED
    assert "racecheck races.cu:10: tree_without_barrier: " in found.err
    assert "thread (16, 0, 0)" in found.err
    (first, *_) = json.loads((tmp_path / "out.json").read_text())["findings"]
    assert (first["tool"], first["kernel"], first["source_line"]) == ("racecheck", "tree_without_barrier", 10)
    clean = emulate(races, "--checks", "--", "barrier_in_tree")
    assert clean.code == ExitCode.OK
    assert "racecheck races.cu" not in clean.err
    assert emulate(races, "--", "tree_without_barrier").code == ExitCode.OK


def test_bad_programs_are_one_line_and_a_hint(emulate: Emulate, tmp_path: Path) -> None:
    missing = emulate("missing.cu")
    assert missing.code == ExitCode.USAGE
    assert "missing.cu" in missing.err.splitlines()[0]
    (tmp_path / "broken.cu").write_text("int main() { return undeclared; }\n")
    broken = emulate("broken.cu")
    assert broken.code == ExitCode.USAGE
    assert "broken.cu" in broken.err.splitlines()[-2]
    assert "undeclared" in broken.err.splitlines()[-2]
    (tmp_path / "mainless.cu").write_text("__global__ void k() {}\n")
    mainless = emulate("mainless.cu")
    assert mainless.code == ExitCode.USAGE
    assert "mainless.cu" in mainless.err
    assert "main" in mainless.err.replace("mainless", "")
    assert "Traceback" not in broken.err + mainless.err + missing.err


def test_what_cannot_be_emulated_is_named(emulate: Emulate, tmp_path: Path) -> None:
    (tmp_path / "multimem.cu").write_text(
        "__global__ void k() {\n"
        '    asm volatile("multimem.red.global.add.u32 [%0], 1;" :: "l"(0L));\n'
        "}\nint main() { k<<<1, 32>>>(); }\n"
    )
    instruction = emulate("multimem.cu")
    assert instruction.code == ExitCode.MACHINE
    assert "(multimem.cu:2): multimem.red.global.add.u32" in instruction.err
    (tmp_path / "shared.cu").write_text("int main() { return cudaIpcCloseMemHandle(nullptr); }\n")
    function = emulate("shared.cu")
    assert function.code == ExitCode.MACHINE
    assert "cudaIpcCloseMemHandle" in function.err


def test_headers_are_found_and_a_changed_one_rebuilds(emulate: Emulate, tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "value.cu").write_text(
        '#include <value.h>\n#include <cstdio>\nint main() { std::printf("%d\\n", VALUE); }'
    )
    (tmp_path / "include" / "value.h").write_text("#define VALUE 1\n")
    assert emulate("value.cu").code == ExitCode.USAGE
    assert emulate("value.cu", "--include", "include").out == "1\n"
    (tmp_path / "include" / "value.h").write_text("#define VALUE 2\n")
    assert emulate("value.cu", "-I", "include").out == "2\n"


def test_without_nvcc_the_hint_is_named(tmp_path: Path, nvcc: Toolchain) -> None:
    done = call(["emulate", SAXPY], tmp_path, PATH="/nonexistent", CUDA_HOME="/nonexistent")
    if done.code == 7:
        pytest.skip("nvcc is found beside PATH")
    assert done.code == ExitCode.MACHINE
    assert "kernelblaster doctor" in done.err


def test_lines_show_where_warps_wait(emulate: Emulate, tmp_path: Path) -> None:
    tiles = EMULATED / "planted" / "races.cu"
    done = emulate(tiles, "--lines", "2", "--record", "out.json", "--", "tile_kept_while_read")
    (launch,) = RunResult.decoded(json.loads((tmp_path / "out.json").read_text())).launches
    source = tiles.read_text().splitlines()
    inner, load = launch.lines
    assert "sum += tile[k]" in source[inner.source_line - 1]
    assert "x[t * 128 + threadIdx.x]" in source[load.source_line - 1]
    warps, tiles_read = 8, 4
    assert load.global_sectors == warps * tiles_read * 4
    assert load.shared_wavefronts == warps * tiles_read
    assert inner.shared_wavefronts == warps * tiles_read * 128 // 4  # broadcasts, four words to a load
    assert 0.5 < inner.waiting_share < 1
    assert "sum += tile[k]" in done.err
    without = emulate(tiles, "--json", "out.json", "--", "tile_kept_while_read")
    assert "tile[k]" not in without.err
    assert json.loads((tmp_path / "out.json").read_text())[0]["lines"] == []


def test_nothing_heavy_is_imported(tmp_path: Path) -> None:
    script = (
        "import sys; from kernelblaster.cli import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert end.code == 7, end.code\n"
        "print(*sorted({'torch', 'langgraph', 'openai'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, "emulate", str(SAXPY)],
        capture_output=True, text=True, cwd=tmp_path, env=clean_environment(), timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == ""
