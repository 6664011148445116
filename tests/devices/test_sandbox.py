"""What untrusted commands cannot do. Every fault is bounded: the machine must survive a sandbox that does not hold."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.limits import CommandResult, ExceededLimit, Limits
from kernelblaster.sandbox.process import SandboxedProcess, Scratch, clean_environment, run, strongest

MIB = 1 << 20
INTERPRETER = FileView(readable=(Path(sys.prefix), Path(sys.base_prefix)))


def shell(command: str, *, timeout_s: float = 10, **limits: int | bool) -> CommandResult:
    bounds = Limits(**{"forks": True, "memory_bytes": 300 * MIB, **limits})
    with Scratch() as scratch:
        return run(
            ["/bin/sh", "-c", command],
            timeout_s=timeout_s,
            limits=bounds,
            cwd=scratch,
            environment=clean_environment(scratch),
        )


def python(program: str, *, timeout_s: float = 10, **limits: int | bool) -> CommandResult:
    bounds = Limits(**{"memory_bytes": 300 * MIB, **limits})
    with Scratch() as scratch:
        return run(
            [sys.executable, "-I", "-S", "-c", program],
            timeout_s=timeout_s,
            limits=bounds,
            cwd=scratch,
            environment=clean_environment(scratch),
            view=INTERPRETER,
        )


def alive(marker: str) -> list[int]:
    """Processes whose command line holds `marker`."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if marker.encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_output_and_status_are_reported() -> None:
    outcome = shell("echo out; echo err >&2; exit 3")
    assert outcome.code == 3
    assert not outcome.ok
    assert outcome.output.split() == ["out", "err"]
    assert outcome.describe() == "exited with status 3"


def test_a_signal_is_named() -> None:
    assert shell("kill -SEGV $$").describe() == "was killed by SIGSEGV"


def test_a_missing_command_is_an_outcome() -> None:
    with Scratch() as scratch:
        outcome = run(["/no/such/tool"], timeout_s=5, limits=Limits(), cwd=scratch, environment={})
    assert outcome.code != 0
    assert "/no/such/tool" in outcome.output


def test_a_hang_is_killed_in_time() -> None:
    started = time.monotonic()
    outcome = shell("sleep 60", timeout_s=0.3)
    assert outcome.exceeded is ExceededLimit.TIME
    assert time.monotonic() - started < 30


def test_children_that_leave_the_process_group_die_with_the_command() -> None:
    marker = f"61.{os.getpid()}"
    outcome = shell(f"setsid sleep {marker} & sleep 0.2; echo done")
    assert outcome.output.strip() == "done"
    assert alive(f"sleep\0{marker}") == []


def test_too_many_processes_end_the_command() -> None:
    marker = f"62.{os.getpid()}"
    outcome = shell(f"i=0; while [ $i -lt 80 ]; do sleep {marker} & i=$((i+1)); done; wait", tasks=30)
    assert outcome.exceeded is ExceededLimit.TASKS
    assert alive(f"sleep\0{marker}") == []


def test_too_many_threads_end_the_command() -> None:
    program = """
import threading, time
for _ in range(60):
    threading.Thread(target=time.sleep, args=(20,), daemon=True).start()
time.sleep(20)
"""
    assert python(program, tasks=30).exceeded is ExceededLimit.TASKS


def test_a_candidate_cannot_fork_but_can_make_threads() -> None:
    outcome = python(
        "import os, threading\nt = threading.Thread(target=print, args=('threaded',)); t.start(); t.join()\nos.fork()"
    )
    assert "threaded" in outcome.output
    assert "PermissionError" in outcome.output
    assert outcome.code == 1


def test_memory_is_bounded() -> None:
    assert python(f"x = bytearray({600 * MIB}); import time; time.sleep(20)").exceeded is ExceededLimit.MEMORY


def test_address_space_is_not_memory() -> None:
    """CUDA reserves far more than it uses."""
    assert python(f"import mmap; m = mmap.mmap(-1, {1 << 36}, flags=mmap.MAP_PRIVATE | 0x4000); print(len(m))").ok


def test_the_disk_cannot_be_filled_with_small_files() -> None:
    program = """
import time
for i in range(64):
    open(str(i), 'wb').write(bytes(1 << 20))
time.sleep(20)
"""
    assert python(program, file_bytes=2 * MIB, disk_bytes=16 * MIB).exceeded is ExceededLimit.DISK


def test_a_file_cannot_grow_without_bound() -> None:
    outcome = python("open('big', 'wb').truncate(1 << 30)", file_bytes=MIB)
    assert not outcome.ok


def test_endless_output_is_cut_off() -> None:
    outcome = shell("yes passed", output_bytes=4 * MIB)
    assert outcome.exceeded is ExceededLimit.OUTPUT
    assert len(outcome.output) < MIB
    assert outcome.output_bytes < 8 * MIB


def test_the_tail_of_the_output_is_kept() -> None:
    outcome = shell("i=0; while [ $i -lt 40000 ]; do echo 0123456789; i=$((i+1)); done; echo last")
    assert outcome.output.endswith("last\n")
    assert outcome.output_bytes == 40000 * 11 + 5


def test_the_environment_carries_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("LD_PRELOAD", "")
    outcome = shell("env")
    assert "sk-secret" not in outcome.output
    assert "LD_PRELOAD" not in outcome.output


def test_no_core_is_dumped() -> None:
    assert shell("ulimit -c").output.strip() == "0"


def test_scratch_is_removed_with_what_lies_in_it() -> None:
    with Scratch() as scratch:
        (scratch / "sub").mkdir()
        (scratch / "sub" / "file").touch()
    assert not scratch.exists()


def test_closing_kills_a_running_command() -> None:
    marker = f"63.{os.getpid()}"
    with (
        Scratch() as scratch,
        SandboxedProcess(
            ["/bin/sleep", marker], cwd=scratch, environment=clean_environment(scratch), limits=Limits()
        ) as process,
    ):
        assert process.close().code == -signal.SIGKILL
        assert process.close().code == -signal.SIGKILL
    assert alive(f"sleep\0{marker}") == []


def test_the_network_is_out_of_reach() -> None:
    if not strongest().network:
        pytest.skip("this system refuses network namespaces")
    outcome = python("print(open('/proc/net/dev').read())")
    assert "lo:" in outcome.output
    assert "eth" not in outcome.output


def test_loopback_works_inside() -> None:
    if not strongest().network:
        pytest.skip("this system refuses network namespaces")
    program = (
        "import socket\ns = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname())\nprint('connected')"
    )
    assert "connected" in python(program).output


def test_nested_directories_without_end_and_closed_ones_are_removed(tmp_path: Path) -> None:
    """Deeper than Python's recursion, and than the longest path."""
    (tmp_path / "kept").write_text("")
    program = (
        "import os; os.mkdir('closed'); os.mkdir('closed/inner'); os.symlink('/', 'link'); os.chmod('closed', 0)\n"
        "for _ in range(2000): os.mkdir('x' * 50); os.chdir('x' * 50)"
    )
    with Scratch(tmp_path) as scratch:
        run(
            [sys.executable, "-I", "-S", "-c", program],
            timeout_s=60,
            limits=Limits(memory_bytes=300 * MIB),
            cwd=scratch,
            environment=clean_environment(scratch),
            view=INTERPRETER,
        )
        assert (scratch / "closed").is_dir()
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
