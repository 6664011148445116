"""The files that containers are made of, as far as can be told without an engine."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
DOCKER = ROOT / "docker"
COMPOSE = ("compose.yaml", "environment.yaml")
VARIABLE = re.compile(r"\$\{(\w+)")


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, list[str]]]:
    """Instructions of the Dockerfile with their words."""
    text = re.sub(r"^#.*\n", "", (DOCKER / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, shlex.split(rest)) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def compose(name: str) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((DOCKER / name).read_text())


def copied(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("--")][:-1]


def test_what_the_image_copies_exists(instructions: list[tuple[str, list[str]]]) -> None:
    sources = [source for name, words in instructions if name == "COPY" for source in copied(words)]
    assert len(sources) >= 4
    assert all((ROOT / source).exists() for source in sources)
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert not {source.partition("/")[0] for source in sources} & set(ignored)
    assert {".git", ".venv", ".env", "out"} <= set(ignored), "neither keys nor results belong into an image"


def test_an_edit_of_the_sources_keeps_the_layer_with_torch(instructions: list[tuple[str, list[str]]]) -> None:
    """Before the set-up runs there is only what decides what it installs; all else comes after it."""
    places = [n for n, (name, words) in enumerate(instructions) if name == "RUN" and "scripts/setup.sh" in words]
    (set_up,) = places
    before = {source for name, words in instructions[:set_up] if name == "COPY" for source in copied(words)}
    after = [copied(words) for name, words in instructions[set_up:] if name == "COPY"]
    assert {"pyproject.toml", "constraints.txt", "scripts/setup.sh"} <= before
    assert not {source for source in before if source == "." or source.startswith(("src", "data"))}
    assert after == [["."]]
    # What decides whether the set-up is done again is made of files that are there by then.
    named = re.findall(
        r'"\$root/([\w.]+)"', (ROOT / "scripts" / "setup.sh").read_text().split("want=")[1].split("\n")[0]
    )
    assert set(named) <= before
    assert named


def test_candidates_do_not_run_as_root(instructions: list[tuple[str, list[str]]]) -> None:
    users = [words for name, words in instructions if name == "USER"]
    assert users[-1:] == [["blaster"]]


@pytest.mark.parametrize("name", COMPOSE)
def test_services_share_one_image_that_one_of_them_builds(name: str) -> None:
    services = compose(name)["services"]
    assert len({service["image"] for service in services.values()}) == 1
    (built,) = [service["build"] for service in services.values() if "build" in service]
    assert (DOCKER / built["context"] / built["dockerfile"]).resolve() == DOCKER / "Dockerfile"


def test_the_key_and_the_gpu_are_apart() -> None:
    services = compose("compose.yaml")["services"]
    worker, controller = services["worker"], services["controller"]
    assert worker["network_mode"] == "none"
    assert "OPENAI_API_KEY" not in worker["environment"]
    assert "OPENAI_API_KEY" in controller["environment"]
    assert "deploy" not in controller


@pytest.mark.parametrize("name", COMPOSE)
def test_every_variable_is_documented(name: str) -> None:
    text = (DOCKER / name).read_text()
    listed = [service.get("environment", []) for service in compose(name)["services"].values()]
    used = {*VARIABLE.findall(text), *(key for names in listed for key in names)}
    head = text.partition("services:")[0]
    assert used
    assert all(re.search(rf"^#   {variable} ", head, re.MULTILINE) for variable in used)
    if name == "compose.yaml":
        page = (ROOT / "docs" / "commands.md").read_text()
        assert all(f"`{variable}`" in page for variable in used)


def test_a_dev_container_starts_what_exists() -> None:
    lines = (ROOT / ".devcontainer" / "devcontainer.json").read_text().splitlines()
    described = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    assert described["postCreateCommand"].startswith("bash scripts/setup.sh && ")
    assert "--device emulated" in described["postCreateCommand"]
    assert (ROOT / "scripts" / "setup.sh").is_file()
