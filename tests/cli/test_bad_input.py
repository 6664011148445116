"""Whatever a person gets wrong is one line, a hint and the right exit code; never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import BROKEN, Done, write_recording

from kernelblaster.cli.errors import exit_code_of
from kernelblaster.errors import ExitCode
from kernelblaster.paths import cache_dir

Invoke = Callable[..., Done]


UNSHARED = ("unshare", "--user", "--map-root-user", "--mount")


def may_mount() -> bool:
    """Whether a user may mount something that nobody else sees."""
    if shutil.which("unshare") is None:
        return False
    tried = [*UNSHARED, "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(tried, capture_output=True, timeout=10).returncode == 0


def assert_one_line_and_hint(done: Done, code: ExitCode, *words: str) -> None:
    assert done.code == code, done.err
    assert "Traceback" not in done.err
    message, hint = [line for line in done.err.splitlines() if line.strip()][-2:]
    assert message.startswith("error: ")
    assert hint.strip().startswith("-> ")
    for word in words:
        assert word in f"{message}\n{hint}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--problem-numbers", "999"), ("999", "1-100")),
        (("--problem-numbers", "302-303"), ("302-303",)),
        (("--problem-numbers", "9-1"), ("empty", "1-9")),
        (("--problem-numbers", "one"), ("'one'", "N-M")),
        (("--problem-numbers=",), ("N, N-M",)),
        (("--subset", "level9"), ("level9", "level1")),
        (("--subset=simple",), ("simple", "level1")),
        (("--libraries", "cufft"), ("cufft", "cublas, cudnn, cutlass")),
        (("--device", "tpu"), ("tpu", "auto, cuda, emulated")),
        (("--gpu-type=voodoo",), ("voodoo", "h100")),
        (("--precision", "fp64"), ("fp64", "--help")),
        (("--model-kind", "oracle"), ("oracle", "recorded")),
        (("--max-minutes", "-1"), ("-1", "greater than 0")),
        (("--max-tokens=0",), ("0", "greater than 0")),
        (("--rollouts", "0"), ("--rollouts", "--help")),
        (("--rollouts", "100000000000"), ("--rollouts", "1000")),
        (("--timeout", "inf"), ("inf", "finite")),
        (("--max-minutes", "inf"), ("inf", "finite")),
        (("--model-timeout", "inf"), ("inf", "finite")),
        (("--price", "-1", "2"), ("--price", "-1")),
        (("--price", "1", "nan"), ("--price", "nan")),
        (("--no-such-option",), ("--no-such-option", "run --help")),
        (("stray",), ("stray", "run --help")),
        (("--recording", "missing.jsonl"), ("missing.jsonl", "--recording FILE")),
        (("--model-kind", "openai_api", "--recording", "rec.jsonl"), ("no API key", "OPENAI_API_KEY")),
        (("--problem-dir", "missing"), ("missing",)),
        (("--dataset-dir", "missing"), ("missing", "level1")),
        (("--problem-dir", ".", "--problem-numbers", "4"), ("--problem-dir", "--problem-numbers")),
        (("--problem-numbers", "4", "--start", "3"), ("--problem-numbers", "--start")),
        (("--start", "396"), ("396",)),
        (("--workload", "huge"), ("'huge'", "small, medium, full")),
        (("--start", "9", "--end", "2"), ("empty", "2-9")),
        (("--problem-dir", ".", "--end", "4"), ("--problem-dir", "--end")),
        (("--problem-dir", ".", "--dataset-dir", "."), ("--problem-dir", "--dataset-dir")),
        (("--wait",), ("--wait", "--model-kind batch_exchange")),
        (("--exchange", "folder"), ("--exchange", "--model-kind batch_exchange")),
        (("--model-kind", "openai_api", "--base-url", "http://host:port/v1"), ("base URL", "http://localhost:8000/v1")),
        (("--model-kind", "openai_api", "--base-url", "localhost:8000/v1"), ("base URL", "http://localhost:8000/v1")),
        (("--model-kind", "batch_exchange", "--base-url", "http://[::1/v1"), ("base URL", "http://localhost:8000/v1")),
    ],
)
def test_run_refuses_unusable_options(
    invoke: Invoke, clean: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    recording = () if any("--recording" in argument for argument in arguments) else ("--recording", "rec.jsonl")
    write_recording(clean / "rec.jsonl", BROKEN)
    assert_one_line_and_hint(invoke("run", *arguments, *recording), ExitCode.USAGE, *words)
    assert not (clean / "out").exists()


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("PRECISION", "foo", ("PRECISION=foo", "fp16")),
        ("GPU_TYPE", "voodoo", ("voodoo", "h100")),
        ("DATASET", "nope", ("nope",)),
    ],
)
def test_environment_values_are_checked(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: tuple[str, ...]
) -> None:
    monkeypatch.setenv(name, value)
    assert_one_line_and_hint(invoke("evaluate", "23", "init"), ExitCode.USAGE, *words)


def test_the_dotenv_file_is_checked(invoke: Invoke, clean: Path) -> None:
    (clean / ".env").write_text("PRECISION=fp12\n")
    assert_one_line_and_hint(invoke("problems", "list"), ExitCode.USAGE, "PRECISION=fp12", ".env")
    (clean / ".env").write_bytes(b"\xff\xfe\x00")
    assert_one_line_and_hint(invoke("problems", "list"), ExitCode.USAGE, ".env")


@pytest.mark.parametrize("command", [("evaluate", "23", "init"), ("run", "--recording", "rec.jsonl")])
def test_cuda_without_a_gpu_is_a_lack_of_the_machine(invoke: Invoke, clean: Path, command: tuple[str, ...]) -> None:
    write_recording(clean / "rec.jsonl", BROKEN)
    done = invoke(*command, "--device", "cuda")
    assert_one_line_and_hint(done, ExitCode.MACHINE, "no NVIDIA GPU", "emulated")


def test_baseline_needs_a_gpu(invoke: Invoke) -> None:
    done = invoke("baseline", "--problem-numbers", "23")
    assert_one_line_and_hint(done, ExitCode.MACHINE, "no NVIDIA GPU", "a machine that has one")
    assert "emulated" not in done.err
    assert_one_line_and_hint(invoke("baseline", "--root", "nowhere"), ExitCode.USAGE, "nowhere")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("level1/999", "init"), ("999",)),
        (("nonsense", "init"), ("nonsense",)),
        (("23", "missing.cu"), ("missing.cu", ".cu")),
        (("23", "."), ("directory",)),
        (("23", ""), (".cu",)),
        (("23", "binary.cu"), ("binary.cu", "UTF-8")),
        (("23", "init", "--baseline", "missing.cu"), ("missing.cu",)),
        (("23", "init", "--rival", "missing.cu"), ("missing.cu",)),
        (("23", "init", "--sessions", "0"), ("--sessions",)),
        (("23",), ("file", "evaluate --help")),
        (("empty", "init"), ("reference.py",)),
        (("23", "init", "--timeout", "0"), ("greater than 0",)),
        (("23", "init", "--timeout", "inf"), ("inf", "finite")),
        (("23", "init", "--sample", "inf"), ("inf", "finite")),
        (("23", "init", "--input-sets", "100000000"), ("--input-sets", "1000")),
    ],
)
def test_evaluate_refuses_what_it_cannot_read(
    invoke: Invoke, clean: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    (clean / "binary.cu").write_bytes(b"\xff\xfe\x80")
    (clean / "empty").mkdir()
    assert_one_line_and_hint(invoke("evaluate", *arguments), ExitCode.USAGE, *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--tag", "scan", "--subset", "level2"), ("scan", "level2")),
        (("19", "--size", "huge"), ("huge", "small, medium, full")),
        (("19", "--records", "."), ("directory", "JSON lines")),
        (("19", "--records", "bad.jsonl"), ("line 1", "bad.jsonl")),
        (("19", "--precision", "fp8"), ("'--precision': 'fp8'", "bf16")),
        (("--tag", "foo"), ("'--tag': 'foo'",)),
    ],
)
def test_audit_refuses_what_there_is_not(
    invoke: Invoke, clean: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    (clean / "bad.jsonl").write_text("{}\n")
    assert_one_line_and_hint(invoke("problems", "audit", *arguments), ExitCode.USAGE, *words)


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "huge.json"])
@pytest.mark.parametrize(
    "command",
    [
        ("kb", "check", "{}"),
        ("kb", "import", "{}", "mine.json"),
        ("run", "--knowledge-base", "{}"),
        ("run", "--recording", "{}"),
        ("evaluate", "23", "{}"),
    ],
    ids=lambda command: f"{command[0]} {command[1]}",
)
def test_what_has_no_end_is_not_read(invoke: Invoke, clean: Path, command: tuple[str, ...], name: str) -> None:
    os.mkfifo(clean / "pipe")
    with (clean / "huge.json").open("wb") as file:
        file.truncate(2**40)
    words = "MiB" if name == "huge.json" else "device, pipe"
    done = invoke(*(part.format(name) for part in command))
    assert_one_line_and_hint(done, ExitCode.USAGE, name, words)


@pytest.mark.parametrize("command", ["report", "reprofile"])
def test_a_file_in_place_of_a_run_is_refused(invoke: Invoke, clean: Path, command: str) -> None:
    (clean / "notes.txt").write_text("no run")
    assert_one_line_and_hint(invoke(command, "notes.txt"), ExitCode.USAGE, "notes.txt", "run.json")


@pytest.mark.parametrize(
    "command",
    [
        ("report", "a", "b", "--output", "slip/page.html"),
        ("train", "compare", "a", "--out", "slip/page.html"),
        ("train", "page", "slip/page.html", "a"),
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_a_page_is_not_written_where_no_directory_is(invoke: Invoke, clean: Path, command: tuple[str, ...]) -> None:
    assert_one_line_and_hint(invoke(*command), ExitCode.USAGE, "slip/page.html", "mkdir")
    assert not (clean / "slip").exists()


def test_a_directory_that_is_no_run_is_refused(invoke: Invoke, clean: Path) -> None:
    assert_one_line_and_hint(invoke("report", clean), ExitCode.USAGE, "run.json")
    assert_one_line_and_hint(invoke("reprofile", clean), ExitCode.USAGE, "run.json")
    for name, command in (("run.json", "report"), ("run.json", "reprofile")):
        (clean / name).write_text('{"format": "something else"}')
        assert_one_line_and_hint(invoke(command, clean), ExitCode.USAGE, name, "damaged")


def test_unknown_commands_and_folders_are_refused(invoke: Invoke, clean: Path) -> None:
    assert_one_line_and_hint(invoke("optimise"), ExitCode.USAGE, "optimise", "--help")
    assert_one_line_and_hint(invoke("answer", "missing"), ExitCode.USAGE, "missing")
    assert_one_line_and_hint(invoke("answer", clean), ExitCode.USAGE, "requests-*.jsonl", "--watch")
    asked = clean / "run" / "exchange" / "requests-001.jsonl"
    asked.parent.mkdir(parents=True)
    asked.touch()
    assert_one_line_and_hint(invoke("answer", clean / "run"), ExitCode.USAGE, "run holds no", str(asked.parent))
    assert_one_line_and_hint(invoke("answer", asked.parent), ExitCode.USAGE, "no API key")


def test_no_command_shows_the_help(invoke: Invoke) -> None:
    done = invoke()
    assert done.code == ExitCode.USAGE
    assert "evaluate" in done.out + done.err


def test_system_errors_name_the_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    missing = tmp_path / "nowhere" / "file"

    def write() -> None:
        missing.write_text("")

    code = exit_code_of(write)
    assert_one_line_and_hint(Done(code, "", capsys.readouterr().err), ExitCode.MACHINE, str(missing))


def test_a_full_disk_says_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")

    def fill() -> None:
        with open("/dev/full", "w") as file:
            file.write("x")

    code = exit_code_of(fill)
    done = Done(code, "", capsys.readouterr().err)
    assert_one_line_and_hint(done, ExitCode.MACHINE, os.strerror(28), "make room")


def test_a_bug_keeps_its_traceback() -> None:
    def bug() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        exit_code_of(bug)


@pytest.mark.parametrize(
    "command",
    ["run --problem-dir DIR", "run --dataset-dir SET", "evaluate DIR init --device emulated", "evaluate DIR init"],
)
def test_a_directory_whose_driver_judges_itself(
    invoke: Invoke, clean: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    self_checking = clean / "set" / "level1" / "023_Softmax"
    self_checking.mkdir(parents=True)
    (self_checking / "driver.cpp").write_text(
        "#include <torch/torch.h>\nvoid launch_gpu_implementation(void* output, void* input, int64_t n);\n"
    )
    (self_checking / "init.cu").write_text("void launch_gpu_implementation(void* output, void* input, int64_t n) {}\n")
    for name in ("runs.optimize", "runs.evaluations"):
        monkeypatch.setattr(f"kernelblaster.{name}.choose_device", lambda *_: pytest.fail("a device was chosen"))
    places = {"DIR": self_checking, "SET": clean / "set"}
    done = invoke(*(places.get(word, word) for word in command.split()))
    assert_one_line_and_hint(done, ExitCode.USAGE, "023_Softmax", "judges itself", "reference.py")
    assert not (clean / "out").exists()


@pytest.mark.parametrize("where", [("--out", "/proc/nothing"), ("--experiment", "x" * 300)])
def test_a_place_that_cannot_be_made(invoke: Invoke, clean: Path, where: tuple[str, str]) -> None:
    write_recording(clean / "rec.jsonl", BROKEN)
    done = invoke("run", "--device", "emulated", "--recording", "rec.jsonl", *where)
    assert_one_line_and_hint(done, ExitCode.MACHINE)
    assert "doctor" not in done.err


def test_a_machine_without_a_place_for_caches(invoke: Invoke, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELBLASTER_CACHE", raising=False)
    (clean / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(clean / "file"))
    done = Done(exit_code_of(cache_dir), "", "")
    assert done.code == ExitCode.MACHINE
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", lambda _: {}["nobody"])
    assert exit_code_of(cache_dir) == ExitCode.MACHINE
    assert not (clean / "kernelblaster").exists()


@pytest.mark.skipif(not may_mount(), reason="mounting in a namespace of one's own is not allowed here")
def test_a_cache_from_which_no_program_may_run(clean: Path) -> None:
    """Docker mounts a container's tmpfs so unless told otherwise."""
    ask = f"'{sys.executable}' -m kernelblaster evaluate level1/023 kernel.cu"
    (clean / "kernel.cu").write_text("")
    env = os.environ | {"KERNELBLASTER_CACHE": str(clean / "cache")}
    (clean / "cache").mkdir()
    shell = [*UNSHARED, "sh", "-c", f"mount -t tmpfs -o noexec none '{clean}/cache' && exec {ask}"]
    done = subprocess.run(shell, env=env, cwd=clean, capture_output=True, text=True, timeout=60)
    assert_one_line_and_hint(Done(done.returncode, done.stdout, done.stderr), ExitCode.MACHINE, "noexec")


