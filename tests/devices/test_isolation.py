"""What an isolated command cannot see, write or kill. Attacks are bounded; those on files work without isolation."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelblaster.devices.base import Build, Job
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.build.tools import first_error
from kernelblaster.devices.harness.job import job_view
from kernelblaster.devices.harness.libraries import runtime_libraries
from kernelblaster.errors import UsageError
from kernelblaster.paths import data_dir
from kernelblaster.sandbox import isolation
from kernelblaster.sandbox import process as sandbox
from kernelblaster.sandbox.isolation import PRIVATE_BYTES, FileView, Isolation, SystemView, installation, plan
from kernelblaster.sandbox.limits import CommandResult, Limits
from kernelblaster.sandbox.linux_isolation import landlock_version
from kernelblaster.sandbox.process import (
    ISOLATION_HINT,
    STRONGEST_VARIABLE,
    Scratch,
    clean_environment,
    run,
    strongest,
    trial,
)

INTERPRETER = FileView(readable=(Path(sys.prefix), Path(sys.base_prefix)))
REFUSED = {level: trial(level) if level.isolates else None for level in Isolation}
"""Level -> why it does not work here."""


def _parameter(level: Isolation) -> object:
    reason = REFUSED[level]
    return pytest.param(level, marks=pytest.mark.skipif(reason is not None, reason=f"{level} does not work: {reason}"))


every_isolation = pytest.mark.parametrize("level", [_parameter(level) for level in Isolation if level.isolates])
every_root = pytest.mark.parametrize("level", [_parameter(Isolation.BUBBLEWRAP), _parameter(Isolation.NAMESPACES)])
"""Levels with a file system and processes of their own."""
every_level = pytest.mark.parametrize("level", [_parameter(level) for level in Isolation])


def attempt(
    level: Isolation, script: str, *arguments: object, view: FileView | None = None, **limits: object
) -> CommandResult:
    """Run a shell script under a level."""
    with Scratch() as scratch:
        return run(
            ["/bin/sh", "-c", script, "sh", *map(str, arguments)],
            timeout_s=20,
            limits=Limits(**{"forks": True, "isolation": level, **limits}),
            cwd=scratch,
            environment=clean_environment(scratch),
            view=view,
        )


def alive(marker: str) -> list[str]:
    """Processes whose command line holds `marker`."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (entry / "cmdline").read_bytes():
                found.append(entry.name)
        except OSError:
            continue
    return found


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process outside, with a key in its environment."""
    with subprocess.Popen(["/bin/sleep", "60"], env={"OPENAI_API_KEY": f"sk-{os.getpid()}"}) as process:
        yield process
        process.kill()


def test_every_level_reports_output_and_status() -> None:
    for level in Isolation:
        if REFUSED[level] is None:
            outcome = attempt(level, "echo out; exit 3")
            assert (outcome.output, outcome.code) == ("out\n", 3), level
            assert attempt(level, "kill -SEGV $$").describe() == "was killed by SIGSEGV", level


@every_isolation
def test_no_key_is_read_from_another_process(level: Isolation, bystander: subprocess.Popen[bytes]) -> None:
    script = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep -c sk-$1"
    assert attempt(Isolation.LIMITS, script, os.getpid()).output.strip() != "0"
    assert attempt(level, script, os.getpid()).output.strip() == "0"


@every_isolation
def test_nothing_of_the_user_or_the_judge_is_seen(level: Isolation, tmp_path: Path) -> None:
    secrets = [tmp_path / name for name in (".env", ".ssh/id_ed25519", "out/run/candidates/other.cu", "out/run/x.json")]
    for path in secrets:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    reference = next(data_dir().rglob("reference.py"))
    secrets += [reference, data_dir() / "kb" / "optimization_database.json", Path(__file__), Path("/etc/shadow")]
    script = 'for file in "$@"; do head -c 1 "$file" >/dev/null 2>&1 && echo "$file"; done; ls -d "$HOME"/../../home'
    seen = attempt(Isolation.LIMITS, script, *secrets).output.split("\n")
    assert set(map(str, secrets[:-1])) <= set(seen)
    shown = attempt(level, script, *secrets).output
    assert [path for path in secrets if f"{path}\n" in shown] == []


@every_isolation
def test_compilers_see_nothing_that_tells_of_the_machine(level: Isolation) -> None:
    places = ["/etc/passwd", "/etc/hostname", "/etc/machine-id", "/proc/cpuinfo", "/proc/self/environ", "/proc/1/maps"]
    places += [
        "/sys/kernel/notes",
        "/sys/devices/system/cpu/online",
        "/usr/share/doc",
        "/usr/lib/os-release",
        "/var/log",
    ]
    reads = 'head -c 1 "$place" >/dev/null 2>&1 || ls "$place/" >/dev/null 2>&1'
    script = f'for place in "$@"; do {reads} && echo "$place"; done; true'
    outside = attempt(Isolation.LIMITS, script, *places).output.split()
    assert {"/etc/passwd", "/proc/cpuinfo"} <= set(outside)
    assert attempt(level, script, *places, view=FileView(system=SystemView.TOOLS)).output == ""


@every_isolation
def test_an_assembler_embeds_no_file_of_the_machine(level: Isolation, toolchain: Toolchain) -> None:
    script = f"""printf '.incbin "%s"\\n' "$1" > x.s && {toolchain.host_compiler} -c x.s && echo embedded"""
    view = FileView(readable=toolchain.directories, system=SystemView.TOOLS)
    assert "embedded" in attempt(level, script, toolchain.nvcc, view=view).output
    for place in ("/etc/passwd", "/proc/cpuinfo", __file__):
        outcome = attempt(level, script, place, view=view)
        assert not outcome.ok, place
        assert place in first_error(outcome.output)


@every_isolation
def test_nothing_is_written_outside(level: Isolation, tmp_path: Path) -> None:
    places = [tmp_path, Path.home(), Path("/usr"), Path("/etc"), Path("/"), Path("/proc/sys"), Path("/sys")]
    mark = f"mark-{os.getpid()}"
    script = 'for place in "$@"; do mkdir -p "$place"; touch "$place/' + mark + '"; done; touch here && echo done'
    assert attempt(level, script, *places).output.splitlines()[-1] == "done"
    assert [place for place in places if (place / mark).exists()] == []
    # Harmless where it works: the value is the one that is there.
    setting = "cat /proc/sys/vm/swappiness > value && cat value > /proc/sys/vm/swappiness"
    assert not attempt(level, setting).ok


@every_root
def test_tmp_and_shared_memory_are_private_and_bounded(level: Isolation) -> None:
    mark = f"mark-{os.getpid()}"
    script = f"echo x > /tmp/{mark} && echo x > /dev/shm/{mark} && ls /tmp /dev/shm && df -B1 /tmp /dev/shm"
    outcome = attempt(level, script)
    assert outcome.output.count(mark) == 2
    assert outcome.output.count(f" {PRIVATE_BYTES} ") == 2
    assert not Path("/tmp", mark).exists()
    assert not Path("/dev/shm", mark).exists()


@every_root
def test_no_privileges_are_left(level: Isolation) -> None:
    held = attempt(level, "grep -E 'Cap(Eff|Prm|Amb)|NoNewPrivs' /proc/self/status").output.split()
    assert held == ["CapPrm:", "0" * 16, "CapEff:", "0" * 16, "CapAmb:", "0" * 16, "NoNewPrivs:", "1"]


@every_root
def test_other_processes_are_not_seen(level: Isolation) -> None:
    assert int(attempt(level, "ls -d /proc/[0-9]* | wc -l").output) < 8


@every_isolation
def test_other_processes_cannot_be_killed(level: Isolation, bystander: subprocess.Popen[bytes]) -> None:
    if level is Isolation.LANDLOCK and landlock_version() < 6:
        pytest.skip("this kernel's Landlock does not restrict signals")
    assert attempt(level, "kill -9 $1 2>/dev/null; kill -9 $PPID 2>/dev/null; echo alive", bystander.pid).ok
    assert bystander.poll() is None
    attempt(Isolation.LIMITS, "kill -9 $1", bystander.pid)
    assert bystander.wait(5) == -signal.SIGKILL


@every_level
def test_a_server_of_this_machine_is_out_of_reach(level: Isolation) -> None:
    if not strongest().network:
        pytest.skip("this system refuses network namespaces")
    program = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print('connected')"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f'"{sys.executable}" -I -S -c "$1" {port} 2>&1 | tail -1'
        outside = attempt(level, script, program, view=INTERPRETER, isolate_network=False)
        inside = attempt(level, script, program, view=INTERPRETER)
    assert outside.output == "connected\n"
    assert "ConnectionRefusedError" in inside.output


@every_level
def test_a_command_without_forks_has_none(level: Isolation) -> None:
    assert "forked" in attempt(level, "(echo forked); echo done").output
    outcome = attempt(level, "(echo forked); echo done", forks=False)
    assert not outcome.ok
    assert "forked" not in outcome.output


@every_level
def test_nothing_is_left_when_the_harness_is_killed(level: Isolation, tmp_path: Path) -> None:
    marker = f"64.{os.getpid()}"
    harness = f"""
