"""KernelBlaster makes CUDA kernels faster: profile, recall, rewrite, verify, measure, remember.

The names below are the public library; docs/library.md shows how they are used. Importing the package loads none of
what they need: each name is fetched when it is first asked for. `__init__.pyi` lists them for readers, editors and type
checkers, and this module takes the list from there.

Layers, imports point down only (ARCHITECTURE.md has the map)::

    cli                what a person starts; a client of the library
    api                the public library
    runs               one run over many problems: directories, events, resume, budgets
    report             the static HTML page of a run
    training           train a model to write kernels
    records            what a run leaves on disk
    environment        problems as tasks for reinforcement learning
    agent              the LangGraph workflow of one problem
    knowledge          states, techniques, statistics, lessons   |  replay  the transition buffer
    models             language models and the cost ledger
    evaluation         candidate -> Evaluation
    config             the one configuration object
    python_candidates  Python candidates, written as CUDA source
    devices            where candidates are built and run: cuda, emulated
    sandbox            one command, with a view of the machine and limits
    problems           what is optimised
    storage            atomic files, JSON lines, SQLite
    cuda_source        CUDA C++ as text
"""

import ast
from importlib import import_module
from pathlib import Path
from typing import Any


def _places() -> dict[str, str]:
    """Public name -> the module that defines it, as the stub file imports it."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module for node in imports for alias in node.names if node.module}


_PLACES = _places()
__all__ = list(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
