"""From PyTorch to CUDA with authors who answer in text files: how many modules get a correct kernel, and how soon.

    python benchmarks/pytorch_to_cuda.py --work DIR
    python benchmarks/pytorch_to_cuda.py --work DIR --given docs/results/pytorch_to_cuda --steps 2 --modules FILE...
    python benchmarks/pytorch_to_cuda.py --work DIR --page docs/results/pytorch_to_cuda.md

Each call runs `kernelblaster run --problem FILE` on the modules in `benchmarks/pytorch_modules` until they wait for a
reply. What they ask stands in `DIR/prompts/<module>.<reply>.txt`, and `DIR/replies/` of the same names is where answers
are put; the next call takes them and goes on. With `--steps` it does not end with the first correct kernel: the search
makes so many steps from there, each of which asks for a faster one; nothing is learned from them, and nobody reviews.
`--given` names a folder of replies from earlier, which are taken as they are. `--page` writes what came of it, with
every reply, beside the page.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel
from reply_files import asked, reply_line

from kernelblaster.records.summary import read_summary

MODULES = Path(__file__).parent / "pytorch_modules"
CORRECT = "correct"
DONE, NOTHING_FASTER, WAITS = 0, 3, 75
MOST_REPLIES = 5
"""The first one and four repairs."""
WITHOUT = "pair_lessons,reflection,review"
"""Parts of the search that ask for replies which no kernel comes of here."""
HEAD = """# From PyTorch to CUDA

