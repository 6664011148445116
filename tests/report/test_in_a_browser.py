"""The page in a real browser, where there is one: it does not scroll sideways, and opens what is packed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from jinja2 import Environment, PackageLoader
from report_samples import P, record, two_rollouts
from test_report_page import FACTS

from kernelblaster.models.base import Message, Purpose, Reply, Request, Usage
from kernelblaster.problems.problem import Precision
from kernelblaster.records.summary import RunSummary, Spending
from kernelblaster.report.page import make_page

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
LONG = "an_identifier_without_a_place_to_break_" * 12
PROBE = """<script>addEventListener("load", async () => {
  document.querySelectorAll("details").forEach((one) => (one.open = true));
  for (let turn = 0; turn < 50 && document.querySelector(".text pre:empty"); turn++)
    await new Promise((done) => setTimeout(done, 20));
  document.title = document.documentElement.scrollWidth + " of " + innerWidth;
});</script></body>"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(BROWSER is None, reason="there is no Chromium here")]


@pytest.mark.parametrize("width", [500, 1400])
def test_it_fits_and_opens(tmp_path: Path, width: int) -> None:
    problem = record(tmp_path, two_rollouts(), final="c")
    problem.files.candidate_path("start").parent.mkdir()
    for name in ("start", "a", "b", "c", "d"):
        problem.files.candidate_path(name).write_text(f"__global__ void {name}() {{}}  // {LONG}\n")
    slot = f"{P}/r1/rollout-0/step-1/attempt-0"
    request = Request(slot=slot, purpose=Purpose.GENERATE, messages=(Message(role="user", content=f"why? {LONG}"),))
    usage = Usage(prompt_tokens=1, completion_tokens=1, dollars=None)
    problem.files.put_reply(request, Reply(text=f"because {LONG}", usage=usage, model="m"))
    summary = RunSummary(
        run="r", device=FACTS, precision=Precision.FP16, model="m", model_kind="given", problems=[problem.row],
        spending=Spending(), knowledge_base=tmp_path, directory=tmp_path, seconds=1,
    )  # fmt: skip
    environment = Environment(loader=PackageLoader("kernelblaster.report"), autoescape=True)
    html = environment.get_template("report.html.j2").render(page=make_page(summary, [problem]))
    page = tmp_path / "page.html"
    page.write_text(html.replace("</body>", PROBE), encoding="utf-8")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900", "--dump-dom"]
    done = subprocess.run(
        [str(BROWSER), *arguments, "--virtual-time-budget=5000", page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    found = re.search(r"<title>(\d+) of (\d+)</title>", done.stdout)
    assert found, done.stderr[-2000:]
    assert int(found[1]) <= int(found[2])
    texts = re.findall(r"<pre>([^<]*)", done.stdout)
    assert any("why?" in text for text in texts)
    assert any("because" in text for text in texts)
