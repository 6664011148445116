"""The picture of kernels beside PyTorch and README's headline say what the rows say."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.records.baselines import BaselineRow

ROOT = Path(__file__).parents[2]
sys.path += [str(ROOT / "benchmarks"), str(ROOT / "benchmarks" / "forty")]

import h200_table  # noqa: E402
import headline  # noqa: E402
from outcomes import Row  # noqa: E402
from results_picture import DARK, LIGHT, Beside, picture  # noqa: E402

PROBLEMS = [Beside("level1/001 Product", 10.0, 20.0, 5.0), Beside("level1/002 Sum", 1.0, 64.0, None)]
TORCH = {TorchMode.EAGER: 400.0, TorchMode.COMPILE: 100.0}
ROWS = [
    Row("level1/001", "Product", OutcomeStatus.IMPROVED, 200.0, 52.0, 50.0, TORCH, 2),
    Row("level2/002", "Sum", OutcomeStatus.INTERRUPTED, 200.0, 25.0, None, TORCH, 1),
    Row("level3/003", "Net", OutcomeStatus.INTERRUPTED, None, None, None, TORCH, 0),
]


def dots(drawn: str) -> list[ET.Element]:
    return [element for element in ET.fromstring(drawn).iter() if element.tag.endswith("circle")]


def test_every_problem_has_its_marks() -> None:
    drawn = picture(PROBLEMS, LIGHT)
    assert len(dots(drawn)) == 2 + 3, "two in the legend, and one for each time of PyTorch"
    width = float(ET.fromstring(drawn).attrib["width"])
    assert all(0 < float(dot.attrib["cx"]) < width for dot in dots(drawn))
    assert all(one.name in drawn for one in PROBLEMS)
    assert picture(PROBLEMS, DARK) != drawn
    with pytest.raises(ValueError, match="no problem"):
        picture([replace(PROBLEMS[0], eager_us=None, compiled_us=None)], LIGHT)


def test_what_was_timed_once_is_drawn_hollow() -> None:
    drawn = picture([PROBLEMS[0], replace(PROBLEMS[1], settled=False)], LIGHT)
    assert sum(dot.attrib["fill"] == "none" for dot in dots(drawn)) == 2, "one in the legend, one of the problem"


def test_the_headline_is_of_the_rows_and_is_replaced() -> None:
    readme = (ROOT / "README.md").read_text()
    told = headline.with_headline(readme, ROWS, "a GPU", "2.9")
    assert "**2.00 times**" in told, "the geometric mean of 2, 4 and 1"
    assert "Faster on 2 of 3" in told
    assert "it is 1.41" in told, "that of 2 and 1"
    assert "1 searches have ended" in told
    ended = [replace(row, status=OutcomeStatus.IMPROVED) for row in ROWS]
    assert "have ended" not in headline.headline(ended, "a GPU", "2.9")
    assert [one.settled for one in headline.beside(ROWS)] == [True, False]
    assert headline.with_headline(told, ROWS[:1], "a GPU", "2.9") == headline.with_headline(
        readme, ROWS[:1], "a GPU", "2.9"
    )
    with pytest.raises(SystemExit):
        headline.with_headline("nothing", ROWS, "a GPU", "2.9")


def test_rows_with_host_time_in_them_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = TypeAdapter(list[BaselineRow]).validate_json((ROOT / "docs/results/h200_baseline.json").read_bytes())
    monkeypatch.setattr(h200_table, "shipped", list)
    with pytest.raises(SystemExit, match="not hidden"):
        h200_table.write(rows)
