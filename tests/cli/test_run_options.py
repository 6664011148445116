"""Every option of `run` reaches what the run is given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cli_support import Done

from kernelblaster.cli import run
from kernelblaster.config import ModelKind
from kernelblaster.config.sources import load_config

Invoke = Callable[..., Done]
GIVEN: dict[str, tuple[object, ...]] = {
    "problem_numbers": ("1-3",), "start": (2,), "end": (7,), "subset": ("level2",),
    "tag": ("norm",), "split": ("heldout",), "problem_dir": ("own",), "problem": ("module.py",),
    "knowledge_base": ("kb.json",),
    "precision": ("bf16",), "device": ("emulated",), "gpu_type": ("h100",), "size": ("full",), "libraries": ("cublas",),
    "model": ("other",), "model_kind": ("batch_exchange",), "base_url": ("http://host/v1",),
    "recording": ("rec.jsonl",), "price": (1, 2), "model_concurrency": (3,), "model_timeout": (7,),
    "max_completion_tokens": (99,),
    "exchange": ("folder",), "wait": (), "rounds": (2,), "rollouts": (3,), "steps": (4,), "repairs": (5,),
    "patience": (6,), "seed": (7,), "policy": ("ucb",), "ablate": ("lessons",),
    "concurrency": (8,), "timeout": (9,), "max_minutes": (10,), "max_dollars": (11,),
    "max_tokens": (12,), "experiment": ("mine",), "out": ("elsewhere",), "dataset_dir": ("data",), "retry": (),
    "json_output": (), "resume": (), "config": ("own.toml",), "assignments": ("search.least_headroom=1.1",),
}  # fmt: skip
SPELLED = {"json_output": "--json", "resume": "--no-resume", "assignments": "--set"}
GROUPS = (
    *(run.ProblemOptions, run.MachineOptions, run.ModelOptions, run.ExchangeOptions),
    *(run.SearchOptions, run.BudgetOptions, run.PlaceOptions),
)


@dataclass(frozen=True)
class Asked:
    """What `run` asks of the library, and how it prints."""

    chosen: Any
    dataset: object
    how: dict[str, Any]
    as_json: bool


def requested(monkeypatch: pytest.MonkeyPatch) -> list[Asked]:
    """Requests of `run` from now on; nothing is loaded, searched or printed."""
    asked: list[Asked] = []
    chosen: list[tuple[object, object]] = []

    def optimize(problems: list[object], *, observer: Any, **how: Any) -> Any:
        named = chosen.pop() if chosen else (problems, None)
        asked.append(Asked(*named, how, as_json=False))
        return SimpleNamespace(exit_code=0)

    def many(subset: object, numbers: object, *, tags: Any, split: object, dataset: object) -> list[object]:
        marks = (tuple(tags), split) if tags or split else ()
        chosen.append(((subset, numbers, *marks), dataset))
        return []

    monkeypatch.setattr("kernelblaster.api.searching.optimize", optimize)
    monkeypatch.setattr("kernelblaster.api.problems.list_problems", many)
    monkeypatch.setattr("kernelblaster.api.problems.load_problem", lambda path: chosen.append((str(path), None)))
    monkeypatch.setattr("kernelblaster.cli.summary_table.print_summary", lambda console, summary: None)
    monkeypatch.setattr(
        "kernelblaster.cli.terminal.print_json", lambda summary: asked.append(replace(asked.pop(), as_json=True))
    )
    return asked


def test_the_list_above_has_every_option() -> None:
    assert GIVEN.keys() == {field.name for group in GROUPS for field in fields(group)}


@pytest.mark.parametrize("name", GIVEN)
def test_an_option_is_not_ignored(invoke: Invoke, clean: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    requests = requested(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    (clean / "rec.jsonl").write_text("")
    (clean / "own.toml").write_text("[evaluation]\nmemory_gb = 32\n")
    kind = ModelKind.BATCH_EXCHANGE if name in ("wait", "exchange") else ModelKind.OPENAI_API
    common = () if name == "model_kind" else ("--model-kind", kind)
    option = SPELLED.get(name, "--" + name.replace("_", "-"))
    for arguments in ((), (option, *GIVEN[name])):
        done = invoke("run", *common, *arguments)
        assert done.code == 0, done.err
    plain, given = requests
    assert given != plain


@pytest.mark.parametrize(
    ("arguments", "numbers", "subset"),
    [
        ((), "23", "level1"),
        (("--problem-numbers", "1-10,23"), "1-10,23", "level1"),
        (("--problem-numbers=1", "--subset=level2,level3"), "1", "level2,level3"),
        (("--subset", "level2"), None, "level2"),
        (("--start=3", "--end=9"), "3-9", "level1"),
        (("--end", "9", "--subset", "level2"), "1-9", "level2"),
        (("--start", "40"), "40-999999999", "level1"),
        (("--problem-numbers=1-9", "--split=train"), "1-9", "level1"),
        (("--tag=norm", "--tag=conv"), None, "any"),
        (("--split", "heldout"), None, "any"),
        (("--problem-dir", "own"), None, None),
    ],
)
def test_which_problems_are_chosen(
    invoke: Invoke, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], numbers: str | None, subset: str | None
) -> None:
    requests = requested(monkeypatch)
    assert invoke("run", *arguments).code == 0
    (request,) = requests
    if subset is None:
        assert request.chosen == "own"
    else:
        assert request.chosen[:2] == (None if subset == "any" else subset, numbers)


def test_libraries_are_a_set() -> None:
    def libraries(text: str) -> object:
        return load_config(options={"libraries": text}).config.libraries

    assert libraries("cudnn, cublas,cudnn") == libraries("CUBLAS,cudnn")
    assert libraries("none") == ()
