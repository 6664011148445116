"""Imports point down only (see ARCHITECTURE.md)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import kernelblaster

ROOT = Path(kernelblaster.__file__).parent
BELOW: dict[str, set[str]] = {
    "errors": set(),
    "paths": set(),
    "givenfiles": set(),
    "problems": set(),
    "devices": {"problems"},
    "evaluation": {"devices", "problems"},
    "models": {"config"},
    "config": {"devices", "problems"},
    "replay": {"evaluation", "devices", "problems"},
    "knowledge": {"replay", "evaluation", "devices", "problems"},
    "agent": {"knowledge", "replay", "models", "evaluation", "devices", "problems"},
    "runs": {"agent", "knowledge", "replay", "models", "evaluation", "devices", "problems", "report"},
    "report": {"runs", "agent", "replay", "evaluation", "devices", "problems"},
    "cli": {"runs", "report", "agent", "knowledge", "replay", "models", "evaluation", "devices", "problems"},
}
ANYWHERE = {"errors", "paths", "config", "givenfiles"}


def package_of(path: Path) -> str:
    """Layer of a file: its first folder, or its name for a module at the top."""
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def imports_of(path: Path) -> set[str]:
    """Layers a file imports, at the top or inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("kernelblaster.")}
    return found


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_down(path: Path) -> None:
    layer = package_of(path)
    if layer in ("__init__", "__main__"):
        return
    upward = imports_of(path) - BELOW[layer] - ANYWHERE - {layer}
    assert not upward, f"{layer} must not import {sorted(upward)}"
