"""Settings: every one is reached from everywhere, each place wins over the ones before it, and origins are kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.config import RunConfig, SearchConfig, SearchPart
from kernelblaster.config.fields import settings
from kernelblaster.config.reference import reference_page
from kernelblaster.config.sources import VARIABLES, Source, load_config, variable_of
from kernelblaster.errors import UsageError

DOCS = Path(__file__).parents[2] / "docs"
OTHERS = {
    "ours, seed": "seed",
    "grpo, dr_grpo": "dapo",
    "mean, leave_one_out": "batch",
    "start, parent": "pytorch",
    "last, warmup": "last",
    "returns, immediate": "immediate",
    "transformers, vllm": "vllm_server",
    "fp16, fp32, bf16": "bf16",
    "list of cublas, cudnn, cutlass": "cudnn",
    "integer": "7",
    "number": "0.5",
}


def other_value(path: str) -> str:
    """A valid value that is not the default."""
    known = settings()[path]
    kinds = (value for kind, value in OTHERS.items() if known.kind.startswith(kind))
    if known.kind == "true or false":
        return "false" if known.default == "true" else "true"
    if path == "model.timeout_s":
        return "7"
    if path == "search.ablate":
        return "lessons"
    return next(kinds, "other")


def value_of(config: RunConfig, path: str) -> Any:
    value: Any = config
    for part in path.split("."):
        value = getattr(value, part)
    return value


@pytest.mark.parametrize("path", settings())
def test_every_setting_is_reached_from_everywhere(clean: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    text, default = other_value(path), value_of(RunConfig(), path)
    by_option = load_config(options={path: text})
    assert value_of(by_option.config, path) != default
    section, _, name = path.rpartition(".")
    (clean / "kernelblaster.toml").write_text(
        f"[{section}]\n{name} = {text!r}\n" if section else f"{name} = {text!r}\n"
    )
    by_file = load_config()
    (clean / "kernelblaster.toml").unlink()
    monkeypatch.setenv(variable_of(path), text)
    by_variable = load_config()
    assert by_option.config == by_file.config == by_variable.config
    sources = [found.origins[path].source for found in (by_option, by_file, by_variable)]
    assert sources == [Source.OPTION, Source.FILE, Source.ENVIRONMENT]
    assert all(origin.source is Source.DEFAULT for other, origin in by_variable.origins.items() if other != path)


@pytest.mark.parametrize("path", settings())
def test_every_setting_is_documented(path: str) -> None:
    assert settings()[path].doc.endswith(".")


def test_every_part_that_can_be_ablated_is_named_in_the_help() -> None:
    assert all(str(part) in settings()["search.ablate"].doc for part in SearchPart)


def test_the_page_of_all_settings_is_up_to_date() -> None:
    assert (DOCS / "configuration.md").read_text() == reference_page()


def test_places_win_over_those_before_them(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (clean / "kernelblaster.toml").write_text('[model]\nname = "filed"\n[search]\nsteps = 2\nrollouts = 3\n')
    (clean / ".env").write_text("MODEL=dotted\nKERNELBLASTER_SEARCH__ROLLOUTS=4\n")
    assert load_config().config.model.name == "dotted"
    monkeypatch.setenv("MODEL", "set")
    found = load_config(options={"search.rollouts": 5})
    assert (found.config.model.name, found.config.search.steps, found.config.search.rollouts) == ("set", 2, 5)
    assert [str(found.origins[name]) for name in ("search.steps", "model.name", "search.rounds")] == [
        "file kernelblaster.toml", "environment MODEL", "default",
    ]  # fmt: skip
    (clean / "other.toml").write_text("experiment = 'mine'\n")
    other = load_config(clean / "other.toml")
    assert (other.config.experiment, other.config.search.steps) == ("mine", SearchConfig().steps)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[search]\nleast_hedroom = 0.5\n", ("kernelblaster.toml", "search.least_headroom")),
        ("least_headroom = 0.5\n", ("least_headroom", "search.least_headroom")),
        ("[search]\nrounds = 'many'\n", ("kernelblaster.toml", "search.rounds", "many")),
        ("[search]\nrounds = 0\n", ("search.rounds", "1 to 1000")),
        ("[search\n", ("kernelblaster.toml", "TOML")),
    ],
)
def test_a_file_that_cannot_be_used_is_refused(clean: Path, text: str, words: tuple[str, ...]) -> None:
    (clean / "kernelblaster.toml").write_text(text)
    with pytest.raises(UsageError) as refused:
        load_config()
    for word in words:
        assert word in f"{refused.value.message} {refused.value.hint}"


def test_a_misspelt_variable_is_refused_and_a_foreign_one_is_not(clean: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELBLASTER_CACHE", str(clean))
    load_config()
    monkeypatch.setenv("KERNELBLASTER_SEARCH__ROUND", "3")
    with pytest.raises(UsageError, match="KERNELBLASTER_SEARCH__ROUND"):
        load_config()


def test_a_secret_is_in_no_message(clean: Path) -> None:
    with pytest.raises(UsageError) as refused:
        load_config(options={"model.api_key": ["sk-secret"]})
    assert "sk-secret" not in refused.value.message + refused.value.hint


@given(st.dictionaries(st.sampled_from(sorted(settings().keys() - {"model.api_key"})), st.just(None)))
def test_origins_name_exactly_what_was_given(chosen: dict[str, None]) -> None:
    found = load_config(options={path: other_value(path) for path in chosen})
    given_paths = {path for path, origin in found.origins.items() if origin.source is Source.OPTION}
    assert given_paths == chosen.keys()
    assert found.origins.keys() == settings().keys()


def test_variables_stand_for_settings_that_exist() -> None:
    assert set(VARIABLES.values()) <= settings().keys()


def test_the_record_of_an_earlier_version_is_read() -> None:
    written = {"search": {"rounds": 2, "sessions": 3}, "compile_jobs": 4, "model": {"kind": "recorded"}}
    read = RunConfig.model_validate_json(json.dumps(written))
    assert (read.search.rounds, read.search.process_pairs, read.model.kind) == (2, 3, "recorded")


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: SearchConfig(rolouts=3), "SearchConfig has no setting 'rolouts' -> did you mean rollouts or"),
        (lambda: SearchConfig(rounds=0), "SearchConfig: rounds: input should be greater than or equal to 1"),
        (lambda: RunConfig(precision="fp7"), "RunConfig: precision: input should be 'fp16', 'fp32' or 'bf16'"),
        (lambda: RunConfig(search={"rounds": 0}), "SearchConfig: rounds: input should be greater"),
        (lambda: RunConfig(search=3), "SearchConfig: the whole: input should be a valid dictionary"),
    ],
)
def test_what_python_gives_is_refused_by_a_typed_error(made: Callable[[], object], said: str) -> None:
    with pytest.raises(UsageError) as refused:
        made()
    assert f"{refused.value.message} -> {refused.value.hint}".startswith(said)
    assert "\n" not in refused.value.message


def test_settings_of_other_versions_are_passed_over_in_files_alone() -> None:
    assert RunConfig.model_validate_json('{"gone": 1, "search": {"gone": 2, "rounds": 2}}').search.rounds == 2
    with pytest.raises(UsageError, match="gone"):
        RunConfig(gone=1)
