"""Kills, Ctrl-C and readers that leave: nothing is lost, repeated, left behind or complained about."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_support import BROKEN, ENDLESS, FASTER, WRONG, clean_environment, reply, start, write_recording

from kernelblaster.agent.events import Evaluated
from kernelblaster.errors import ExitCode
from kernelblaster.records.journal import read_events

pytestmark = [pytest.mark.nvcc, pytest.mark.usefixtures("nvcc")]

SEARCH = ("--steps", "1", "--device", "emulated")


def wait_for(process: subprocess.Popen[str], words: str, timeout_s: float = 120) -> str:
    """Read standard error until a line holds `words`."""
    read = ""
    deadline = time.monotonic() + timeout_s
    while words not in read:
        line = process.stderr.readline()
        assert line, f"ended without {words!r}: {read}"
        assert time.monotonic() < deadline
        read += line
    return read


@pytest.mark.slow
def test_a_run_survives_kills_at_any_moment(tmp_path: Path, dataset: Path) -> None:
    recording = write_recording(tmp_path / "rec.jsonl", BROKEN, WRONG, FASTER)
    arguments = ["run", "--recording", recording, "--dataset-dir", dataset, *SEARCH, "--rollouts", "2", "--json"]
    moments = random.Random(7)
    kills = 0
    while True:
        process = start(arguments, tmp_path)
        try:
            out, err = process.communicate(timeout=moments.uniform(1.0, 4.0) if kills < 8 else 120)
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            kills += 1
    assert kills > 0
    assert process.returncode == ExitCode.OK, err
    summary = json.loads(out)
    directory = tmp_path / summary["directory"]
    # No reply was asked for twice, no candidate judged twice, however often the run was killed.
    assert summary["problems"][0]["verdicts"] == {"compile_error": 2, "wrong_values": 2, "correct": 2}
    calls = [json.loads(line) for line in (directory / "ledger.jsonl").read_text().splitlines()]
    digests = [call["digest"] for call in calls if call["kind"] == "call"]
    assert len(digests) == len(set(digests)) == 6
    events = read_events(directory / "level1" / "023_Softmax" / "events.jsonl")
    judged = {(e.slot, e.candidate) for e in events if isinstance(e, Evaluated) and not e.reused}
    assert len(judged) == len({candidate for _, candidate in judged}) == 3


@pytest.mark.parametrize(
    "number",
    [signal.SIGINT, *(pytest.param(one, marks=pytest.mark.slow) for one in (signal.SIGTERM, signal.SIGHUP))],
)
def test_an_interrupted_run_ends_at_once_and_leaves_no_verdict(
    tmp_path: Path, dataset: Path, number: signal.Signals
) -> None:
    recording = write_recording(tmp_path / "rec.jsonl", ENDLESS)
    process = start(["run", "--recording", recording, "--dataset-dir", dataset, *SEARCH, "--rollouts", "1"], tmp_path)
    wait_for(process, "asked for")
    wait_for(process, "... running a kernel")
    began = time.monotonic()
    process.send_signal(number)
    _, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 20, "the kernel would run for a minute"
    assert process.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in err
    assert len(list(tmp_path.glob("out/**/evaluations/*.json"))) == 1  # of the start
    assert not list(Path("/dev/shm").glob(f"kernelblaster-inputs-{process.pid}-*"))


def test_an_interrupted_evaluation_of_a_model_ends_at_once(tmp_path: Path, dataset: Path) -> None:
    arguments = ["env", "eval", "L1_23", "--model-kind", "batch_exchange", "--dataset-dir", dataset]
    arguments += ["--device", "emulated", "--exchange", tmp_path, "--to", tmp_path]
    asked = start(arguments, tmp_path)
    asked.communicate(timeout=120)
    assert asked.returncode == ExitCode.WAITING
    request = json.loads((tmp_path / "requests-001.jsonl").read_text())
    choice = {"index": 0, "message": {"role": "assistant", "content": reply(ENDLESS)}}
    answer = {"status_code": 200, "body": {"model": "m", "choices": [choice]}}
    line = json.dumps({"custom_id": request["custom_id"], "response": answer})
    (tmp_path / "replies.jsonl").write_text(line + "\n")
    process = start(arguments, tmp_path)
    wait_for(process, "... running a kernel")
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 20, "the kernel would run for a minute"
    assert process.returncode == ExitCode.INTERRUPTED
    assert "Traceback" not in err


IMPORTING = """
import os, signal, sys

heard, module = sys.argv[1:]

class Interrupting:
    def find_spec(name, path, target=None):
        if name == module:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, getattr(signal, heard))
sys.meta_path.insert(0, Interrupting)
sys.argv[1:] = ["problems", "list"]
from kernelblaster.cli import main
main()
"""


@pytest.mark.parametrize("module", ["kernelblaster.cli.app", "typer"])
@pytest.mark.parametrize(("heard", "code"), [("default_int_handler", ExitCode.INTERRUPTED), ("SIG_IGN", ExitCode.OK)])
def test_an_interruption_while_the_command_line_is_imported_is_quiet(
    tmp_path: Path, module: str, heard: str, code: ExitCode
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, heard, module],
        cwd=tmp_path,
        env=clean_environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (code, "")


@pytest.mark.parametrize("command", ["problems list --json", "kb render", "--help"])
def test_a_reader_that_leaves_is_not_complained_to(tmp_path: Path, command: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "kernelblaster", *command.split()],
        cwd=tmp_path,
        env=clean_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(30) in (ExitCode.OK, ExitCode.FAILED)


def test_closed_standard_output(tmp_path: Path) -> None:
    shell = f'exec "{sys.executable}" -m kernelblaster problems list >&-'
    done = subprocess.run(
        ["bash", "-c", shell], cwd=tmp_path, env=clean_environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (ExitCode.OK, "")
