"""Imports point down only, nothing imports itself round a circle, and no name of a class means two things."""

from __future__ import annotations

import ast
import sys
from collections import Counter
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import kernelblaster

SOURCES = Path(kernelblaster.__file__).parents[1]
EMULATOR = "ptxemu"
# Highest first. A room may import those below it.
ROOMS = (
    "cli",
    "api",
    "runs",
    "report",
    "training",
    "records",
    "environment",
    "agent",
    "knowledge",
    "replay",
    "models",
    "evaluation",
    "config",
    "python_candidates",
    "devices",
    "sandbox",
    "problems",
    "storage",
    "cuda_source",
    "paths",
    "registry",
    "errors",
    "version",
)
CLIENT = ("kernelblaster", "kernelblaster.errors")
"""All of the product that the command line may import, beside itself, the configuration and the emulator."""
EVALUATION_ROOMS = ("integrity", "correctness", "processes", "timing", "inputs")
APART = {
    ("report", "training"),
    ("runs", "training"),
    ("records", "environment"),
    ("report", "environment"),
    ("agent", "report"),
    ("models", "knowledge"),
    ("models", "replay"),
    ("models", "evaluation"),
}
"""Rooms that know nothing of each other although one lies below the other."""
ANYWHERE = {"config"}


def modules() -> dict[str, Path]:
    """Dotted name of every module -> its file."""
    found = {}
    for package in ("kernelblaster", EMULATOR):
        for path in sorted((SOURCES / package).rglob("*.py")):
            parts = path.relative_to(SOURCES).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


@cache
def all_imports_of(name: str) -> set[str]:
    """What a module imports anywhere: at its top, in functions, for type checkers."""
    found = set()
    for node in ast.walk(ast.parse(MODULES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {one if one in MODULES else node.module for one in named}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found


def imports_of(name: str) -> set[str]:
    """Modules of this repository that a module imports."""
    return {one for one in all_imports_of(name) if one in MODULES and one != name}


def room_of(name: str) -> str:
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else ""


@pytest.mark.parametrize(
    "name", [name for name in MODULES if room_of(name) in ROOMS and name.startswith("kernelblaster.")]
)
def test_imports_point_down(name: str) -> None:
    room = room_of(name)
    below = set(ROOMS[ROOMS.index(room) + 1 :]) - {other for own, other in APART if own == room}
    used = {room_of(other) for other in imports_of(name) if other.startswith("kernelblaster.")}
    assert not (used - below - ANYWHERE - {room, ""}), f"{room} must not import {sorted(used - below - {room})}"


@pytest.mark.parametrize("name", [name for name in MODULES if name.startswith("kernelblaster.cli")])
def test_the_command_line_is_a_client_of_the_library(name: str) -> None:
    own = ("kernelblaster.cli", "kernelblaster.config", EMULATOR)
    assert {other for other in imports_of(name) if not other.startswith(own)} <= set(CLIENT)


@pytest.mark.parametrize("name", [name for name in MODULES if room_of(name) == "evaluation" and name.count(".") > 2])
def test_rooms_of_the_evaluation_point_down(name: str) -> None:
    room = name.split(".")[2]
    below = EVALUATION_ROOMS[EVALUATION_ROOMS.index(room) :]
    used = {other.split(".")[2] for other in imports_of(name) if other.startswith("kernelblaster.evaluation.")}
    assert used <= {*below, "results"}, f"{room} must not import {sorted(used - {*below, 'results'})}"


@pytest.mark.parametrize("name", [name for name in MODULES if name.split(".")[0] == EMULATOR])
def test_emulator_stands_alone(name: str) -> None:
    """It could be released by itself: the standard library and numpy are all it imports."""
    allowed = {*sys.stdlib_module_names, "numpy", EMULATOR}
    used = {other.split(".")[0] for other in all_imports_of(name)}
    assert used <= allowed, f"{EMULATOR} must not import {sorted(used - allowed)}"


@pytest.mark.parametrize("name", [name for name in MODULES if name.split(".")[0] == "kernelblaster"])
def test_emulator_is_reached_through_its_adapter(name: str) -> None:
    used = sorted(one for one in imports_of(name) if one.split(".")[0] == EMULATOR)
    if name == "kernelblaster.cli.emulate":
        assert used == [f"{EMULATOR}.command"]
    elif not name.startswith("kernelblaster.devices.emulated."):
        assert not used, f"{name} must go through devices/emulated"


def test_no_module_imports_itself_round_a_circle() -> None:
    try:
        TopologicalSorter({name: imports_of(name) for name in MODULES}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_folder_imports_itself_round_a_circle() -> None:
    """Folders as wholes: a module that lies in no deeper folder stands for itself."""
    folders: dict[str, set[str]] = {}
    for name in MODULES:
        own = folder_of(name)
        folders.setdefault(own, set()).update(map(folder_of, imports_of(name)))
    try:
        TopologicalSorter({own: others - {own} for own, others in folders.items()}).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_class_name_means_two_things() -> None:
    places: dict[str, list[str]] = {}
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    assert not {name: where for name, where in places.items() if len(where) > 1}


@pytest.mark.parametrize("path", sorted({path.parent for path in MODULES.values()}), ids=lambda path: path.name)
def test_every_folder_says_what_lives_there(path: Path) -> None:
    assert ast.get_docstring(ast.parse((path / "__init__.py").read_text(encoding="utf-8")))


def folder_of(name: str) -> str:
    """The folder of a module below a package root or a room; its own name where that holds modules and folders."""
    folder = MODULES[name].parent
    if any(path.is_dir() and any(path.glob("*.py")) for path in folder.iterdir()):
        return name
    return str(folder.relative_to(SOURCES))


def test_no_two_files_of_tests_share_a_name() -> None:
    """pytest imports them by that name alone: a second one could not be collected beside the first."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert not [name for name, count in names.items() if count > 1]
