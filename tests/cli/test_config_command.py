"""`config`, `--config` and `--set`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cli_support import Done

from kernelblaster.config.fields import settings
from kernelblaster.config.reference import reference_page
from kernelblaster.errors import ExitCode

Invoke = Callable[..., Done]


def test_it_shows_every_setting_with_its_origin(invoke: Invoke, clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    (clean / "kernelblaster.toml").write_text("[search]\nseed = 3\n")
    shown = invoke("config", "--set", "search.least_headroom=1.1", "--json")
    assert shown.json.keys() == settings().keys()
    assert shown.json["search.seed"] == {"value": 3, "origin": "file kernelblaster.toml"}
    assert shown.json["search.least_headroom"]["value"] == 1.1
    table = invoke("config")
    assert "sk-secret" not in shown.out + table.out
    assert all(path in table.out for path in settings())


def test_it_prints_the_reference(invoke: Invoke) -> None:
    assert invoke("config", "--markdown").out == reference_page()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--set", "search.least_hedroom=1"), ("least_hedroom", "search.least_headroom")),
        (("--set", "search.steps"), ("--set", "section.field=value")),
        (("--set", "search.steps=none"), ("search.steps", "none")),
        (("--config", "missing.toml"), ("missing.toml",)),
        (("--set", "search.policy=boldly"), ("--set search.policy: unknown search policy 'boldly'", "thompson, ucb")),
        (("--set", "device=abacus"), ("unknown device 'abacus'", "auto, cuda, emulated")),
        (("--set", "model.kind=oracle"), ("unknown model kind 'oracle'", "auto, openai_api")),
        (("--set", "evaluation.profiler=eyes"), ("unknown profiler 'eyes'", "device, events")),
    ],
)
def test_unusable_settings_are_refused(invoke: Invoke, arguments: tuple[str, ...], words: tuple[str, ...]) -> None:
    done = invoke("config", *arguments)
    assert done.code == ExitCode.USAGE
    assert all(word in done.err for word in words)


@pytest.mark.parametrize(
    "known",
    ["search.policy=ucb", "device=emulated", "device=auto", "model.kind=recorded", "evaluation.profiler=events"],
)
def test_names_that_are_registered_are_shown(invoke: Invoke, known: str) -> None:
    setting, _, value = known.partition("=")
    shown = invoke("config", "--set", known, "--json")
    assert (shown.code, shown.json[setting]["value"]) == (ExitCode.OK, value)


def test_a_setting_given_twice_is_refused(invoke: Invoke) -> None:
    done = invoke("run", "--steps", "3", "--set", "search.steps=4")
    assert done.code == ExitCode.USAGE
    assert "--steps" in done.err
    assert "search.steps" in done.err
