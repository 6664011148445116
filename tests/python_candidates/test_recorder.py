"""What the recorder takes and refuses: honest candidates, and those that would not let their kernels do the work."""

from __future__ import annotations

from pathlib import Path

import pytest
import python_sources as sources
from recorder_support import Answers, request_for

from kernelblaster.devices.failures import BuildFailure
from kernelblaster.errors import MachineError
from kernelblaster.problems.problem import Precision
from kernelblaster.python_candidates import recording
from kernelblaster.python_candidates.plan import PlannedLaunch
from kernelblaster.python_candidates.recording import has_triton, interpreter_folders, record
from kernelblaster.sandbox.limits import CommandResult, ExceededLimit


def test_refused_for_what_they_do_and_not_for_how_they_look(answers: Answers) -> None:
    wanted = {name: kind for name, (kind, _) in sources.REFUSED.items()}
    found = answers.of({name: source for name, (_, source) in sources.REFUSED.items()}, request_for(Precision.FP16))
    refused = {name: answer.refusal.kind if answer.refusal else None for name, answer in found.items()}
    assert refused == wanted


def test_a_patched_clock_changes_no_recording(answers: Answers) -> None:
    found = answers.of({"honest": sources.HONEST, **sources.HARMLESS}, request_for(Precision.FP32))
    plans = {name: answer.recording and answer.recording.plans for name, answer in found.items()}
    assert plans["honest"]
    assert all(plan == plans["honest"] for plan in plans.values()), plans


def test_a_refusal_names_the_line_that_raised(answers: Answers) -> None:
    source = sources.REFUSED["an exception"][1]
    line = 1 + source.splitlines().index("        raise ValueError('of its own')")
    refusal = answers.of({"it": source}, request_for(Precision.FP16))["it"].refusal
    assert refusal is not None
    assert refusal.reason.startswith(f"candidate.py:{line}: ValueError")


def test_zeros_are_a_fill_and_autotuning_takes_the_first_configuration(answers: Answers) -> None:
    tuned = sources.candidate("return self.add(x, y, torch.zeros_like(x))").replace(
        "@triton.jit\n",
        "@triton.autotune([triton.Config({'BLOCK': 128}), triton.Config({'BLOCK': 64})], key=['n'])\n@triton.jit\n",
    )
    tuned = tuned.replace(", BLOCK=256", "")
    recording = answers.of({"it": tuned}, request_for(Precision.FP16))["it"].recording
    assert recording is not None
    assert recording.warnings
    fill, launch = recording.plans[0].steps
    assert (fill.step, fill.value, fill.bytes) == ("fill", 0, 2 * 3001)
    assert isinstance(launch, PlannedLaunch)
    assert launch.grid == (24, 1, 1)


def test_of_a_python_of_the_system_the_recorder_sees_the_library_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.base_prefix", "/usr")
    monkeypatch.setattr("sysconfig.get_path", lambda _: "/usr/lib")
    shown = set(interpreter_folders())
    assert Path("/usr/lib").resolve() in shown
    assert Path("/usr") not in shown


@pytest.mark.slow
@pytest.mark.skipif(not has_triton(), reason="needs Triton")
def test_the_recorder_sees_no_file_of_this_user_and_forges_nothing(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("s", encoding="utf-8")
    request = request_for(Precision.FP16)
    reads = sources.candidate("return self.add(x, y, torch.empty_like(x))", f"print(open({str(secret)!r}).read())")
    with pytest.raises(BuildFailure, match=r"FileNotFoundError|PermissionError"):
        record(reads, request)
    ends = (
        sources.HEAD + "open('answer.json', 'w').write('{\"recording\": {\"kernels\": []}}')\nimport os\nos._exit(0)\n"
    )
    with pytest.raises(BuildFailure):
        record(ends, request)


def test_a_recorder_that_cannot_start_is_the_machines_fault(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recording, "_PROGRAM", "import a_package_that_is_not_there  # {paths}")
    recording.require_sound_recorder.cache_clear()
    with pytest.raises(MachineError, match="a_package_that_is_not_there"):
        recording.require_sound_recorder()
    with recording.start_recorder(tmp_path) as process:
        outcome = process.wait(60)
    with pytest.raises(MachineError):
        recording.read_recording(tmp_path, outcome, 1)


@pytest.mark.skipif(not has_triton(), reason="needs Triton")
def test_a_recording_that_takes_too_long_says_for_how_long_and_at_what(tmp_path: Path) -> None:
    slow = CommandResult(code=-9, exceeded=ExceededLimit.TIME, output="compiling", output_bytes=9, seconds=300.0)
    with pytest.raises(BuildFailure, match=r"300 s, in which Triton compiles") as refused:
        recording.read_recording(tmp_path, slow, 1)
    assert refused.value.log == "compiling"


def test_a_recorder_has_a_users_name_without_a_list_of_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(recording, "_PROGRAM", "import getpass; print(getpass.getuser())  # {paths}")
    with recording.start_recorder(tmp_path) as process:
        assert process.wait(60).ok
