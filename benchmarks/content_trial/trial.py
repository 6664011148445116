"""The content trial of docs/results/content_trial/plan.md: asks, takes replies, has them judged, and reports.

    python benchmarks/content_trial/trial.py ask FOLDER       # FOLDER/prompts/ID.txt, FOLDER/order.txt
    python benchmarks/content_trial/trial.py again FOLDER     # the prompts of the three arms once more
    python benchmarks/content_trial/trial.py pairs FOLDER     # those with a donor, and their twins without, once more
    python benchmarks/content_trial/trial.py take FOLDER      # FOLDER/replies/ID.txt, word for word
    python benchmarks/content_trial/trial.py judge [--minutes M] [--workers N] [--part 1/1] [--rows FILE]
    python benchmarks/content_trial/trial.py report

`ask` writes the prompts into docs/results/content_trial, too; asked again, it adds those of new parents. `judge` knows
ids, parents and sources, and no arms; a row is written as soon as it is there, and its reply is not judged again.
`--part 2/3` judges every third parent from the second on, for several GPUs at once, each with a file of its own; files
joined are a file. With `--device emulated` it judges at `small` into another file, which tries the command and is no
result.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.append(str(Path(__file__).parents[1]))

from analysis import PAIRED_INDEX, render
from arms import DONOR_INDEX, Arm, Asking, Prompt, in_blocks
from judging import ToJudge, judge_all
from parents import Parent, parents
from rows import PROMPTS, REPLIES, RESULTS, ROWS, AskedPrompt, GivenReply, JudgedReply, read, write
from shares import share

from kernelblaster import read_knowledge
from kernelblaster.cuda_source.features import Feature, source_features
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.relearn import curated
from kernelblaster.knowledge.store import KnowledgeStore, seed_path

_TENSOR_CORES = {Feature.WGMMA, Feature.MMA_SYNC}


def ask(folder: Path) -> None:
    """Write the prompts of all parents that were not asked before."""
    known = read(PROMPTS, AskedPrompt)
    asked_before = {prompt.parent for prompt in known}
    new = {parent.id: parent for parent in parents() if parent.id not in asked_before}
    prompts = in_blocks([prompt for parent in new.values() for prompt in _prompts(parent)])
    write(PROMPTS, known + [_asked(prompt, new[prompt.parent]) for prompt in prompts])
    _hand_out(folder, prompts)
    print(f"{len(prompts)} prompts of {len(new)} parents")


def again(folder: Path) -> None:
    """Write each prompt of the three arms once more, word for word, for another reply to it."""
    known = read(PROMPTS, AskedPrompt)
    last = max(prompt.reply for prompt in known)
    first = [prompt for prompt in known if prompt.arm is not Arm.DONOR and prompt.reply == 0]
    _ask_once_more(folder, known, first, last + 1)


def pairs(folder: Path) -> None:
    """Write each prompt with a donor once more, and the one of the knowledge arm that differs in the donor alone."""
    known = read(PROMPTS, AskedPrompt)
    with_donor = {prompt.parent for prompt in known if prompt.arm is Arm.DONOR}
    twins = [
        prompt
        for prompt in known
        if prompt.parent in with_donor and prompt.arm in (Arm.DONOR, Arm.KNOWLEDGE) and prompt.reply == DONOR_INDEX
    ]
    _ask_once_more(folder, known, twins, PAIRED_INDEX)


def _ask_once_more(folder: Path, known: Sequence[AskedPrompt], chosen: Sequence[AskedPrompt], reply: int) -> None:
    more = in_blocks([prompt.once_more(reply) for prompt in chosen])
    write(PROMPTS, [*known, *more])
    _hand_out(folder, more)
    print(f"{len(more)} prompts, reply {reply}")


def _hand_out(folder: Path, prompts: Sequence[Prompt | AskedPrompt]) -> None:
    (folder / "prompts").mkdir(parents=True, exist_ok=True)
    for prompt in prompts:
        (folder / "prompts" / f"{prompt.id}.txt").write_text(prompt.text, encoding="utf-8")
    (folder / "order.txt").write_text("".join(f"{prompt.id}\n" for prompt in prompts))


def _prompts(parent: Parent) -> list[Prompt]:
    with TemporaryDirectory() as directory:
        shipped = Path(directory) / seed_path().name
        KnowledgeStore(shipped).write(curated(read_knowledge().document))
        return list(Asking(parent, Experience(KnowledgeStore(shipped)), Path(directory) / "search").prompts())


def _asked(prompt: Prompt, parent: Parent) -> AskedPrompt:
    on_tensor_cores = bool(_TENSOR_CORES & source_features(parent.source))
    headroom = 1 / parent.call.share
    return AskedPrompt.of(prompt, source=parent.source, headroom=headroom, tensor_cores=on_tensor_cores)


def take(folder: Path) -> None:
    """Keep the replies that have come; one that was kept stays as it is."""
    kept = {reply.id: reply for reply in read(REPLIES, GivenReply)}
    for prompt in read(PROMPTS, AskedPrompt):
        path = folder / "replies" / f"{prompt.id}.txt"
        if prompt.id not in kept and path.is_file():
            kept[prompt.id] = GivenReply(id=prompt.id, text=path.read_text(encoding="utf-8"))
    write(REPLIES, [kept[name] for name in sorted(kept)])
    print(f"{len(kept)} replies")


def _unjudged(path: Path, part: tuple[int, int]) -> Iterator[ToJudge]:
    """In the order of their parents, which share inputs."""
    number, parts = part
    prompts = read(PROMPTS, AskedPrompt)
    own = set(sorted({prompt.parent for prompt in prompts})[number - 1 :: parts])
    judged = {row.id for row in read(path, JudgedReply)}
    replies = {reply.id: reply for reply in read(REPLIES, GivenReply)}
    for prompt in sorted(prompts, key=lambda prompt: (prompt.parent, prompt.id)):
        if prompt.parent in own and prompt.id in replies and prompt.id not in judged:
            yield ToJudge(prompt.id, prompt.parent.rpartition("/")[0], prompt.source, replies[prompt.id].text)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_subparsers(dest="way", required=True)
    for way in ("ask", "again", "pairs", "take"):
        ways.add_parser(way).add_argument("folder", type=Path)
    judging = ways.add_parser("judge")
    judging.add_argument("--device", type=DeviceKind, choices=list(DeviceKind), default=DeviceKind.CUDA)
    judging.add_argument("--rows", type=Path, default=ROWS)
    judging.add_argument("--part", type=share, default=(1, 1))
    judging.add_argument("--minutes", type=float, default=30)
    judging.add_argument("--workers", type=int, default=5)
    ways.add_parser("report")
    given = parser.parse_args()
    if given.way == "ask":
        ask(given.folder)
    elif given.way == "again":
        again(given.folder)
    elif given.way == "pairs":
        pairs(given.folder)
    elif given.way == "take":
        take(given.folder)
    elif given.way == "judge":
        if given.device is DeviceKind.EMULATED and given.rows == ROWS:
            parser.error("modelled times belong into another file: --rows FILE")
        judge_all(given.device, given.rows, given.minutes, given.workers, _unjudged(given.rows, given.part))
    else:
        text = render(read(PROMPTS, AskedPrompt), read(ROWS, JudgedReply))
        (RESULTS / "results.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
