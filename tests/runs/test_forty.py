"""The study of forty problems: its problems are the plan's, its run goes on with today's code, nothing is lost."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shutil
import sqlite3
import sys
import tarfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "forty"))
sys.path.append(str(Path(__file__).parents[1] / "evaluation"))

from archive import EXCHANGE, pack, unpack
from fake_device import FakeDevice
from outcomes import SITTING, NearRow, Row, geometric_mean, render, rows_of, stage_seconds, two_sittings
from problems import NAMES, RESULTS, TWENTY_ONE, make_dataset, problems_of, shipped
from searching import AGAIN, DATASET, MOST_REPLIES, REPLIES, THIRD, Watch, layout_of, prepare, search, settings

from kernelblaster.agent.outcome import OutcomeStatus
from kernelblaster.errors import ExitCode
from kernelblaster.evaluation.results import Timing
from kernelblaster.evaluation.timing.torch_mode import TorchMode
from kernelblaster.models.batch_exchange import ExchangeFolder
from kernelblaster.records.baselines import BaselineRow, Ratio
from kernelblaster.records.layout import FINAL_KERNEL, RunLayout
from kernelblaster.records.run_record import read_record
from kernelblaster.records.searches import check_search, find_search
from kernelblaster.runs.pytorch_baseline import FINAL
from kernelblaster.storage.records import read_records


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_dataset(tmp_path_factory.mktemp("forty") / DATASET)


@pytest.fixture
def place(tmp_path: Path, dataset: Path) -> Path:
    """The archived run, unpacked."""
    shutil.copytree(dataset, tmp_path / DATASET)
    prepare(tmp_path)
    return tmp_path


def test_the_problems_are_those_of_the_plan(dataset: Path) -> None:
    listed = re.findall(r"level\d/\d{3}", (RESULTS / "plan.md").read_text().partition("## Search")[0])
    assert sorted(TWENTY_ONE) == sorted(listed)
    assert len(set(NAMES)) == 40
    assert [str(problem.id) for problem in problems_of(dataset)] == list(NAMES)
    assert settings(dataset).search.steps == REPLIES == 2


def test_every_search_of_the_archived_run_is_of_the_problem_as_it_is_now(place: Path) -> None:
    layout, found = layout_of(place), 0
    for problem in problems_of(place / DATASET):
        check_search(layout.problem(problem), problem)  # raises where its files are others now
        found += find_search(layout.problem(problem)) is not None
    assert found >= 26


class NoGpu(FakeDevice):
    """The GPU of the archived run, on which nothing may be built or run."""

    def __init__(self, place: Path) -> None:
        super().__init__()
        self.facts = read_record(layout_of(place).record).device

    def build(self, source: str, harness: Any, libraries: Any = ()) -> Any:
        raise AssertionError("all that is asked for here was judged before")

    def open_self_checking(self, build: Any, *, timeout_s: float) -> Any:
        raise AssertionError("none of these problems judges itself")


def test_the_archived_run_goes_on_and_asks_again_what_waits(place: Path) -> None:
    """Other code had asked: what waits is asked word for word, and what was judged holds."""
    exchange = place / EXCHANGE
    before, outstanding = asked(exchange), ExchangeFolder(exchange).outstanding()
    waiting = {name for digest in outstanding for name in re.findall(r"# Problem (level\d/\d{3})", before[digest])}
    problems = [problem for problem in problems_of(place / DATASET) if str(problem.id) in waiting]
    if not problems:
        pytest.skip("no search of the archived run waits for a reply")

    summary = search(place, settings(place, processes=1, replies=MOST_REPLIES), problems, device=NoGpu(place))

    assert [row.status for row in summary.problems] == [OutcomeStatus.WAITING] * len(problems)
    assert asked(exchange) == before
    assert set(ExchangeFolder(exchange).outstanding()) == set(outstanding)


def asked(exchange: Path) -> dict[str, str]:
    """Digest -> request."""
    lines = [line for path in sorted(exchange.glob("requests-*.jsonl")) for line in path.read_text().splitlines()]
    return {json.loads(line)["custom_id"]: line for line in lines}


@pytest.mark.parametrize(("ending", "decompress", "most"), [("gz", gzip.decompress, 6.0), ("xz", lzma.decompress, 1.5)])
def test_an_archive_holds_what_the_run_needs_and_no_place_of_it(
    place: Path, tmp_path: Path, ending: str, decompress: Callable[[bytes], bytes], most: float
) -> None:
    archive, again = tmp_path / f"again.tar.{ending}", tmp_path / "again"
    pack(place, archive)
    assert archive.stat().st_size < most * 2**20
    assert str(tmp_path).encode() not in decompress(archive.read_bytes())
    unpack(archive, again)
    before, after = (_files(root) for root in (place, again))
    changed = {name for name in before if before[name] != after.get(name)}
    assert all(name.endswith(("search.json", "summary.json", "report.html", ".sqlite")) for name in changed)
    assert _stored(place) == _stored(again)


def _files(place: Path) -> dict[str, bytes]:
    roots = [place / "out", place / EXCHANGE]
    paths = [path for root in roots for path in root.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {
        str(path.relative_to(place)): path.read_bytes() for path in paths if not path.name.endswith(("-wal", "-shm"))
    }


def _stored(place: Path) -> list[str]:
    (database,) = (place / "out").rglob("experience.sqlite")
    with closing(sqlite3.connect(database)) as connection:
        version = connection.execute("PRAGMA user_version").fetchone()
        return [str(version), *connection.iterdump()]


def test_files_that_later_ones_rest_on_are_read_after_them(place: Path, tmp_path: Path) -> None:
    pack(place, tmp_path / "run.tar.gz")
    with tarfile.open(tmp_path / "run.tar.gz") as tar:
        names = tar.getnames()
    own = [name for name in names if "/001_Square" in name]
    places = [next(i for i, name in enumerate(own) if f"/{part}/" in name) for part in ("attempts", "evaluations")]
    assert places == sorted(places)
    assert names.index(next(n for n in names if n.endswith("experience.sql"))) > names.index(own[-1])
    assert names[-1].startswith(EXCHANGE)


WRITER = """
import pathlib, signal, sys, time
place = pathlib.Path(sys.argv[1])
count = place / "out" / "starts"
count.parent.mkdir(exist_ok=True)
count.write_text(str(int(count.read_text()) + 1) if count.exists() else "1")
if sys.argv[2] == "fails": sys.exit(4)
if sys.argv[2] == "ends": sys.exit(75)
signal.signal(signal.SIGINT, lambda *_: ((place / "out" / "end").write_text("told"), sys.exit(130)))
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("how", "code", "starts"), [("ends", 75, "1"), ("fails", 4, "4"), ("goes on", int(ExitCode.INTERRUPTED), "1")]
)
def test_a_watched_start_is_given_again_interrupted_and_packed(
    tmp_path: Path, how: str, code: int, starts: str
) -> None:
    place = tmp_path / "place"
    place.mkdir()
    command = [sys.executable, "-c", WRITER, str(place), how]
    watch = Watch(command, place, tmp_path / "run.tar.gz", minutes=(1.5 if how == "goes on" else 60) / 60, every_s=0.2)
    assert watch.run() == code
    unpack(tmp_path / "run.tar.gz", tmp_path / "after")
    assert (tmp_path / "after" / "out" / "starts").read_text() == starts
    assert (tmp_path / "after" / "out" / "end").exists() == (how == "goes on")