@pytest.mark.parametrize("name", ["adir.py", "adir"])
def test_a_directory_in_place_of_a_file_is_called_one(invoke: Invoke, clean: Path, name: str) -> None:
    (clean / name).mkdir()
    done = invoke("run", "--problem", name)
    assert_one_line_and_hint(done, ExitCode.USAGE, f"{name} is a directory", "--problem-dir")


@pytest.mark.parametrize("level", ["level2", "level3"])
def test_a_number_of_another_level_is_told_with_that_level(
    invoke: Invoke, dataset: Path, clean: Path, level: str
) -> None:
    for place in ("level1/023_Softmax", f"{level}/066_Other"):
        shutil.copytree(dataset / "level1" / "023_Softmax", clean / place)
    numbers = ("--dataset-dir", clean, "--problem-numbers", "23,66")
    assert_one_line_and_hint(invoke("run", *numbers), ExitCode.USAGE, "66", f"--subset {level}")
    refused = invoke("problems", "audit", "--subset", "level1", *numbers)
    assert_one_line_and_hint(refused, ExitCode.USAGE, "66", f"--subset {level}")
    assert invoke("problems", "list", "--subset", f"level1,{level}", *numbers).code == ExitCode.OK
    nowhere = invoke("run", "--dataset-dir", clean, "--problem-numbers", "67")
    assert_one_line_and_hint(nowhere, ExitCode.USAGE, "67")
    assert "--subset" not in nowhere.err


