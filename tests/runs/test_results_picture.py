"""The picture and the headline of final kernels beside PyTorch say what the rows say."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from kernelblaster.records.baselines import BaselineRow

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import h200_table  # noqa: E402
from results_picture import DARK, LIGHT, picture  # noqa: E402


@pytest.fixture(scope="module")
def rows() -> list[BaselineRow]:
    return TypeAdapter(list[BaselineRow]).validate_json((ROOT / "docs/results/h200_baseline.json").read_bytes())


def test_every_problem_has_its_marks(rows: list[BaselineRow]) -> None:
    drawn = ET.fromstring(picture(rows, LIGHT))
    dots = [element for element in drawn.iter() if element.tag.endswith("circle")]
    assert len(dots) == 2 + 2 * len(rows), "two in the legend, two per problem"
    width = float(drawn.attrib["width"])
    assert all(0 < float(dot.attrib["cx"]) < width for dot in dots)
    text = " ".join(element.text or "" for element in drawn.iter())
    assert all(row.problem in text for row in rows)
    assert picture(rows, DARK) != picture(rows, LIGHT)
    without = rows[0].model_copy(update={"timings": {"eager": rows[0].timings["eager"]}})
    with pytest.raises(ValueError, match="no row"):
        picture([without], LIGHT)


def test_the_headline_is_of_the_rows_and_is_replaced(rows: list[BaselineRow]) -> None:
    readme = (ROOT / "README.md").read_text()
    told = h200_table.with_headline(readme, rows)
    assert f"of {len(rows)} KernelBench" in told
    assert h200_table.with_headline(told, rows[:1]) == h200_table.with_headline(readme, rows[:1])
    with pytest.raises(SystemExit):
        h200_table.with_headline("nothing", rows)


def test_rows_with_host_time_in_them_are_not_written(rows: list[BaselineRow], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(h200_table, "shipped", list)
    with pytest.raises(SystemExit, match="not hidden"):
        h200_table.write(rows)
