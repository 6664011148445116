"""Both pages in a real browser, where there is one: they do not scroll sideways, texts open, no figure is crossed."""

from __future__ import annotations

import html
import json
import random
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_samples import P, recalled, record, step, two_rollouts
from test_comparison import run
from test_report_page import FACTS

from kernelblaster.agent import events as ev
from kernelblaster.models.base import Message, Purpose, Reply, Request, Usage
from kernelblaster.problems.problem import Precision
from kernelblaster.records.summary import RunSummary, Spending
from kernelblaster.report.build import rendered, write_comparison
from kernelblaster.report.page import make_page
from kernelblaster.report.reading import ProblemRecord

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
LONG = "an_identifier_without_a_place_to_break_" * 12
WIDTHS = [390, 1400]
PROBE = """<script>
function crossed() {
  const found = [];
  for (const tree of document.querySelectorAll("svg.tree")) {
    const boxes = [...tree.querySelectorAll("text")].map((one) => [one.textContent, one.getBBox()]);
    const points = [...tree.querySelectorAll("path")].flatMap((path) => {
      const steps = Math.ceil(path.getTotalLength() / 2);
      return Array.from({ length: steps }, (_, index) => path.getPointAtLength(2 * index));
    });
    const inside = (box, x, y, by) =>
      x > box.x - by && x < box.x + box.width + by && y > box.y - by && y < box.y + box.height + by;
    boxes.forEach(([name, box], index) => {
      for (const [other, its] of boxes.slice(index + 1))
        if (box.x < its.x + its.width && its.x < box.x + box.width && box.y < its.y + its.height &&
            its.y < box.y + box.height) found.push(name + " lies on " + other);
      if (points.some((point) => inside(box, point.x, point.y, 1))) found.push(name + " lies on an edge");
      for (const dot of tree.querySelectorAll("circle"))
        if (inside(box, dot.cx.baseVal.value, dot.cy.baseVal.value, dot.r.baseVal.value - 4))
          found.push(name + " lies on a dot");
      const [, , width, height] = tree.getAttribute("viewBox").split(" ").map(Number);
      if (box.x < 0 || box.y < 0 || box.x + box.width > width || box.y + box.height > height)
        found.push(name + " is cut off");
    });
  }
  return found;
}
addEventListener("load", async () => {
  document.querySelectorAll("details").forEach((one) => (one.open = true));
  for (let turn = 0; turn < 50 && document.querySelector(".text pre:empty"); turn++)
    await new Promise((done) => setTimeout(done, 20));
  const texts = [...document.querySelectorAll("pre")].map((one) => one.textContent.slice(0, 200));
  const page = document.documentElement;
  parent.postMessage({ wide: page.scrollWidth, room: innerWidth, texts, crossed: crossed() }, "*");
});</script></body>"""
FRAME = """<body><iframe src="{page}" style="border:0;width:{width}px;height:900px"></iframe><pre id="found"></pre>
<script>addEventListener("message", (told) => (found.textContent = JSON.stringify(told.data)));</script></body>"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")]


def opened(page: str, width: int, directory: Path) -> dict[str, Any]:
    """What a page looks like in a window of this width; a frame, for a browser's own window is no narrower than 500."""
    (directory / "page.html").write_text(page.replace("</body>", PROBE), encoding="utf-8")
    frame = directory / "frame.html"
    frame.write_text(FRAME.format(page=(directory / "page.html").as_uri(), width=width), encoding="utf-8")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={max(500, width)},900", "--dump-dom"]
    done = subprocess.run(
        [str(BROWSER), *arguments, "--virtual-time-budget=5000", frame.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    told = re.search(r'<pre id="found">(.+?)</pre>', done.stdout, re.DOTALL)
    assert told, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(html.unescape(told[1]))
    assert found["wide"] <= found["room"] == width
    return found


def page_of(problem: ProblemRecord, directory: Path) -> str:
    summary = RunSummary(
        run="r", device=FACTS, precision=Precision.FP16, model="m", model_kind="given", problems=[problem.row],
        spending=Spending(), knowledge_base=directory, directory=directory, seconds=1,
    )  # fmt: skip
    return rendered("report.html.j2", make_page(summary, [problem]))


def long_search(seed: int) -> list[ev.Event]:
    """Two rounds of rollouts whose steps go on from any kernel that an earlier column has made."""
    drawn = random.Random(seed)
    events, made = [], [("start", 0)]
    for number in range(1, 6):
        for rollout in range(5):
            outcome = drawn.choice(("faster", "faster", "slower", "wrong_values"))
            parent = drawn.choice([name for name, since in made if since < number])
            name = f"k{rollout}.{number}"
            speedup = drawn.choice((0.97, 1.04, 12.5, 141.6)) if outcome != "wrong_values" else None
            events += step(rollout, number, parent, name, outcome, speedup, 241.6)
            if outcome == "faster":
                made.append((name, number))
    return events + [
        event.model_copy(update={"slot": event.slot.replace("/r1/", "/r2/")}) for event in events[: len(events) // 2]
    ]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_report_fits_and_opens(tmp_path: Path, width: int) -> None:
    problem = record(tmp_path, two_rollouts(), final="c")
    problem.files.candidate_path("start").parent.mkdir()
    for name in ("start", "a", "b", "c", "d"):
        problem.files.candidate_path(name).write_text(f"__global__ void {name}() {{}}  // {LONG}\n")
    slot = f"{P}/r1/rollout-0/step-1/attempt-0"
    request = Request(slot=slot, purpose=Purpose.GENERATE, messages=(Message(role="user", content=f"why? {LONG}"),))
    usage = Usage(prompt_tokens=1, completion_tokens=1, dollars=None)
    problem.files.put_reply(request, Reply(text=f"because {LONG}", usage=usage, model="m"))
    found = opened(page_of(problem, tmp_path), width, tmp_path)
    assert not found["crossed"]
    assert any("why?" in text for text in found["texts"])
    assert any("because" in text for text in found["texts"])


@pytest.mark.parametrize("known", [False, True])
@pytest.mark.parametrize("seed", range(2))
def test_no_figure_of_a_tree_lies_on_an_edge_or_another(tmp_path: Path, seed: int, known: bool) -> None:
    events = long_search(seed)
    faster = [one for one in events if isinstance(one, ev.Decided) and one.accepted]
    final = faster[-1].slot.split("/")
    problem = record(tmp_path, events, final=f"k{final[-2][-1]}.{final[-1][-1]}")
    rounds = {1: "start", 2: "known" if known else "a"}
    problem = replace(problem, rounds=rounds, recalled=recalled() if known else None)
    assert not opened(page_of(problem, tmp_path), 1400, tmp_path)["crossed"]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_comparison_fits(tmp_path: Path, width: int) -> None:
    runs = [run(f"{name}_{LONG[:60]}", p1=4.0, p2=None, p3=speedup) for name, speedup in (("a", 9.0), ("b", 1.5))]
    page = write_comparison(runs, tmp_path / "comparison.html").read_text(encoding="utf-8")
    opened(page, width, tmp_path)