def test_an_audit_for_which_there_is_no_memory(
    invoke: Invoke, dataset: Path, clean: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    done = invoke("problems", "audit", "--dataset-dir", dataset, "--size", "medium", "--precision", "fp32")
    assert done.code == ExitCode.OK, done.err
    monkeypatch.setattr("kernelblaster.runs.references.free_host_memory", lambda: 1 << 20)
    refused = invoke("problems", "audit", "--dataset-dir", dataset, "--size", "medium")
    assert_one_line_and_hint(refused, ExitCode.MACHINE, "023_Softmax", "medium", "GB", "GPU")


@pytest.mark.parametrize("text", ["{", '{"inrt": {}}'])
def test_damaged_notes_of_a_problem_are_in_the_way_of_nobody_who_does_not_need_them(
    invoke: Invoke, dataset: Path, clean: Path, text: str
) -> None:
    shutil.copytree(dataset / "level1", clean / "level1")
    shutil.copytree(dataset / "level1" / "023_Softmax", clean / "level1" / "024_Other")
    (clean / "level1" / "024_Other" / "notes.json").write_text(text)
    assert "level1/024" in invoke("problems", "list", "--dataset-dir", clean).out
    listed = invoke("problems", "list", "--dataset-dir", clean, "--json")
    assert listed.code == ExitCode.OK
    assert [(one["problem"], one["mends"] is None) for one in listed.json] == [
        ("level1/023", False),
        ("level1/024", True),
    ]
    assert str(Path("024_Other", "notes.json")) in listed.err
    for command in ("show", "audit"):
        done = invoke("problems", command, "24", "--dataset-dir", clean)
        assert_one_line_and_hint(done, ExitCode.USAGE, str(Path("024_Other", "notes.json")))


INTERRUPTING = """
class Descriptor:
    def __set_name__(self, owner, name):
        raise KeyboardInterrupt

class Holder:
    held = Descriptor()
"""


def test_an_interruption_that_python_tells_as_another_error_is_one() -> None:
    assert exit_code_of(lambda: exec(INTERRUPTING, {})) == ExitCode.INTERRUPTED


@pytest.mark.parametrize("command", ["import", "run"])
def test_an_interruption_is_no_fault_of_the_module_that_is_read(invoke: Invoke, tmp_path: Path, command: str) -> None:
    module = tmp_path / "checkout" / "level1" / "1_One.py"
    module.parent.mkdir(parents=True)
    module.write_text(
        f"{INTERRUPTING}\nclass Model: pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"
    )
    arguments = {
        "import": ["import", str(tmp_path / "checkout"), str(tmp_path / "made")],
        "run": ["run", "--problem", str(module), "--device", "emulated", "--out", str(tmp_path / "out")],
    }
    assert invoke(*arguments[command]).code == ExitCode.INTERRUPTED


WHOLE = """
import sys
from kernelblaster.problems.interchange.kernelbench.whole_torch import import_torch
try:
    import_torch()
except KeyboardInterrupt:
    print(sys.modules["torch"].WHOLE)
"""


def test_an_interruption_while_torch_is_imported_waits_for_its_end(tmp_path: Path) -> None:
    text = (
        "import os, signal\ntry:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept BaseException:\n    pass\nWHOLE = 7\n"
    )
    (tmp_path / "torch.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "-c", WHOLE],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])},
        timeout=60,
    )
    assert done.stdout.strip() == "7", done.stderr
