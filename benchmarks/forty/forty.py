"""The study of docs/results/forty/plan.md: makes its problems, runs its search in pieces, and writes its results.

    python benchmarks/forty/forty.py dataset FOLDER           # the forty problems with the starts that the plan names
    python benchmarks/forty/forty.py run [--minutes 9]        # one piece of the search, on an H200
    python benchmarks/forty/forty.py keep ARCHIVE             # into docs/results/forty: run.tar.xz and the requests
    python benchmarks/forty/forty.py prompts FOLDER           # FOLDER/ID.md for each request without a reply
    python benchmarks/forty/forty.py replies FOLDER           # FOLDER/ID.md, where written, become replies
    python benchmarks/forty/forty.py table                    # docs/results/forty/results.md, README.md
    python benchmarks/forty/forty.py unpack FOLDER | pack FOLDER [ARCHIVE]

`--study forty_again` before the way is the second search, of problems on which PyTorch was still faster, and
`forty_third` the third, of two products (`run --replies 1`: six at once); they are kept in docs/results/forty/again and
docs/results/forty/third. `run` goes on from run.tar.xz with the replies that have come. It writes its
archive again and again (`--archive`, which `keep` takes), so that whatever ends it costs seconds. The same command goes
on from what lies in `--place`. Without a GPU, `--device emulated --size small --names level1/023` rehearses it; that is
no result, and `keep` refuses it.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import headline
from archive import EXCHANGE, pack, unpack
from outcomes import render, rows_of, shipped_times_of, stage_seconds
from problems import NAMES, RESULTS, make_dataset
from reply_files import hand_in, write_prompts
from searching import (
    DATASET,
    FIRST,
    PROCESSES,
    REPLIES,
    STUDIES,
    Study,
    Watch,
    interrupted_by_sigterm,
    layout_of,
    prepare,
    search,
    settings,
    unpacked,
)

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import ExitCode, KernelBlasterError
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.problem import StandardWorkload
from kernelblaster.records.run_record import read_record

PLACE = Path(tempfile.gettempdir()) / "kernelblaster-forty"


def run(given: argparse.Namespace) -> int:
    """A watched start, in pieces of so many minutes."""
    prepare(given.place, given.study if given.device == DeviceKind.CUDA else None)
    asked = [
        "--device",
        given.device,
        "--size",
        given.size,
        "--processes",
        str(given.processes),
        "--gpus",
        *given.gpus,
        "--replies",
        str(given.replies),
        "--names",
        *given.names,
    ]
    started = ["--study", given.study.experiment, "start", "--place", str(given.place)]
    command = [sys.executable, __file__, *started, *asked]
    interrupted_by_sigterm()
    code = Watch(command, given.place, given.archive, given.minutes).run()
    spent = stage_seconds(layout_of(given.place, given.study))
    print("seconds of judging: " + ", ".join(f"{name} {seconds:.0f}" for name, seconds in spent.most_common()))
    print(f"ended with {code}; {given.archive} goes to `keep`", flush=True)
    return code


def start(given: argparse.Namespace) -> int:
    """One start, in this process."""
    config = settings(
        given.place,
        given.study,
        device=given.device,
        size=given.size,
        processes=given.processes,
        gpus=given.gpus,
        replies=given.replies,
    )
    problems = [find_problem(name, given.place / DATASET) for name in given.names]
    try:
        return int(search(given.place, config, problems).exit_code)
    except KernelBlasterError as error:
        print(f"{error.message}\n{error.hint}", flush=True)
        return int(error.exit_code)
    except KeyboardInterrupt:
        return int(ExitCode.INTERRUPTED)


def keep(archive: Path, study: Study) -> None:
    """Put an archive of the search on an H200, and the requests in it, where they are kept."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        unpack(archive, place)
        record = read_record(layout_of(place, study).record)
        if record.device.kind is not DeviceKind.CUDA or record.workload != StandardWorkload.FULL:
            raise SystemExit(f"{archive} holds a search on {record.conditions}: a rehearsal, and no result")
        (study.results / EXCHANGE).mkdir(parents=True, exist_ok=True)
        pack(place, study.archive)
        for requests in sorted((place / EXCHANGE).glob("requests-*.jsonl")):
            shutil.copyfile(requests, study.results / EXCHANGE / requests.name)


def table() -> None:
    """Write the page of results, and what README.md says of them."""
    with tempfile.TemporaryDirectory() as folder:
        layouts = [unpacked(study, Path(folder) / name) for name, study in STUDIES.items() if study.archive.exists()]
        record = read_record(layouts[0].record)
        rows, gpu = rows_of(layouts), record.device.name
    known = (shipped_times_of(row.name, record.device) for row in rows)
    torch = " and ".join(sorted({times.torch for times in known if times is not None}))
    text = render(rows, f"{gpu}, driver {record.device.driver_version}")
    (RESULTS / "results.md").write_text(text, encoding="utf-8")
    headline.write(rows, gpu, torch)


def main() -> int:
    """See the module."""
    given = _parser().parse_args()
    given.study = STUDIES[given.study]
    if given.way == "dataset":
        make_dataset(given.folder)
    elif given.way == "unpack":
        unpack(given.study.archive, given.folder)
    elif given.way == "pack":
        pack(given.folder, given.archive or given.study.archive)
    elif given.way == "keep":
        keep(given.archive, given.study)
    elif given.way in ("prompts", "replies"):
        act = write_prompts if given.way == "prompts" else hand_in
        print("\n".join(act(given.study.results / EXCHANGE, given.folder)))
    elif given.way == "table":
        table()
    else:
        given.names = given.names or given.study.names
        return run(given) if given.way == "run" else start(given)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--study", choices=STUDIES, default=FIRST.experiment, help="the first search, or one that came later"
    )
    ways = parser.add_subparsers(dest="way", required=True)
    for name in ("dataset", "unpack", "pack", "prompts", "replies"):
        ways.add_parser(name).add_argument("folder", type=Path)
    ways.choices["pack"].add_argument("archive", type=Path, nargs="?")
    ways.add_parser("keep").add_argument("archive", type=Path)
    ways.add_parser("table")
    for name in ("run", "start"):
        way = ways.add_parser(name)
        way.add_argument("--place", type=Path, default=PLACE)
        way.add_argument("--device", default=str(DeviceKind.CUDA))
        way.add_argument("--size", default=str(StandardWorkload.FULL))
        way.add_argument("--processes", type=int, default=PROCESSES)
        way.add_argument("--gpus", nargs="*", default=[], metavar="GPU", help="as in CUDA_VISIBLE_DEVICES")
        way.add_argument("--replies", type=int, default=REPLIES, help="to each of the problems")
        way.add_argument("--names", nargs="+", default=[], choices=NAMES, metavar="NAME")
    ways.choices["run"].add_argument("--minutes", type=float, default=9.0)
    ways.choices["run"].add_argument("--archive", type=Path, default=PLACE / "run.tar.gz")
    return parser


if __name__ == "__main__":
    sys.exit(main())
