"""A judge that answers over a socket gives a trainer what it would give in its process. Needs the extra `env`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

pytest.importorskip("openenv", reason="needs openenv: the extra env")

from fake_judge import FACTS, FakeJudge, kernel
from soaking import Served, serving

from kernelblaster import RunConfig, make_training_data
from kernelblaster.config.training import TrainConfig
from kernelblaster.devices.profiles import SanitizerFinding
from kernelblaster.environment.catalogue import Catalogue
from kernelblaster.environment.fair_queue import FairQueue
from kernelblaster.environment.judging import SharedJudge
from kernelblaster.environment.remote_judge import RemoteJudge
from kernelblaster.errors import DeviceError, ProblemError, UsageError
from kernelblaster.evaluation.results import Decision, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.problem import Precision
from kernelblaster.training.judging import StoredJudge
from kernelblaster.training.layout import TrainingLayout
from kernelblaster.training.stages import Stage

START = kernel(Verdict.CORRECT)
FASTER = kernel(Verdict.CORRECT, 2.0, Decision.FASTER)


@pytest.fixture(scope="module")
def served(catalogue: Catalogue) -> Iterator[Served]:
    with serving(catalogue, judging=True) as found:
        yield found


@pytest.mark.parametrize("verdict", list(Verdict))
def test_an_evaluation_is_the_same_over_a_socket(served: Served, catalogue: Catalogue, verdict: Verdict) -> None:
    source, problem = kernel(verdict, 1.5, Decision.FASTER), catalogue.find("L1_23")
    here = FakeJudge().evaluate(problem, source, baseline=START, profile=True)
    assert RemoteJudge(served.url).evaluate(problem, source, baseline=START) == here


def test_findings_of_sanitizers_are_the_same_over_a_socket(served: Served, catalogue: Catalogue) -> None:
    served.judge.findings = [SanitizerFinding(tool="memcheck", message="k: out of bounds", location="candidate.cu:2")]
    assert RemoteJudge(served.url).sanitize(catalogue.find("L1_23"), START) == served.judge.findings


def test_a_trainer_asks_once_and_is_told_the_conditions(served: Served, catalogue: Catalogue, tmp_path: Path) -> None:
    remote = RemoteJudge(served.url)
    shared, problem = SharedJudge(remote), catalogue.find("L1_23")
    assert (shared.facts, shared.precision, shared.workload) == (FACTS, served.judge.precision, served.judge.workload)
    before = len(served.judge.judged)
    for _ in range(2):
        judge = StoredJudge(SharedJudge(remote), catalogue, tmp_path)
        assert judge.evaluate(problem, FASTER, START)[1].comparison.speedup == 2.0
    assert len(served.judge.judged) == before + 1
    judge.evaluate(problem, FASTER, START, repeat=1)
    assert len(served.judge.judged) == before + 2


def test_no_baseline_means_that_nothing_is_compared(served: Served, catalogue: Catalogue) -> None:
    found = RemoteJudge(served.url).evaluate(catalogue.find("L1_23"), FASTER, profile=False, tier=Tier.CORRECT)
    assert (found.verdict, found.comparison) == (Verdict.CORRECT, None)


def test_a_busy_judge_is_asked_again(catalogue: Catalogue) -> None:
    queue = FairQueue(workers=1, room=0)
    with serving(catalogue, queue=queue, judging=True) as served, ThreadPoolExecutor(2) as threads:
        remote, problem = RemoteJudge(served.url), catalogue.find("L1_23")
        served.judge.gate.clear()
        both = [
            threads.submit(
                remote.evaluate, problem, kernel(Verdict.CORRECT, 2.0, note=f"// {number}\n"), baseline=START
            )
            for number in range(2)
        ]
        threading.Timer(0.3, served.judge.gate.set).start()
        assert [one.result(30).correct for one in both] == [True, True]


def test_a_failure_of_the_judges_machine_is_one_here(catalogue: Catalogue) -> None:
    with serving(catalogue, judging=True) as served:
        served.judge.lost = True
        with pytest.raises(DeviceError, match="the GPU is lost"):
            RemoteJudge(served.url).evaluate(catalogue.find("L1_23"), FASTER, baseline=START)


def test_a_problem_with_another_reference_is_refused(served: Served, catalogue: Catalogue, tmp_path: Path) -> None:
    own = catalogue.find("L1_23")
    other = tmp_path / "level1" / own.directory.name
    other.mkdir(parents=True)
    for file in own.directory.iterdir():
        (other / file.name).write_bytes(file.read_bytes())
    (other / "reference.py").write_text((other / "reference.py").read_text() + "\n# another\n")
    (problem,) = Dataset(tmp_path).problems()
    with pytest.raises(ProblemError, match="another reference"):
        RemoteJudge(served.url).evaluate(problem, FASTER, baseline=START)


def test_a_server_that_does_not_judge_for_others_says_so(catalogue: Catalogue) -> None:
    with serving(catalogue) as served, pytest.raises(DeviceError) as refused:
        RemoteJudge(served.url)
    assert "--judge" in refused.value.hint


def test_nobody_there_and_no_address() -> None:
    with pytest.raises(DeviceError):
        RemoteJudge("http://127.0.0.1:9")
    with pytest.raises(UsageError):
        RemoteJudge("localhost:8000")


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b"\xff"])
def test_an_answer_that_is_none_is_the_machines_failure(body: bytes) -> None:
    class Odd(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Odd)
    thread = threading.Thread(target=server.handle_request, daemon=True)
    thread.start()
    with pytest.raises(DeviceError):
        RemoteJudge(f"http://127.0.0.1:{server.server_port}")
    thread.join(10)
    server.server_close()


def test_a_training_is_judged_there_where_both_judge_the_same(served: Served, tmp_path: Path) -> None:
    def prompts(precision: Precision) -> dict[str, int]:
        judged = RunConfig(train=TrainConfig(judge=served.url), precision=precision, size=served.judge.workload)
        return make_training_data(tmp_path, judged, sources=[], problems=["L1_23"]).prompts

    assert prompts(served.judge.precision)[TrainingLayout(tmp_path).prompts(Stage.MIDEND).name] == 1
    with pytest.raises(UsageError, match="fp32"):
        prompts(Precision.FP32)