import sys, time
from pathlib import Path
from kernelblaster.sandbox.isolation import Isolation
from kernelblaster.sandbox.process import Limits, SandboxedProcess
script = "setsid sleep {marker} & sleep {marker} & wait"
limits = Limits(forks=True, isolation=Isolation({str(level)!r}))
process = SandboxedProcess(["/bin/sh", "-c", script], cwd=Path({str(tmp_path)!r}), environment={{}}, limits=limits)
time.sleep(60)
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", harness], env=environment) as process:
        deadline = time.monotonic() + 20
        while len(alive(f"sleep\0{marker}")) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert len(alive(f"sleep\0{marker}")) == 2
        process.kill()
    while alive(marker) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert alive(marker) == []


@every_root
def test_a_folder_may_hold_parts_of_the_system_that_are_shown_anyway(level: Isolation) -> None:
    view = FileView(readable=(Path("/usr"),), system=SystemView.TOOLS)
    outcome = attempt(level, "ls /usr/share > /dev/null && touch /usr/bin/x 2> /dev/null; echo $?", view=view)
    assert outcome.output == "1\n"


@every_isolation
def test_a_program_sees_neither_files_of_tensors_nor_other_programs(
    level: Isolation, host_build: Build, make_job: Callable[..., Job]
) -> None:
    job = make_job()
    (host_build.program.parent / "other.cu").write_text("another candidate")
    script = 'cat "$1"; cat "$2/other.cu"; ls "$2"; echo > "$1"'
    view = job_view(host_build.program, host_build.harness)
    outcome = attempt(level, script, job.tensors[0].path, host_build.program.parent, view=view)
    assert not outcome.ok
    assert "another candidate" not in outcome.output
    assert "other.cu" not in outcome.output.replace(str(host_build.program.parent / "other.cu"), "")
    assert job.tensors[0].path.stat().st_size == 4000


