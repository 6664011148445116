"""The planted programs: which bug each case has, by the table in `planted/expected.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

PLANTED = Path(__file__).with_name("planted")


@dataclass(frozen=True)
class PlantedCase:
    """One case of one program; tool and kind are None where nothing is wrong.

    Attributes:
        program: file of the program.
        name: its argument on the command line.
        tool: the tool that should find the bug.
        kind: a `FindingKind`.
        line: line of the source that ends in `// BUG name`.
    """

    program: Path
    name: str
    tool: str | None
    kind: str | None
    line: int | None

    def __str__(self) -> str:
        return f"{self.program.stem}/{self.name}"


def planted_cases() -> list[PlantedCase]:
    """All cases of the table, in its order."""
    table = json.loads((PLANTED / "expected.json").read_text(encoding="utf-8"))
    return [_case(PLANTED / program, name, bug) for program, cases in table.items() for name, bug in cases.items()]


def captured_tools(results: Mapping[str, Mapping[str, object]]) -> list[str]:
    """Tools of compute-sanitizer that found something in a case; a hang under it is what synccheck is for."""
    found = {tool for tool, one in results.items() if one["findings"]}
    return sorted(found | ({"synccheck"} if any(one.get("hung") for one in results.values()) else set()))


def _case(program: Path, name: str, bug: list[str] | None) -> PlantedCase:
    if bug is None:
        return PlantedCase(program, name, None, None, None)
    lines = program.read_text(encoding="utf-8").splitlines()
    marked = [number for number, text in enumerate(lines, 1) if text.endswith(f"// BUG {name}")]
    return PlantedCase(program, name, bug[0], bug[1], marked[0])
