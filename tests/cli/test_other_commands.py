"""Help, listings, knowledge bases and the doctor."""

from __future__ import annotations

import json
import resource
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cli_support import Done, call
from typer.core import TyperGroup
from typer.main import get_command

from kernelblaster import load_problem
from kernelblaster.cli.app import COMMANDS as NAMES
from kernelblaster.cli.app import app
from kernelblaster.cli.selection import that_declare
from kernelblaster.errors import ExitCode
from kernelblaster.evaluation.timing.pytorch_times import PytorchTimes, shipped_times
from kernelblaster.knowledge.experience import stored_transitions
from kernelblaster.knowledge.store import seed_path
from kernelblaster.problems.reference import size_digest
from kernelblaster.storage.jsonl import append_line

Invoke = Callable[..., Done]
COMMANDS = [
    (), ("run",), ("evaluate",), ("baseline",), ("reprofile",), ("report",), ("answer",), ("doctor",), ("emulate",),
    ("config",), ("import",), ("export",), ("new",),
    ("problems",), ("problems", "list"), ("problems", "show"), ("problems", "audit"),
    ("problems", "check"), ("problems", "baseline"),
    ("kb",), ("kb", "show"), ("kb", "check"), ("kb", "render"), ("kb", "merge"), ("kb", "import"), ("kb", "diff"),
    ("kb", "learn"), ("kb", "remember"),
    ("env", "serve"), ("env", "list"), ("env", "show"), ("env", "try"), ("env", "eval"), ("env", "report"),
    ("train", "data"), ("train", "export"), ("train", "sft"), ("train", "frontend"), ("train", "midend"),
    ("train", "backend"), ("train", "eval"), ("train", "page"), ("train", "serve"), ("train", "tiny"),
    ("train", "compare"),
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help(invoke: Invoke, command: tuple[str, ...]) -> None:
    done = invoke(*command, "--help")
    assert done.code == ExitCode.OK
    assert "Usage: kernelblaster" in done.out
    assert invoke(*command, "-h").out == done.out


def test_all_commands_are_covered() -> None:
    root = get_command(app)
    context = root.make_context("kernelblaster", [], resilient_parsing=True)
    found = {(name, *below) for name in NAMES for below in _below(root.get_command(context, name))}
    assert found == {command for command in COMMANDS if command} - {("problems",), ("kb",)}


def _below(command: Any) -> list[tuple[str, ...]]:
    """Names of a group's commands; of a command that is none, nothing."""
    return [(name,) for name in command.commands] if isinstance(command, TyperGroup) else [()]


def test_help_is_quick_and_imports_nothing_heavy(tmp_path: Path) -> None:
    check = (
        "import sys; import kernelblaster.cli.app; "
        "print([m for m in ('torch', 'openai', 'langgraph', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"

    def helps() -> None:
        assert call(["run", "--help"], tmp_path).code == ExitCode.OK

    def counts() -> None:
        subprocess.run([sys.executable, "-c", "for i in range(3_000_000): i * i"], timeout=60, check=True)

    took, yardstick = (min(_cpu_seconds(work) for _ in range(3)) for work in (helps, counts))
    assert 0 < took < max(1.0, 5 * yardstick), "CPU time, which other processes hardly change and a slow machine does"


def _cpu_seconds(work: Callable[[], None]) -> float:
    """Of the processes that a piece of work starts."""
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime


def test_version(invoke: Invoke) -> None:
    assert invoke("--version").out.startswith("kernelblaster 0.")


def test_problems_are_listed_and_shown(invoke: Invoke) -> None:
    listed = invoke("problems", "list", "--subset", "level1", "--json")
    names = {row["problem"]: row["name"] for row in listed.json}
    assert names["level1/023"] == "Softmax"
    assert "Softmax" in invoke("problems", "list", "--problem-numbers=23").out
    shown = invoke("problems", "show", "23", "--size", "small", "--precision=bf16", "--json").json
    assert {tensor["name"]: tensor["dtype"] for tensor in shown["tensors"]} == {"x": "bf16", "output": "bf16"}
    for option in ("--size", "--workload"):
        assert "263 x 3001" in invoke("problems", "show", "level1/23", option, "small").out


def test_a_problem_whose_driver_judges_itself_is_listed_and_shown(invoke: Invoke, clean: Path) -> None:
    place = clean / "set" / "level1" / "019_ReLU"
    place.mkdir(parents=True)
    launcher = "void launch_gpu_implementation(void* output, void* input, int64_t n)"
    (place / "driver.cpp").write_text(f"#include <torch/torch.h>\n{launcher};\n")
    (place / "init.cu").write_text(f"{launcher} {{}}\n")
    listed = invoke("problems", "list", "--dataset-dir", "set")
    shown = invoke("problems", "show", "19", "--dataset-dir", "set")
    for done in (listed, shown):
        assert (done.code, done.err) == (ExitCode.OK, "")
        assert "(weakly verified)" in done.out
    assert launcher in shown.out
    facts = invoke("problems", "show", place, "--json").json
    assert (facts["weakly_verified"], facts["tensors"], facts["pytorch"]) == (True, [], [])
    assert invoke("problems", "show", place, "--size", "small").code == ExitCode.USAGE


def test_an_audit_of_a_size_is_of_the_problems_that_declare_it(invoke: Invoke) -> None:
    lacking, having = load_problem("level1/50"), load_problem("level1/23")
    assert "v0" not in lacking.workloads
    assert that_declare([lacking, having], "v0") == [having]
    assert that_declare([lacking, having], None) == [lacking, having]
    assert invoke("problems", "audit", str(lacking.id), "--size", "v0").code == ExitCode.USAGE


def test_all_sizes_are_shown_and_the_main_one_listed(invoke: Invoke) -> None:
    sizes = load_problem("level1/23").workloads
    shown, listed = invoke("problems", "show", "level1/23").out, invoke("problems", "list", "--problem-numbers=23").out
    assert all(f"{name}:" in shown for name in sizes)
    assert [name for name in sizes if f"{name}:" in listed] == ["full"]


def test_numbers_that_exist_are_told_as_ranges(invoke: Invoke) -> None:
    done = invoke("problems", "list", "--problem-numbers=9999")
    assert done.code == ExitCode.USAGE
    assert "level1: 1-100;" in done.err


def test_statistics_are_learned_from_experiments_alone(invoke: Invoke, clean: Path) -> None:
    run = clean / "experiment" / "model"
    run.mkdir(parents=True)
    for wrong in (clean / "missing", run):
        done = invoke("kb", "learn", clean / "learned.json", wrong)
        assert done.code == ExitCode.USAGE
        assert done.err.startswith("error: ")
    assert not (clean / "missing").exists()
    assert list(run.iterdir()) == []
    assert not (clean / "learned.json").exists()
    assert stored_transitions(run.parent).count() == 0
    assert str(run.parent) in invoke("kb", "learn", clean / "learned.json", run).err
    assert invoke("kb", "learn", clean / "learned.json", run.parent, "--json").json["rows"] == 0


def test_a_form_of_prompts_that_there_is_not_ends_in_a_line(invoke: Invoke, clean: Path) -> None:
    done = invoke("train", "data", clean / "training", "--form=odd")
    assert done.code == ExitCode.USAGE
    assert "'odd'" in done.err
    assert not (clean / "training").exists()


def test_a_new_problem_is_sound_and_shows_its_launcher(invoke: Invoke, clean: Path) -> None:
    made = invoke("new", clean / "fused")
    assert made.code == ExitCode.OK
    shown = invoke("problems", "show", clean / "fused", "--json").json
    assert shown["problem"] == shown["name"] == "fused"
    assert {tensor["name"] for tensor in shown["tensors"]} == {"x", "bias", "output"}
    assert "bias" in shown["launcher"]
    assert shown["launcher"] in invoke("problems", "show", clean / "fused").out
    assert invoke("problems", "audit", clean / "fused", "--precision=fp32", "--json").json == {"fused": []}
    assert invoke("new", clean / "fused").code == ExitCode.USAGE


def test_commands_that_follow_a_new_problem_can_be_pasted(invoke: Invoke, clean: Path) -> None:
    told = invoke("new", "a b/c d").out
    commands = [shlex.split(line, comments=True) for line in told.splitlines() if line.startswith("  kernelblaster ")]
    assert commands
    assert {command[-1] for command in commands} == {"a b/c d"}


def test_shipped_times_of_pytorch_are_listed_and_shown(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = load_problem("level1/23")
    time = {"us": 20.0, "low_us": 19.0, "high_us": 21.0, "samples": 40, "launch_us": 9.0}
    wall = {"wall_us": 60.0, "wall_low_us": 50.0, "wall_high_us": 70.0}
    settings = {
        "cuda": "13", "cudnn": 9, "triton": "3", "tf32_matmul": False, "tf32_cudnn": True,
        "fp16_reduced_precision_reduction": True,
    }  # fmt: skip
    row = PytorchTimes(
        problem=str(problem.id), name=problem.name, precision="fp16", workload="full", gpu="NVIDIA Test", driver="1",
        digest=size_digest(problem, "full"), torch="2", settings=settings, cover_us=1.0, conditions=None, floor_us=4.0,
        times={"eager": {**time, **wall, "us": 40.0}, "compile": {**time, **wall, "exposed": 30}}, seconds=1.0, at=0.0,
        failures={"reduce-overhead": "no such graph"}, attainable_us=5.0,
    )  # fmt: skip
    records = tmp_path / "baselines" / "test" / "times.jsonl"
    append_line(records, row.model_dump_json().encode())
    monkeypatch.setattr("kernelblaster.evaluation.timing.pytorch_times.data_dir", lambda: tmp_path)
    shipped_times.cache_clear()
    try:
        listed = invoke("problems", "list", "--problem-numbers=23", "--subset=level1")
        assert {"40.0", "eager", "(12%)"} <= set(listed.out.split()), "the time of the other mode is the host's"
        assert "40.0" not in invoke("problems", "list", "--problem-numbers=23", "--precision=fp32").out
        shown = invoke("problems", "show", "23", "--json").json
        assert shown["pytorch"][0]["times"]["eager"]["us"] == 40.0
        monkeypatch.setenv("COLUMNS", "220")
        told = invoke("problems", "show", "23").out
        assert "75% not hidden, host-bound" in told
        assert "TF32: products off, cuDNN on" in told
        monkeypatch.setenv("COLUMNS", "80")
        told = invoke("problems", "show", "23").out.split()
        assert "graph" in told
        assert any(word.startswith("reduce-") for word in told), "cut where the terminal is narrow"
        assert invoke("problems", "show", "23", "--size=small", "--json").json["pytorch"] == []
    finally:
        shipped_times.cache_clear()


@pytest.mark.parametrize(
    "command", [("problems", "baseline"), ("baseline",), ("problems", "audit"), ("problems", "list")]
)
def test_commands_choose_problems_alike(invoke: Invoke, command: tuple[str, ...]) -> None:
    nobody = invoke(*command, "--tag=recurrent", "--split=train")
    assert nobody.code == ExitCode.USAGE
    assert "recurrent" in nobody.err


def test_pytorch_is_timed_on_a_gpu_only(invoke: Invoke) -> None:
    assert invoke("problems", "baseline", "23").code == ExitCode.MACHINE
    assert invoke("problems", "baseline", "23", "--size=absent").code == ExitCode.USAGE


def test_problems_are_named_or_chosen_not_both(invoke: Invoke) -> None:
    assert invoke("problems", "audit", "23", "--subset=level1").code == ExitCode.USAGE
    assert invoke("problems", "check", "23", "--size=absent").code == ExitCode.USAGE


def test_check_goes_on_past_a_problem_without_a_start(invoke: Invoke, dataset: Path, clean: Path) -> None:
    shutil.copytree(dataset / "level1", clean / "level1")
    shutil.copytree(clean / "level1" / "023_Softmax", clean / "level1" / "007_Startless")
    (clean / "level1" / "007_Startless" / "init.cu").unlink()
    known = clean / "checks.jsonl"
    arguments = (
        "problems",
        "check",
        "--dataset-dir",
        clean,
        "--device=emulated",
        "--records",
        known,
        "--precision=fp32",
    )
    done = invoke(*arguments, "--jobs=1", "--json", "--minutes=0")
    assert done.code == ExitCode.FAILED
    assert "007 Startless" in done.err
    assert done.json == []
    alone = invoke("problems", "check", clean / "level1" / "007_Startless")
    assert alone.code == ExitCode.USAGE


def test_audit_fails_a_constant_problem(invoke: Invoke, dataset: Path, clean: Path) -> None:
    sound = invoke("problems", "audit", "--dataset-dir", dataset, "--json")
    assert sound.code == ExitCode.OK
    assert sound.json == {"level1/023": []}
    directory = clean / "level1" / "023_Softmax"
    directory.mkdir(parents=True)
    for path in (dataset / "level1" / "023_Softmax").iterdir():
        text = path.read_text().replace("torch.softmax(x, dim=1)", "torch.zeros_like(x)")
        (directory / path.name).write_text(text)
    unsound = invoke("problems", "audit", "--dataset-dir", clean)
    assert unsound.code == ExitCode.FAILED
    assert unsound.out == "level1/023: the reference output is zero\n"


def test_audit_names_a_reference_that_fails_and_goes_on(invoke: Invoke, dataset: Path, clean: Path) -> None:
    shutil.copytree(dataset / "level1", clean / "level1")
    shutil.copytree(dataset / "level1" / "023_Softmax", clean / "level1" / "007_Broken")
    broken = clean / "level1" / "007_Broken" / "reference.py"
    broken.write_text(broken.read_text().replace("torch.softmax(x, dim=1)", "x[None] @ missing"))
    audited = invoke("problems", "audit", "--dataset-dir", clean, "--precision", "fp16", "--json")
    assert audited.code == ExitCode.FAILED
    assert audited.json["level1/023"] == []
    (fault,) = audited.json["level1/007"]
    assert "NameError" in fault
    assert "\n" not in fault


def test_an_audit_goes_on_where_it_stopped(invoke: Invoke, dataset: Path, clean: Path, tmp_path: Path) -> None:
    shutil.copytree(dataset / "level1", clean / "level1")
    reference = clean / "level1" / "023_Softmax" / "reference.py"
    reference.write_text(reference.read_text().replace("torch.softmax(x, dim=1)", "torch.zeros_like(x)"))
    command = ("problems", "audit", "--dataset-dir", clean, "--precision=fp16", "--records", tmp_path / "audits.jsonl")
    first = invoke(*command).out
    assert "zero" in first
    (line,) = (tmp_path / "audits.jsonl").read_text().splitlines()
    (tmp_path / "audits.jsonl").write_text(line.replace("zero", "as recorded") + "\n" + line[:20])
    assert "as recorded" in invoke(*command).out
    reference.write_text(reference.read_text() + "\n")
    assert invoke(*command).out == first


def test_knowledge_bases_are_shown_checked_and_rendered(invoke: Invoke) -> None:
    assert len(invoke("kb", "show", "--json").json["states"]) >= 16
    assert "memory" in invoke("kb", "show").out
    assert invoke("kb", "check", "--json").json["states"] >= 16
    assert "sound" in invoke("kb", "check", seed_path()).out
    assert invoke("kb", "render").out.startswith("# ")


def test_merging_takes_statistics_over_once(invoke: Invoke, clean: Path) -> None:
    (clean / "mine.json").write_bytes(seed_path().read_bytes())
    (clean / "other.json").write_bytes(seed_path().read_bytes())
    assert invoke("kb", "merge", "mine.json", "other.json").code == ExitCode.OK
    again = invoke("kb", "merge", "mine.json", "other.json", "--json").json
    rows = len(json.loads(seed_path().read_bytes())["statistics"])
    assert (again["file"], again["rows"], again["changed"]) == ("mine.json", rows, False)
    assert invoke("kb", "check", "mine.json").code == ExitCode.OK
    missing = invoke("kb", "merge", "mine.json", "missing.json")
    assert missing.code == ExitCode.USAGE
    assert "missing.json" in missing.err


def test_what_was_learned_is_shown_and_compared(invoke: Invoke, clean: Path) -> None:
    known = json.loads(seed_path().read_bytes())
    state, entry = next(iter(known["states"].items()))
    place = {"arch": "sm_90", "device_kind": "cuda", "op_family": "matmul", "precision": "fp16"}
    cell = {"state": state, "technique": entry["techniques"][0], **place}
    known["statistics"] = [
        {"run": "a", "cell": cell, "sums": {"attempts": 3, "n": 3, "sum_log": 0.3, "sum_sq_log": 0.1}}
    ]
    known["lessons"].append({"id": "learned", "text": "Vectors of 16 bytes need aligned rows."})
    learned = clean / "measured.json"
    learned.write_text(json.dumps(known))
    shown = invoke("kb", "show", learned).out
    assert "sm_90" in shown
    assert "vectorized_memory_access" in shown
    found = invoke("kb", "diff", seed_path(), learned, "--json").json
    assert found["evidence"]
    assert all(found["texts"][name] for name in found["lessons"]["added"])
    told = invoke("kb", "diff", seed_path(), learned).out
    assert found["texts"][found["lessons"]["added"][0]] in told
    (clean / "learned.json").write_bytes(learned.read_bytes())
    merged = invoke("kb", "merge", "learned.json", learned, "--json").json
    assert not merged["changed"]


def test_checking_says_what_is_wrong(invoke: Invoke, clean: Path) -> None:
    document = json.loads(seed_path().read_bytes())
    document["states"][next(iter(document["states"]))]["group"] = "astrology"
    (clean / "kb.json").write_text(json.dumps(document))
    done = invoke("kb", "check", "kb.json")
    assert done.code == ExitCode.USAGE
    assert "kb.json" in done.err
    assert "group" in done.err
    assert [path.name for path in clean.iterdir()] == ["kb.json"]


def test_an_import_that_refuses_everything_answers_in_json(invoke: Invoke, clean: Path) -> None:
    (clean / "from" / "level1").mkdir(parents=True)
    (clean / "from" / "level1" / "1_Bad.py").write_text(
        "print('hello')\nclass Model: pass\ndef get_inputs():\n    return []\ndef get_init_inputs():\n    return []\n"
    )
    done = invoke("import", "from", "to", "--json")
    assert done.code == ExitCode.FAILED
    assert list(done.json["refused"]) == ["level1/001_Bad"]
    assert "hello" in done.err


def test_importing_something_else_is_refused(invoke: Invoke, clean: Path) -> None:
    (clean / "other.json").write_text('{"recipes": []}')
    done = invoke("kb", "import", "other.json", "mine.json")
    assert done.code == ExitCode.USAGE
    assert "other.json" in done.err
    assert not (clean / "mine.json").exists()


@pytest.mark.nvcc
def test_the_doctor_names_every_lack_with_its_hint(invoke: Invoke) -> None:
    probes = invoke("doctor", "--json").json
    assert {"nvcc", "GPU", "emulated device", "model", "disk"} <= {probe["name"] for probe in probes}
    assert all(probe["ok"] or (probe["costs"] and probe["hint"]) for probe in probes)
    done = invoke("doctor")
    assert done.code == ExitCode.OK
    assert "lack GPU" in done.out
    assert "OPENAI_API_KEY" in done.out


def test_the_doctor_without_nvcc(invoke: Invoke, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("kernelblaster.devices.build.toolchain.Toolchain.find", _no_toolchain)
    done = invoke("doctor")
    assert done.code == ExitCode.MACHINE
    assert "Traceback" not in done.err


def _no_toolchain() -> None:
    from kernelblaster.devices.build.toolchain import ToolMissing

    raise ToolMissing("nvcc was not found", hint="install it")


@pytest.mark.parametrize("given", ["--form=long", "--language=fortran"])
def test_data_to_train_on_is_refused_in_a_form_or_language_that_there_is_not(invoke: Invoke, given: str) -> None:
    done = invoke("train", "data", "never", given)
    assert done.code == ExitCode.USAGE
    assert given.partition("=")[2] in done.err
