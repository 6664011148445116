"""`kernelblaster env` as a person types it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fake_judge import FakeJudge, kernel
from typer.testing import CliRunner

from kernelblaster.api import environments, model_evaluation
from kernelblaster.cli.app import app
from kernelblaster.environment.catalogue import Catalogue, problem_identifier
from kernelblaster.environment.episode import EnvironmentSettings, KernelEnvironments
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.errors import ExitCode, UsageError
from kernelblaster.evaluation.results import Verdict


def invoke(*arguments: str) -> list[str]:
    return (
        CliRunner().invoke(app, ["env", *arguments], catch_exceptions=False, standalone_mode=False).stdout.splitlines()
    )


def test_the_list_holds_each_problem_of_a_split_by_its_name(catalogue: Catalogue) -> None:
    names = [line.split()[0] for line in invoke("list", "--split", "heldout")]
    assert names == [problem_identifier(problem) for problem in catalogue.tasks("heldout")]


@pytest.mark.parametrize(
    "arguments",
    [
        ("list", "--split", "nine"),
        ("try", "L1_23", "missing.cu"),
        ("eval", "L1_23", "--language", "ptx"),
        ("report", "missing.jsonl"),
    ],
)
def test_what_is_not_there_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        invoke(*arguments)


def test_a_model_is_scored_once_its_replies_are_there(
    catalogue: Catalogue, judge: FakeJudge, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def opened(*_: object, **__: object) -> Iterator[KernelEnvironments]:
        yield KernelEnvironments(catalogue, SharedJudge(judge), EnvironmentSettings())

    monkeypatch.setattr(model_evaluation, "open_environment", opened)
    asked = ["L1_23", "--samples", "2", "--to", str(tmp_path), "--model-kind", "batch_exchange", "--json"]

    def evaluated() -> tuple[int, dict[str, object]]:
        found = CliRunner().invoke(app, ["env", "eval", *asked], catch_exceptions=False, standalone_mode=False)
        return found.return_value, json.loads(found.stdout)

    code, waiting = evaluated()
    assert (code, waiting["pending"], waiting["overall"]["episodes"]) == (ExitCode.WAITING, 2, 0)
    requests = (tmp_path / "exchange" / "requests-001.jsonl").read_text().splitlines()
    with (tmp_path / "exchange" / "replies.jsonl").open("w") as file:
        for request, verdict in zip(requests, (Verdict.CORRECT, Verdict.WRONG_VALUES), strict=True):
            choice = {"index": 0, "message": {"role": "assistant", "content": kernel(verdict)}}
            response = {"status_code": 200, "body": {"model": "m", "choices": [choice]}}
            file.write(json.dumps({"custom_id": json.loads(request)["custom_id"], "response": response}) + "\n")
    code, done = evaluated()
    assert (code, done["pending"]) == (ExitCode.OK, 0)
    assert done["overall"]["pass_at"] == {"1": 0.5, "2": 1.0}
    (kept,) = json.loads("\n".join(invoke("report", str(tmp_path), "--json")))
    assert (kept["overall"], kept["levels"]) == (done["overall"], done["levels"])


def test_without_a_model_nothing_is_evaluated_and_no_device_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(model_evaluation, "open_environment", lambda *_, **__: pytest.fail("a device was opened"))
    with pytest.raises(UsageError, match="no model to evaluate") as refused:
        invoke("eval", "L1_23", "--to", str(tmp_path))
    assert "batch_exchange" in (refused.value.hint or "")


@pytest.mark.parametrize(("language", "episodes"), [("cuda", 20), ("triton", 10)])
@pytest.mark.parametrize("turns", [("--turns", "1"), ()])
def test_the_tables_of_the_evaluation_on_a_gpu_are_what_its_turns_say(
    language: str, episodes: int, turns: tuple[str, ...]
) -> None:
    kept = Path(__file__).parents[2] / "docs/results/environment_eval/h200"
    told = invoke("report", str(kept / f"turns/{language}.jsonl"), *turns, "--markdown")
    assert f"{episodes} of {episodes} episodes are over" in told[0]
    table = [line for line in told if line.startswith("|")]
    assert table[-1].startswith(f"| all | {episodes} |")
    assert "\n".join(table) in (kept / "plan.md").read_text()


@pytest.mark.parametrize(
    "arguments",
    [("show", "L1_2345"), ("show", "L1_2"), ("try", "L1_2345", "start.cu"), ("eval", "L1_23", "L1_2345", "level9")],
)
def test_a_name_that_is_not_there_is_refused_before_a_device_is_opened(
    arguments: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "start.cu").write_text(kernel(Verdict.CORRECT))
    monkeypatch.setattr(environments, "open_evaluator", lambda *_, **__: pytest.fail("a device was opened"))
    given = ("--model-kind", "batch_exchange") if arguments[0] == "eval" else ()
    if arguments[1] == "L1_2":
        with pytest.raises(pytest.fail.Exception):
            invoke(*arguments)
        return
    with pytest.raises(UsageError, match="L1_2345") as refused:
        invoke(*arguments, *given)
    assert "names match exactly" in (refused.value.hint or "")
