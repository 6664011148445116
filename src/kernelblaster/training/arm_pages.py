"""A table of arms as Markdown."""

from __future__ import annotations

import math

from kernelblaster.training.arm_tables import FIGURES, ArmTable, TableRow
from kernelblaster.training.arms import Estimate

_LOGARITHMS = frozenset({"log_speedup", "best", "winner"})
_NAMES = {
    "correct": "correct",
    "fast_1": "faster",
    "log_speedup": "speed-up, mean",
    "best": "best of all",
    "winner": "best, measured again",
}


def markdown_of(table: ArmTable) -> str:
    """The arms, their differences to the reference, and each problem."""
    what = ", ".join(f"{name.removeprefix('conditions.')} {value}" for name, value in sorted(table.rests_on.items()))
    lines = [
        f"Prompts of `{table.stage}`, split `{table.split}`. {what}.",
        "",
        f"Means over seeds and problems, with 95 % intervals from resampling both (problems by {table.resampled}).",
        "Every judged candidate is in the denominators; speed-ups are geometric means with failures as 1.",
        "",
        f"| arm | seeds | problems | judged per problem | {' | '.join(_NAMES[name] for name in FIGURES)} |",
        f"|---|---|---|---|{'---|' * len(FIGURES)}",
        *(_row(row) for row in table.rows),
    ]
    if any(row.differences for row in table.rows):
        lines += [
            "",
            f"Minus `{table.against}`, on the problems of both; speed-ups as ratios. An interval that leaves 0 (1 for",
            "ratios) out is marked.",
            "",
            f"| arm | {' | '.join(_NAMES[name] for name in FIGURES)} |",
            f"|---|{'---|' * len(FIGURES)}",
            *(_differences(row) for row in table.rows if row.differences),
        ]
    return "\n".join([*lines, "", *_problems(table)]) + "\n"


def _row(row: TableRow) -> str:
    seeds = ", ".join(map(str, row.seeds))
    cells = [_told(name, row.estimates.get(name)) for name in FIGURES]
    return f"| {row.label} | {seeds} | {row.problems} | {row.judged_per_problem:.1f} | {' | '.join(cells)} |"


def _differences(row: TableRow) -> str:
    cells = []
    for name in FIGURES:
        found = row.differences.get(name)
        cells.append(_told(name, found) + (" **" if found is not None and found.decided else ""))
    return f"| {row.label} | {' | '.join(cells)} |"


def _told(name: str, found: Estimate | None) -> str:
    if found is None:
        return ""
    scaled = math.exp if name in _LOGARITHMS else float
    spread = (
        "" if found.low is None or found.high is None else f" ({scaled(found.low):.2f} to {scaled(found.high):.2f})"
    )
    return f"{scaled(found.value):.2f}{spread}"


def _problems(table: ArmTable) -> list[str]:
    problems = sorted({name for row in table.rows for name in row.by_problem})
    return [
        "Per problem: share correct, speed-up of the best.",
        "",
        f"| problem | {' | '.join(row.label for row in table.rows)} |",
        f"|---|{'---|' * len(table.rows)}",
        *(f"| {name} | {' | '.join(_cell(row, name) for row in table.rows)} |" for name in problems),
    ]


def _cell(row: TableRow, problem: str) -> str:
    found = row.by_problem.get(problem)
    return "" if found is None else f"{found['correct']:.2f}, {math.exp(found['best']):.2f}"
