"""`run` from a recording on the emulated device, end to end: what it prints, leaves behind and exits with."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import BROKEN, FASTER, WRONG, Done, add_without_small, call, write_recording
from filelock import FileLock

from kernelblaster.agent.events import Evaluated, Event
from kernelblaster.api.runs import read_run
from kernelblaster.errors import ExitCode
from kernelblaster.knowledge.experience import stored_transitions
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.records.journal import read_events

pytestmark = [pytest.mark.nvcc, pytest.mark.usefixtures("nvcc")]

Invoke = Callable[..., Done]
SEARCH = ("--rollouts", "1", "--steps", "1", "--device", "emulated")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, dataset: Path) -> tuple[Path, list[object], Done]:
    """A run that found something: its working directory, its arguments, and how it ended."""
    root = tmp_path_factory.mktemp("finished")
    recording = write_recording(root / "rec.jsonl", BROKEN, WRONG, FASTER)
    arguments = ["run", "--recording", recording, "--dataset-dir", dataset, *SEARCH]
    return root, arguments, call(arguments, root)


def run_directory(root: Path) -> Path:
    return root / "out" / "kernelbench-cuda" / "fp16" / "timing_analysis" / "recorded"


def journal(root: Path) -> list[Event]:
    return read_events(run_directory(root) / "level1" / "023_Softmax" / "events.jsonl")


def test_a_run_that_improves(finished: tuple[Path, list[object], Done]) -> None:
    root, _, done = finished
    assert done.code == ExitCode.OK, done.err
    assert "Traceback" not in done.err
    row = next(line for line in done.out.splitlines() if line.startswith("level1/023 Softmax"))
    assert re.search(r"improved +[\d.]+ +[\d.]+ +1\.\d\dx +[\d.]+$", row)
    assert "modelled" in done.out
    summary = json.loads((run_directory(root) / "summary.json").read_text())
    assert summary["problems"][0]["verdicts"] == {"compile_error": 1, "wrong_values": 1, "correct": 1}
    final = run_directory(root) / "level1" / "023_Softmax" / "final_rl_cuda_perf.cu"
    assert FASTER in final.read_text()
    assert str(final.relative_to(root)) in done.out


def test_its_settings_are_recorded_with_their_origins(finished: tuple[Path, list[object], Done]) -> None:
    root, _, _ = finished
    recorded = json.loads((run_directory(root) / "run.json").read_text())
    assert recorded["config"]["search"]["rollouts"] == 1
    assert recorded["origins"]["search.rollouts"] == "option --rollouts"
    assert recorded["origins"]["search.least_headroom"] == "default"
    assert "api_key" not in recorded["config"]["model"]


def test_it_tells_what_happens_in_plain_lines(finished: tuple[Path, list[object], Done]) -> None:
    _, _, done = finished
    assert "\x1b" not in done.out + done.err
    for words in ("start: correct", "compile_error: ", "wrong_values: ", "faster", "accepted ", "improved: "):
        assert words in done.err
    times = [line for line in done.err.splitlines() if re.search(r"\d us|\d\.\d\dx", line) and "final:" not in line]
    assert times
    assert all("modelled" in line for line in times)


def test_the_knowledge_base_learned(finished: tuple[Path, list[object], Done]) -> None:
    root, _, _ = finished
    base = KnowledgeStore(run_directory(root).parent / "optimization_database.json").load()
    shipped = KnowledgeStore(seed_path(), owned=False).load().document.statistics
    rows = [row for row in base.document.statistics if row not in shipped]
    assert sum(row.sums.attempts for row in rows) >= 1
    assert {row.cell.device_kind for row in rows} == {"emulated"}
    # All who replay this recording count it once.
    (run,) = {row.run for row in rows}
    assert run.startswith("recording-")
    # What a message about a damaged file refers to, and what people read.
    experiment = run_directory(root).parent
    (snapshot,) = (experiment / "snapshots").glob("*.json")
    assert KnowledgeStore(snapshot).load().document == base.document
    assert "Device kind: emulated" in (experiment / "optimization_database.md").read_text()


def test_the_library_reads_what_it_left(finished: tuple[Path, list[object], Done]) -> None:
    root, _, _ = finished
    (search,) = read_run(run_directory(root)).searches
    assert search.outcome is not None
    assert [step.candidate_sha256 for step in search.transitions] == [search.outcome.final_sha256]
    assert search.final_kernel is not None
    assert FASTER in search.final_kernel


def test_a_second_start_returns_at_once(
    invoke: Invoke, finished: tuple[Path, list[object], Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, arguments, first = finished
    monkeypatch.chdir(root)
    ledger = run_directory(root) / "ledger.jsonl"
    before = journal(root), ledger.read_text().count('"call"')
    seconds = json.loads((run_directory(root) / "summary.json").read_text())["seconds"]
    again = invoke(*arguments, "--json")
    assert again.code == first.code
    assert (journal(root), ledger.read_text().count('"call"')) == before
    assert again.json["problems"][0]["status"] == "improved"
    assert again.json["seconds"] < seconds / 2


def test_the_report_needs_nothing_from_outside(finished: tuple[Path, list[object], Done]) -> None:
    root, _, _ = finished
    html = (run_directory(root) / "report.html").read_text()
    assert not re.search(r"<(script|link|img|iframe)[^>]*\b(src|href)=", html)
    assert "modelled" in html
    assert "compile_error" in html
    assert "softmax_cached" in html


def test_a_moved_run_is_reported_and_reprofiled(
    invoke: Invoke, finished: tuple[Path, list[object], Done], dataset: Path, tmp_path: Path
) -> None:
    root, _, _ = finished
    moved = tmp_path / "moved"
    shutil.copytree(run_directory(root).parent, moved)
    (moved / "recorded" / "report.html").unlink()
    done = invoke("report", moved / "recorded")
    assert done.code == ExitCode.OK, done.err
    html = (moved / "recorded" / "report.html").read_text()
    assert "compile_error" in html
    assert "softmax_cached" in html
    done = invoke("reprofile", moved / "recorded", "--dataset-dir", dataset, "--device=emulated", "--json")
    assert done.code == ExitCode.OK, done.err
    assert done.json[0]["comparison"]["decision"] == "faster"
    # Without --dataset-dir it is the problem that was searched, not the shipped one of that number.
    done = invoke("reprofile", moved / "recorded", "--device=emulated", "--json")
    assert done.code == ExitCode.OK, done.err
    assert done.json[0]["comparison"]["decision"] == "faster"


def test_results_of_another_device_are_not_mixed_in(
    invoke: Invoke, finished: tuple[Path, list[object], Done], tmp_path: Path
) -> None:
    root, arguments, _ = finished
    shutil.copytree(root / "out", tmp_path / "out")
    refused = invoke(*arguments, "--gpu-type", "h100")
    assert refused.code == ExitCode.USAGE
    assert "H200" in refused.err
    assert "--no-resume" in refused.err
    done = invoke(*arguments, "--gpu-type", "h100", "--no-resume", "--json")
    assert done.json["device"]["name"].startswith("NVIDIA H100")
    aside = list(run_directory(tmp_path).glob("level1/023_Softmax.before-*"))
    assert len(aside) == 1
    assert (aside[0] / "final_rl_cuda_perf.cu").exists()


def test_a_changed_copy_of_a_problem_is_another_problem(
    invoke: Invoke, finished: tuple[Path, list[object], Done], dataset: Path, tmp_path: Path
) -> None:
    root, arguments, _ = finished
    shutil.copytree(root / "out", tmp_path / "out")
    copy = tmp_path / "own" / "level1" / "023_Softmax"
    shutil.copytree(dataset / "level1" / "023_Softmax", copy)
    own = ["--problem-dir" if item == "--dataset-dir" else copy if item == dataset else item for item in arguments]
    same = invoke(*own)
    assert same.code == ExitCode.OK, same.err
    assert journal(tmp_path) == journal(root)
    reference = copy / "reference.py"
    reference.write_text(reference.read_text().replace("torch.softmax(x", "torch.softmax(-x"))
    refused = invoke(*own)
    assert refused.code == ExitCode.USAGE
    assert "another reference.py" in refused.err
    assert "--no-resume" in refused.err


def test_no_improvement_is_said_so(invoke: Invoke, clean: Path, dataset: Path) -> None:
    recording = write_recording(clean / "rec.jsonl", BROKEN, WRONG)
    search = ("run", "--recording", recording, "--dataset-dir", dataset, *SEARCH, "--repairs=1")
    done = invoke(*search)
    assert done.code == ExitCode.NO_IMPROVEMENT, done.err
    assert not list(clean.glob("**/final_rl_cuda_perf.cu"))
    # A retry searches anew; what the recording answers again is no new evidence.
    again = invoke(*search, "--retry", "--json")
    assert again.code == ExitCode.NO_IMPROVEMENT
    base = clean / again.json["knowledge_base"]
    learned = [row for row in KnowledgeStore(base).load().document.statistics if row.cell.device_kind == "emulated"]
    assert sum(row.sums.attempts for row in learned) == 1
    assert stored_transitions(base.parent).count() == 2


def test_token_cap_stops_and_a_higher_one_continues(invoke: Invoke, clean: Path, dataset: Path) -> None:
    recording = write_recording(clean / "rec.jsonl", BROKEN, FASTER)
    search = ("run", "--recording", recording, "--dataset-dir", dataset, *SEARCH)
    capped = invoke(*search, "--max-tokens", "1500")
    assert capped.code == ExitCode.BUDGET, capped.err
    done = invoke(*search, "--json")
    assert done.code == ExitCode.OK, done.err
    judged = [event for event in journal(clean) if isinstance(event, Evaluated) and not event.reused]
    assert len(judged) == len({event.candidate for event in judged}) == 2


def test_minutes_are_capped(invoke: Invoke, clean: Path, dataset: Path) -> None:
    recording = write_recording(clean / "rec.jsonl", FASTER)
    done = invoke("run", "--recording", recording, "--dataset-dir", dataset, *SEARCH, "--max-minutes", "0.001")
    assert done.code == ExitCode.BUDGET, done.err


def test_a_locked_run_is_left_alone(invoke: Invoke, clean: Path, dataset: Path) -> None:
    recording = write_recording(clean / "rec.jsonl", FASTER)
    run_directory(clean).mkdir(parents=True)
    with FileLock(run_directory(clean) / ".lock"):
        done = invoke("run", "--recording", recording, "--dataset-dir", dataset, *SEARCH)
    assert done.code == ExitCode.USAGE
    assert "another process" in done.err


def test_an_unwritable_place_is_a_lack_of_the_machine(invoke: Invoke, clean: Path, dataset: Path) -> None:
    recording = write_recording(clean / "rec.jsonl", FASTER)
    (clean / "file").write_text("")
    done = invoke("run", "--recording", recording, "--dataset-dir", dataset, *SEARCH, "--out", clean / "file" / "out")
    assert done.code == ExitCode.MACHINE
    assert done.err.count("error: ") == 1
    assert "Traceback" not in done.err


def test_a_damaged_knowledge_base_is_kept(invoke: Invoke, clean: Path, dataset: Path) -> None:
    recording = write_recording(clean / "rec.jsonl", FASTER)
    base = run_directory(clean).parent / "optimization_database.json"
    base.parent.mkdir(parents=True)
    base.write_text('{"format": "kernelblaster-')
    done = invoke("run", "--recording", recording, "--dataset-dir", dataset, *SEARCH)
    assert done.code == ExitCode.USAGE
    assert "damaged" in done.err
    assert base.read_text() == '{"format": "kernelblaster-'
    assert len(list(base.parent.glob("*.damaged-*"))) == 1
    given = invoke(
        "run",
        "--recording",
        recording,
        "--dataset-dir",
        dataset,
        *SEARCH,
        "--experiment",
        "b",
        "--knowledge-base",
        base,
    )
    assert given.code == ExitCode.USAGE
    assert base.read_text() == '{"format": "kernelblaster-'


def test_a_damaged_recording_is_named(invoke: Invoke, clean: Path, dataset: Path) -> None:
    (clean / "rec.jsonl").write_text("{}\n")
    done = invoke("run", "--recording", "rec.jsonl", "--dataset-dir", dataset, *SEARCH)
    assert done.code == ExitCode.USAGE
    assert "line 1" in done.err


def test_a_problem_that_no_prompt_can_tell_of_is_refused_at_once(invoke: Invoke, clean: Path, dataset: Path) -> None:
    copy = clean / "own"
    shutil.copytree(dataset / "level1" / "023_Softmax", copy)
    harness = copy / "driver.cpp"
    hidden = "#define LAUNCHER launch_gpu_implementation\nvoid LAUNCHER("
    harness.write_text(harness.read_text().replace("void launch_gpu_implementation(", hidden, 1))
    recording = write_recording(clean / "rec.jsonl", FASTER)
    done = invoke("run", "--recording", recording, "--problem-dir", copy, *SEARCH)
    assert done.code == ExitCode.USAGE
    assert "launch_gpu_implementation" in done.err
    assert not (clean / "out").exists()


def test_the_run_record_holds_no_key(finished: tuple[Path, list[object], Done]) -> None:
    root, _, _ = finished
    record = json.loads((run_directory(root) / "run.json").read_text())
    assert "api_key" not in record["config"]["model"]
    assert record["workload"] == "small"


def test_problems_that_share_no_size_are_searched_together(invoke: Invoke, clean: Path, dataset: Path) -> None:
    add_without_small(dataset, clean)
    recording = write_recording(clean / "rec.jsonl", FASTER)
    done = invoke("run", "--recording", recording, "--dataset-dir", clean, "--subset=level1", *SEARCH, "--json")
    assert {row["problem"]: row["workload"] for row in done.json["problems"]} == {
        "level1/023": "small",
        "level1/024": "full",
    }, done.err
