"""What the parts of `run.py` told, in one file, and as a page."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

_ORDER = (
    "warmup", "killed", "frontend", "undisturbed", "midend", "backend", "elsewhere",
    "lengths-512", "lengths-2048", "lengths-4096",
)  # fmt: skip


def merge(directory: Path, into: Path) -> None:
    """Put what parts told into `INTO.json`, newer in the place of older, and write `INTO.md`."""
    known: dict[str, Any] = {}
    path = into.with_suffix(".json")
    if path.is_file():
        known = json.loads(path.read_text())
    for found in sorted(directory.glob("*.json")):
        told = json.loads(found.read_text())
        if isinstance(told, dict) and "part" in told:
            known[told["part"] if found.stem != "killed" else "killed"] = told
    path.write_text(json.dumps(known, indent=1) + "\n")
    into.with_suffix(".md").write_text(page(known))


def page(parts: dict[str, Any]) -> str:
    """The tables."""
    order = {name: place for place, name in enumerate(_ORDER)}
    stages = {
        name: parts[name] for name in sorted(parts, key=lambda name: order.get(name, 0)) if parts[name].get("phases")
    }
    devices = sorted({one["device"] for one in parts.values() if "device" in one})
    lines = [
        "# Training on a GPU",
        "",
        f"Written by `benchmarks/h200_training/run.py`, which says what the parts are; {', '.join(devices)}.",
        "",
        "Tokens are of a completion; in the parts `lengths` a prompt has as many. Seconds of a phase: median of the",
        "times after the first, the first in brackets. Memory: most that PyTorch held in the trainer's process, in",
        "GiB, with the estimate by arithmetic (weights, adapter, cache; kept activations and logits, the latter in",
        "bf16 and, after the dash, in fp32 as well). *Whole GPU*: all processes, the judge's too. Random weights that",
        "name letters: this says nothing of how well a model learns to write kernels.",
        "",
        "| part | updates | finished | tokens | generating, s | judging, s | updating, s | saving, s "
        "| generating, GiB: measured, estimated | updating, GiB: measured, estimated | whole GPU, GiB | wall, s |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
        *(_row(name, one) for name, one in stages.items()),
        "",
    ]
    lines += _figures("Killed and resumed", parts, ("resumed", "comparison"))
    lines += _arms(parts.get("eval", {}).get("arms", {}))
    lines += _served(parts.get("serve", {}))
    return "\n".join(lines).rstrip() + "\n"


def _row(name: str, one: dict[str, Any]) -> str:
    tokens = one.get("tokens") or [0]
    cells = [
        name,
        str(one.get("updates", "")),
        "yes" if one["finished"] else "no",
        f"{min(tokens)} to {max(tokens)}" if max(tokens) else "",
        *(_seconds(one["phases"].get(phase)) for phase in ("generating", "judging", "updating", "saving")),
        *(_memory(one, phase) for phase in ("generating", "updating")),
        "" if one.get("whole_gpu_peak_gib") is None else f"{one['whole_gpu_peak_gib']:.1f}",
        f"{one['wall_seconds']:.0f}",
    ]
    return f"| {' | '.join(cells)} |"


def _seconds(phase: dict[str, Any] | None) -> str:
    if not phase or not phase["seconds"]:
        return ""
    first, *later = phase["seconds"]
    return f"{statistics.median(later):.3g} ({first:.3g})" if later else f"({first:.3g})"


def _memory(one: dict[str, Any], phase: str) -> str:
    measured = one["phases"].get(phase, {}).get("peak_gib")
    estimates = [value for name, value in one.get("estimated_gib", {}).items() if name.startswith(phase)]
    told = "" if measured is None else f"{measured:.2f}"
    return f"{told}, {' - '.join(f'{value:.2f}' for value in estimates)}" if estimates else told


def _figures(title: str, parts: dict[str, Any], names: tuple[str, ...]) -> list[str]:
    found = {
        key: value for name in names for key, value in parts.get(name, {}).items() if key not in ("part", "finished")
    }
    return [f"## {title}", "", *(f"- {key}: {value}" for key, value in found.items()), ""] if found else []


def _arms(arms: dict[str, Any]) -> list[str]:
    if not arms:
        return []
    lines = [
        "## Held-out problems",
        "",
        "| arm | correct | log speed-up | fastest, measured again | minus base: correct | log speed-up |",
        "|---|---|---|---|---|---|",
    ]
    for name, arm in arms.items():
        estimates, differences = arm["estimates"], arm["differences"]
        cells = [_interval(estimates.get(key)) for key in ("correct", "log_speedup", "log_winner")]
        cells += [_interval(differences.get(key)) for key in ("correct", "log_speedup")]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def _interval(one: dict[str, Any] | None) -> str:
    if one is None:
        return ""
    spread = "" if one["low"] is None else f" ({one['low']:.2f} to {one['high']:.2f})"
    return f"{one['value']:.2f}{spread}"


def _served(found: dict[str, Any]) -> list[str]:
    asked = {name: one for name, one in found.items() if isinstance(one, dict) and "requests" in one}
    if not asked:
        return []
    lines = [
        "## Served by transformers",
        "",
        "| requests | seconds | tokens | tokens per second |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {one['seconds']:.2f} | {one['tokens']} | {one['tokens_per_second']:.1f} |"
        for name, one in asked.items()
    ]
    return [*lines, ""]