def row(
    name: str,
    status: OutcomeStatus,
    start: float | None,
    final: float | None,
    torch: float,
    so_far: float | None = None,
) -> Row:
    return Row(name, "", status, start, so_far, final, {TorchMode.COMPILE: torch}, 1)


def test_what_counts_for_a_problem() -> None:
    improved = row("level1/001", OutcomeStatus.IMPROVED, 200.0, 50.0, 100.0)
    kept = row("level1/002", OutcomeStatus.NO_IMPROVEMENT, 200.0, None, 100.0)
    failed = row("level2/003", OutcomeStatus.FAILED, None, None, 100.0)
    assert [one.ratio for one in (improved, kept, failed)] == [2.0, 0.5, 1.0]
    assert geometric_mean([2.0, 0.5]) == pytest.approx(1.0)
    text = render([improved, kept, failed], "a GPU")
    levels = [line for line in text.splitlines() if line.startswith(("| 1 |", "| 2 |", "| all |"))]
    assert [line.split("|")[4].strip() for line in levels] == ["1.000", "1.000", "1.000"]
    assert [line.split("|")[6].strip() for line in levels] == ["1 (50%)", "0 (0%)", "1 (33%)"]


def test_a_search_that_has_not_ended_counts_with_what_it_has() -> None:
    waiting = row("level1/001", OutcomeStatus.INTERRUPTED, 200.0, None, 100.0, so_far=80.0)
    ended = row("level1/001", OutcomeStatus.NO_IMPROVEMENT, 200.0, None, 100.0, so_far=80.0)
    assert [waiting.ratio, ended.ratio] == [1.25, 0.5]