Made by `benchmarks/pytorch_to_cuda.py`. Each module in `benchmarks/pytorch_modules` is a KernelBench file: operation,
shapes and values of that problem, written anew. `kernelblaster run --problem FILE --precision {precision}` asks for its
first kernel, judges the reply like any candidate (at the cheap size, at undeclared extents, on other distributions),
and sends failures back, up to {repairs} times. The authors of the replies: {authors}. Judged on: {device}.
{device_note}
"""
EMULATED_NOTE = "Values are judged there; times are modelled, and shown of what was searched alone."


class Attempt(BaseModel):
    """One reply and what the judge said of it."""

    verdict: str
    reason: str


class Optimised(BaseModel):
    """What the search made of a first kernel; times in microseconds."""

    start_us: float | None
    final_us: float | None = None
    """None where nothing was faster."""
    speedup: float | None = None
    modelled: bool = True
    replies: int
    """After the first correct kernel."""
    techniques: list[str] = []
    """That were asked for, each with what came of it."""


class ModuleResult(BaseModel):
    """What became of one module."""

    module: str
    state: Literal["correct", "waiting", "given up", "failed"]
    attempts: list[Attempt]
    optimised: Optimised | None = None
    """None where the search was not asked to go on, or has not ended."""
    message: str = ""
    """Where the command itself failed."""

    @property
    def repairs(self) -> int:
        """Failures that were sent back before the last reply."""
        return len(self.attempts) - 1


class Results(BaseModel):
    """What became of all."""

    device: str
    precision: str
    authors: str
    modules: list[ModuleResult]


@dataclass(frozen=True)
class Trial:
    """One module and the folder of its run.

    Attributes:
        source: the KernelBench file.
        work: where prompts, replies and runs of all modules lie.
        options: further arguments of `kernelblaster run`.
        steps: of the search after the first correct kernel.
        given: folder of replies from earlier.
    """

    source: Path
    work: Path
    options: tuple[str, ...]
    steps: int = 0
    given: Path | None = None

    @property
    def folder(self) -> Path:
        """Of the run."""
        return self.work / "runs" / self.source.stem

    @property
    def exchange(self) -> Path:
        """Of the batch exchange."""
        return self.folder / "exchange"

    def attempts(self) -> list[Attempt]:
        """Replies that were judged, in their order."""
        written = [event for event in self._events() if event["kind"] == "start_written"]
        return [Attempt(verdict=event["verdict"], reason=event["reason"]) for event in written]

    def name(self, attempt: int) -> str:
        """Of the files of a prompt and its reply."""
        return f"{self.source.stem}.{attempt}.txt"

    def reply(self, attempt: int) -> Path | None:
        """Where a reply lies; None where nobody has given it."""
        folders = [self.work / "replies", *([] if self.given is None else [self.given])]
        return next((path for folder in folders if (path := folder / self.name(attempt)).is_file()), None)

    def take_replies(self) -> bool:
        """Hand over replies that have come for what was asked; whether there were any."""
        taken = False
        for number, (request, body) in enumerate(asked(self.exchange)):
            reply, handed = self.reply(number), self.exchange / f"replies-{number:03d}.jsonl"
            if reply is not None and not handed.exists() and (number < MOST_REPLIES or self.steps):
                handed.write_text(reply_line(request, body, reply.read_text(encoding="utf-8")), encoding="utf-8")
                taken = True
        return taken

    @property
    def _ended(self) -> Path:
        """Written when the search has ended."""
        return self.folder / "ended.txt"

    def optimised(self) -> Optimised | None:
        """What the search has come to; None as long as it has not ended."""
        if not self._ended.exists():
            return None
        (summary,) = self.folder.glob("out/**/summary.json")
        (row,) = read_summary(summary).problems
        final = row.comparison
        selected = [event for event in self._events() if event["kind"] == "selected"]
        decided = [event for event in self._events() if event["kind"] == "decided"]
        return Optimised(
            start_us=None if row.start is None else row.start.median_us,
            final_us=None if final is None else final.candidate.median_us,
            speedup=None if final is None else final.speedup,
            modelled=row.start is None or row.start.modelled,
            replies=sum(1 for _ in asked(self.exchange)) - len(self.attempts()),
            techniques=[f"{a['technique']}: {b['outcome']}" for a, b in zip(selected, decided, strict=False)],
        )

    def _events(self) -> Iterator[dict[str, Any]]:
        for path in sorted(self.folder.glob("out/**/events.jsonl")):
            yield from map(json.loads, path.read_text(encoding="utf-8").splitlines())

    def step(self) -> ModuleResult:
        """Run until it waits, and write down what it asks."""
        attempts = self.attempts()
        right = bool(attempts) and attempts[-1].verdict == CORRECT
        settled = self._ended.exists() or (right and not self.steps) or (not right and len(attempts) == MOST_REPLIES)
        message = ""
        while not settled and (self.take_replies() or not self.exchange.exists()):
            message = self._run()
            attempts = self.attempts()
            right = bool(attempts) and attempts[-1].verdict == CORRECT
            settled = bool(message) or self._ended.exists() or (right and not self.steps)
        if not right and len(attempts) == MOST_REPLIES:
            return ModuleResult(module=self.source.stem, state="given up", attempts=attempts)
        if message:
            return ModuleResult(module=self.source.stem, state="failed", attempts=attempts, message=message)
        if not self._ended.exists() and not (right and self.steps == 0):
            self._write_prompts()
        state: Literal["correct", "waiting"] = "correct" if right else "waiting"
        return ModuleResult(module=self.source.stem, state=state, attempts=attempts, optimised=self.optimised())

    def _write_prompts(self) -> None:
        for number, (_, body) in enumerate(asked(self.exchange)):
            prompt = self.work / "prompts" / self.name(number)
            prompt.parent.mkdir(parents=True, exist_ok=True)
            text = "\n\n".join(f"[{one['role']}]\n{one['content']}" for one in body["messages"])
            prompt.write_text(text, encoding="utf-8")

    def _run(self) -> str:
        """Go on until the model is asked; what went wrong, or nothing."""
        command = [sys.executable, "-m", "kernelblaster", "run", "--problem", str(self.source)]
        command += ["--model-kind", "batch_exchange", "--model", "authors", "--exchange", str(self.exchange)]
        command += ["--out", str(self.folder / "out"), "--set", f"search.first_attempts={MOST_REPLIES}"]
        command += ["--rounds", "1", "--rollouts", "1", "--steps", str(max(self.steps, 1)), "--ablate", WITHOUT]
        command += self.options
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "log.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
        if done.returncode in (DONE, NOTHING_FASTER):
            self._ended.write_text(f"{done.returncode}\n", encoding="utf-8")
        if done.returncode in (DONE, NOTHING_FASTER, WAITS) or self.attempts():
            return ""
        return done.stderr.strip()[-500:] or f"exit code {done.returncode}"


def page(results: Results, replies: str) -> Iterator[str]:
    """The page, whose links to replies begin with `replies`."""
    note = EMULATED_NOTE if "emulated" in results.device else ""
    yield HEAD.format(
        precision=results.precision,
        repairs=MOST_REPLIES - 1,
        authors=results.authors,
        device="the emulated H200" if note else results.device,
        device_note=note,
    )
    ended = [one for one in results.modules if one.state != "waiting"]
    right = [one for one in ended if one.state == "correct"]
    yield (
        f"**{len(right)} of {len(ended)} modules became correct**: "
        + ", ".join(
            f"{count} after {repairs} repair{'' if repairs == 1 else 's'}"
            for repairs, count in sorted(Counter(one.repairs for one in right).items())
        )
        + "."
    )
    waiting = [one.module for one in results.modules if one.state == "waiting"]
    yield f"\nNot answered to the end: {', '.join(waiting)}.\n" if waiting else ""
    yield "| module | outcome | replies | verdicts in their order |"
    yield "|---|---|---|---|"
    for one in results.modules:
        verdicts = [
            f"[{attempt.verdict}]({replies}/{one.module}.{number}.txt)" for number, attempt in enumerate(one.attempts)
        ]
        yield f"| {one.module} | {one.state} | {len(one.attempts)} | {', '.join(verdicts) or '-'} |"
    yield "\n## What was wrong\n"
    yield from list(_faults(results)) or ["Nothing."]
    yield from _stage(results, replies)


def _stage(results: Results, replies: str) -> Iterator[str]:
    """What the search made of first kernels; nothing where none was searched."""
    searched = [(one, one.optimised) for one in results.modules if one.optimised is not None]
    if not searched:
        return
    times = "modelled" if all(found.modelled for _, found in searched) else "measured"
    yield "\n## The optimisation stage\n"
    yield (
        "The same run goes on: the first kernel is profiled, and each step asks for a faster one. Times of the whole "
        f"call at the size that was searched, in microseconds, {times}; the final kernel is compared with the first "
        "one again.\n"
    )
    yield "| module | first kernel | final kernel | speed-up | replies | what was asked for |"
    yield "|---|---:|---:|---:|---|---|"
    for one, found in searched:
        first, final = (_number(us) for us in (found.start_us, found.final_us))
        gained = "nothing was faster" if found.speedup is None else f"{found.speedup:.2f}x"
        begun = len(one.attempts)
        links = ", ".join(f"[{n}]({replies}/{one.module}.{n}.txt)" for n in range(begun, begun + found.replies))
        yield f"| {one.module} | {first} | {final} | {gained} | {links} | {'; '.join(found.techniques)} |"


def _number(us: float | None) -> str:
    return "-" if us is None else f"{us:.1f}"


def _faults(results: Results) -> Iterator[str]:
    for one in results.modules:
        if one.message:
            yield f"- {one.module}: {one.message}"
        for number, attempt in enumerate(one.attempts):
            if attempt.verdict != CORRECT:
                yield f"- {one.module}, reply {number}, {attempt.verdict}: {attempt.reason}"


def write_results(results: Results, work: Path, target: Path) -> None:
    """The page, its data and all replies."""
    kept = target.with_suffix("")
    kept.mkdir(parents=True, exist_ok=True)
    for one in results.modules:
        for number in range(len(one.attempts) + (one.optimised.replies if one.optimised is not None else 0)):
            name = f"{one.module}.{number}.txt"
            if (work / "replies" / name).exists() or not (kept / name).exists():
                shutil.copyfile(work / "replies" / name, kept / name)
    target.with_suffix(".json").write_text(results.model_dump_json(indent=1) + "\n", encoding="utf-8")
    target.write_text("\n".join(page(results, kept.name)) + "\n", encoding="utf-8")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of prompts, replies and runs")
    parser.add_argument("--modules", type=Path, nargs="*", help="KernelBench files; those that ship if not given")
    parser.add_argument("--device", default="emulated")
    parser.add_argument("--precision", default="fp16")
    parser.add_argument("--authors", default="unnamed")
    parser.add_argument("--steps", type=int, default=0, help="of the search after the first correct kernel")
    parser.add_argument("--given", type=Path, help="folder of replies from earlier")
    parser.add_argument("--page", type=Path)
    given = parser.parse_args(arguments)
    modules = given.modules or sorted(MODULES.glob("*.py"))
    options = ("--device", given.device, "--precision", given.precision)
    outcomes = []
    for module in modules:
        earlier = None if given.given is None else given.given.resolve()
        outcomes.append(Trial(module.resolve(), given.work.resolve(), options, given.steps, earlier).step())
        last = outcomes[-1]
        print(f"{last.module}: {last.state}, {len(last.attempts)} replies judged", flush=True)
    results = Results(device=given.device, precision=given.precision, authors=given.authors, modules=outcomes)
    given.work.mkdir(parents=True, exist_ok=True)
    (given.work / "results.json").write_text(results.model_dump_json(indent=1), encoding="utf-8")
    if given.page is not None:
        write_results(results, given.work, given.page)


if __name__ == "__main__":
    main()