@every_isolation
def test_a_candidates_process_sees_no_library_that_it_may_not_link(level: Isolation, host_build: Build) -> None:
    libraries = runtime_libraries()
    names = {path.name.split(".so")[0] for path in libraries}
    assert {"libc", "libm", "libstdc++"} <= names
    assert not {"libcublas", "libcudnn", "libcufft", "libnvrtc", "libnvJitLink", "libssl", "libpython3"} & names
    view = job_view(host_build.program, host_build.harness) | FileView(readable=libraries, system=SystemView.PROGRAM)
    with Scratch() as scratch:
        outcome = run(
            [str(host_build.program)],
            timeout_s=20,
            limits=Limits(isolation=level),
            cwd=scratch,
            environment=clean_environment(scratch),
            view=view,
        )
    # It starts, and finds nobody to talk to.
    assert "error while loading" not in outcome.output
    assert "harness" in outcome.output
    others = [path for path in Path("/usr/lib").rglob("lib*.so") if path not in libraries][:50]
    script = 'for file in "$@"; do (: < "$file") 2>/dev/null && echo "$file"; done; true'
    assert attempt(level, script, *others).output != ""
    assert attempt(level, script, *others, view=view).output == ""


def test_the_drivers_libraries_are_found_and_others_left_out(tmp_path: Path) -> None:
    driver = ["libcuda.so.1", "libcuda.so.580.1", "libnvidia-ptxjitcompiler.so.1", "libnvidia-nvvm.so.4"]
    others = [
        "libcudart.so.13",
        "libcublas.so.13",
        "libcublasLt.so.13",
        "libcudnn.so.9",
        "libnvrtc.so.13",
        "libcufft.so",
    ]
    for name in (*driver, *others):
        (tmp_path / name).touch()
    found = runtime_libraries({"LD_LIBRARY_PATH": f"{tmp_path}:relative"})
    assert {path.name for path in found if path.parent == tmp_path} == set(driver)


