"""Seeding the code memory from recordings: the fastest kernel of each problem that a recorded search stood on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kernelblaster.agent.sources import strip_comments
from kernelblaster.config import DATASET
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.base import KnowledgeBase
from kernelblaster.knowledge.cores import merge_cores, shown_code, whole_code
from kernelblaster.knowledge.schema import Core, ShapeRegime
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.models.base import Purpose
from kernelblaster.models.recorded import RecordedExchange, read_recording
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.families import family_of
from kernelblaster.problems.problem import Precision

_PARENT = re.compile(r"^# Kernel to improve\n```cuda\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TIME = re.compile(
    r"Time of the call: ([\d.]+) us \(measured\)(?:; a well-written kernel should reach about ([\d.]+) us)?"
)
_HOTTEST = re.compile(r"^\* (.+?) <<<", re.MULTILINE)
_ARCH = re.compile(r"^# GPU\n[^\n]*\((sm_\d+)", re.MULTILINE)


def remember_recordings(recordings: list[Path], target: Path) -> tuple[KnowledgeBase, list[Core]]:
    """Add the fastest measured kernel of each problem in recordings to the code memory of `target`.

    Prompts of a recording show the kernels that its search had judged correct, with their times. They are kept whole,
    and of long ones the hottest part to be shown (`shown_code`). Starts are left out. Returns what `target` holds now,
    and the cores found. Raises UsageError, KnowledgeError and ProblemError.
    """
    found = merge_cores((), (core for path in recordings for core in _cores(path)))
    store = KnowledgeStore(target)
    store.create()
    after = store.update(lambda known: known.model_copy(update={"cores": merge_cores(known.cores, found)}))
    return KnowledgeBase(after), list(found)


def _cores(path: Path) -> Iterator[Core]:
    exchanges = [one for one in read_recording(path).exchanges if one.purpose is Purpose.GENERATE]
    starts: dict[tuple[str, str], str] = {}
    for one in exchanges:
        if re.search(r"/r1/rollout-\d+/step-1/attempt-0$", one.slot):
            starts[one.tags["problem"], one.tags["precision"]] = one.tags["parent_sha256"]
    fastest: dict[tuple[str, str], tuple[float, RecordedExchange]] = {}
    for one in exchanges:
        place = one.tags["problem"], one.tags["precision"]
        timed = _TIME.search(one.messages[-1].content)
        if timed is None or starts.get(place) == one.tags["parent_sha256"]:
            continue
        if place not in fastest or float(timed[1]) < fastest[place][0]:
            fastest[place] = float(timed[1]), one
    for _, one in fastest.values():
        core = _core(one)
        if core is not None:
            yield core


def _core(exchange: RecordedExchange) -> Core | None:
    """The parent that a prompt shows; None where it has no measured time, or is too long."""
    prompt = exchange.messages[-1].content
    parent, timed, arch = _PARENT.search(prompt), _TIME.search(prompt), _ARCH.search(prompt)
    if parent is None or timed is None or arch is None:
        return None
    hottest = _HOTTEST.search(prompt)
    shown = shown_code(strip_comments(parent[1]), hottest[1] if hottest else "")
    if shown is None:
        return None
    attainable_us = float(timed[2]) if timed[2] else None
    problem = find_problem(exchange.tags["problem"], data_dir() / DATASET)
    return Core(
        problem=exchange.tags["problem"],
        definition=problem.definition_digest,
        op_family=family_of(problem.reference_path),
        arch=arch[1],
        device_kind=DeviceKind.CUDA,
        precision=Precision(exchange.tags["precision"]),
        regime=ShapeRegime.of(attainable_us),
        median_us=float(timed[1]),
        attainable_us=attainable_us,
        source=shown.source,
        excerpt=shown.excerpt,
        whole=_whole(parent[1], exchange.tags["parent_sha256"]),
    )


def _whole(shown: str, sha256: str) -> str | None:
    """The file of which a prompt shows the lines; None where another was judged, of which it shows a part."""
    files = (shown, shown.removesuffix("\n"))
    return next((whole_code(file) for file in files if source_digest(file) == sha256), None)