def test_what_the_second_search_measured_last_counts_also_when_it_is_slower() -> None:
    first = row("level1/001", OutcomeStatus.IMPROVED, 200.0, 80.0, 100.0)
    assert [first.ratio, replace(first, again_us=125.0).ratio] == [1.25, 0.8]


def test_a_sitting_in_turns_counts_for_the_kernel_that_it_timed_alone(place: Path) -> None:
    first = row("level1/001", OutcomeStatus.IMPROVED, 200.0, 80.0, 100.0)
    ratio = Ratio(speedup=0.9, low=0.89, high=0.91)
    timings = {name: Timing.model_construct(median_us=us) for name, us in {FINAL: 80.0, "eager": 72.0}.items()}
    times = BaselineRow.model_construct(
        problem="level1/001", timings=timings, final_against={"eager": ratio}, failures={}
    )
    timed = replace(first, near=NearRow.model_construct(kernel="", times=times))
    assert [timed.ratio, two_sittings(timed)] == [0.9, 1.25]
    left_out = replace(timed, pytorch_us={**timed.pytorch_us, TorchMode.MAX_AUTOTUNE: 68.0})
    assert left_out.ratio == 0.85, "a faster mode that the sitting left out counts"
    known = {(one.times.problem, one.kernel) for one in read_records(SITTING, NearRow)}
    for one in rows_of([layout_of(place)]):
        assert one.near is None or (one.name, one.kernel) in known


def test_the_second_search_is_of_problems_on_which_pytorch_was_faster(place: Path) -> None:
    rows = {one.name: one for one in rows_of([layout_of(place)])}
    assert all(rows[name].ended and two_sittings(rows[name]) < 1 for name in AGAIN.names)
    config = settings(place, AGAIN)
    assert config.search.rollouts * config.search.steps == MOST_REPLIES
    assert RunLayout.of(config).run != layout_of(place).run


def test_the_third_search_begins_with_what_the_first_left(
    place: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("third")
    starts = {str(problem.id): problem.init_path.read_text() for problem in prepare(folder / "third", THIRD)}
    left = layout_of(place).problem(shipped("level2/041")) / FINAL_KERNEL
    assert starts["level2/041"] == left.read_text()
    usual = {str(problem.id): problem.init_path.read_text() for problem in prepare(folder / "usual", None)}
    assert [name for name in starts if starts[name] != usual[name]] == ["level2/041"]


def test_what_judging_took_is_added_up_by_stage(place: Path) -> None:
    assert stage_seconds(layout_of(place))["verify"] > 30


def test_rows_of_the_archived_run(place: Path) -> None:
    rows = {one.name: one for one in rows_of([layout_of(place)])}
    assert set(rows) == set(NAMES)
    assert rows["level1/036"].ended
    assert rows["level1/042"].ratio == pytest.approx(4440.6 / 519.2, rel=1e-3)
    norm = rows["level1/036"]
    assert two_sittings(norm) == pytest.approx(1814.0 / 1821.5, rel=1e-3)
    assert norm.near is not None
    assert norm.ratio == norm.near.ratio.speedup, "what was timed in turns counts"
    assert not norm.faster
    assert rows["level1/001"].replies >= 1
    assert all(one.pytorch_us for one in rows.values())