def test_a_tool_is_shown_with_its_installation_but_never_with_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for place in (home / "bin", home / "tool" / "bin"):
        place.mkdir(parents=True)
        (place / "nvcc").touch()
    monkeypatch.setenv("HOME", str(home))
    assert installation(home / "tool" / "bin" / "nvcc") == [home / "tool"]
    assert installation(home / "bin" / "nvcc") == [home / "bin"]
    monkeypatch.setenv("LD_LIBRARY_PATH", f"{home}:{home / 'tool'}:relative:")
    shown = {step.path for step in plan(FileView(), tmp_path)}
    assert str(home / "tool") in shown
    assert str(home) not in shown


@every_root
def test_shipped_data_below_a_system_folder_is_hidden(level: Isolation, monkeypatch: pytest.MonkeyPatch) -> None:
    place = next(path for path in sorted(Path("/usr/share").iterdir()) if path.is_dir() and any(path.iterdir()))
    assert attempt(level, 'ls "$1"', place).output != ""
    monkeypatch.setattr(isolation, "data_dir", lambda: place)
    assert attempt(level, 'ls "$1"', place).output == ""


def _told_by(command: list[str], program: str) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*command, sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return [*done.stdout.splitlines(), *done.stderr.splitlines()]


@pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv to give up privileges")
@pytest.mark.skipif(REFUSED[Isolation.NAMESPACES] is not None, reason=f"no namespaces: {REFUSED[Isolation.NAMESPACES]}")
def test_fences_need_no_privileges() -> None:
    # Nobody may map root into a user namespace who could not give files capabilities.
    drop = ["setpriv", "--bounding-set=-all,+setfcap", "--inh-caps=-all"] if os.geteuid() == 0 else []
    program = (
        "from kernelblaster.sandbox.process import *\nfrom kernelblaster.sandbox.isolation import *\n"
        "print(trial(Isolation.NAMESPACES)); print(strongest().level)"
    )
    first, second = _told_by(drop, program)
    assert first == "None"
    assert second == strongest().level


@pytest.mark.skipif(not (shutil.which("setpriv") and shutil.which("unshare")), reason="needs setpriv and unshare")
@pytest.mark.skipif(REFUSED[Isolation.NAMESPACES] is not None, reason="needs a user namespace to forbid others in")
def test_what_a_system_forbids_is_found_out() -> None:
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces; exec setpriv --bounding-set=-all --inh-caps=-all "$@"'
    program = (
        "from kernelblaster.sandbox.process import strongest\n"
        "strongest(); found = strongest(); print(found.level, found.network); print(found.missing())"
    )
    found, missing, *warnings = _told_by(["unshare", "-Ur", "sh", "-c", forbid, "sh"], program)
    level, network = found.split()
    assert level == ("landlock" if REFUSED[Isolation.LANDLOCK] is None else "limits")
    assert network == "False"
    assert "bubblewrap: " in missing
    assert "namespaces: " in missing
    assert len(warnings) == (level == "limits")


def test_limits_alone_are_warned_of_once_and_loudly(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sandbox._try_levels.cache_clear()
    monkeypatch.setattr(sandbox, "trial", lambda level: f"no {level} here")
    assert strongest().level is Isolation.LIMITS
    assert (
        strongest().missing()
        == "bubblewrap: no bubblewrap here; namespaces: no namespaces here; landlock: no landlock here"
    )
    sandbox._try_levels.cache_clear()
    (warning,) = [record.message for record in caplog.records]
    assert "no bubblewrap here" in warning
    assert ISOLATION_HINT in warning


def test_the_strongest_level_can_be_chosen_and_a_misspelt_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox._try_levels.cache_clear()
    try:
        monkeypatch.setenv(STRONGEST_VARIABLE, "limits")
        assert strongest().level is Isolation.LIMITS
        sandbox._try_levels.cache_clear()
        monkeypatch.setenv(STRONGEST_VARIABLE, "none")
        with pytest.raises(UsageError, match="none"):
            strongest()
    finally:
        sandbox._try_levels.cache_clear()
