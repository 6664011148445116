"""Does the judge notice wrong kernels? Derives mutants of correct kernels, judges each, and counts those it catches.

    python benchmarks/mutants.py --json FILE [--again] [--only PATTERN] [--workers N]

Sources are the starting kernels of all problems and the shipped final kernels, at size `small` in fp16 on the emulated
device; of final kernels only the device code, for their launchers choose paths by shape. Outcomes: a verdict that is
not `correct` catches a mutant; `sanitizer_error` catches it when it becomes a finalist; `survived` is a miss. With
`--again` what FILE holds is kept, but for survivors and failures of the machine, which are judged again.

Not counted: `not_compiled`, and `equivalent`: the mistake is in device code, and the PTX of all kernels that the
original launches here is what it was.
"""

from __future__ import annotations

import argparse
import fnmatch
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from mutation_rules import RULES, Mutant, derive
from pydantic import BaseModel

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.build.symbols import demangle
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.failures import BuildFailure
from kernelblaster.errors import KernelBlasterError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Verdict
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.problems.start import read_start
from kernelblaster.runs.choices import choose_device

FINAL_KERNELS = Path(__file__).resolve().parent.parent / "docs" / "results" / "h200_kernels"
EQUIVALENT, SURVIVED, NOT_COMPILED = "equivalent", "survived", "not_compiled"
UNCOUNTED = (EQUIVALENT, NOT_COMPILED, "not_emulatable")
SEED = 20_260_802
TIMEOUT_S = 20.0
"""Of one call: originals take well under a second."""
PLACES = 2
"""Of each rule in each source that become mutants."""
_NOISE = re.compile(r"^\s*(?:\.loc|\.file).*$|//.*$|(?<=_)[0-9a-f]{8}(?=_)", re.MULTILINE)
"""In PTX: line numbers, comments, and the digest of the source in names of internal symbols."""
_DEBUG = "\t.section\t.debug"
"""Begins what follows all functions."""
_FUNCTION = re.compile(r"^(?:\.(?:visible|weak|extern) )*\.(entry|func)\b", re.MULTILINE)
_ENTRY = re.compile(r"\.entry (\S+?)\(")


class MutantRow(BaseModel):
    """What became of one mutant."""

    id: str
    problem: str
    rule: str
    does: str
    line: int
    text: str
    outcome: str
    reason: str = ""
    seconds: float

    @property
    def judged(self) -> bool:
        """Whether there is an outcome; a machine that failed is none."""
        return self.outcome in (*Verdict, SURVIVED, *UNCOUNTED)

    @property
    def counted(self) -> bool:
        """Whether it is a wrong program at all."""
        return self.judged and self.outcome not in UNCOUNTED

    @property
    def caught(self) -> bool:
        """Whether the judge refuses it."""
        return self.counted and self.outcome != SURVIVED


class MutationResult(BaseModel):
    """All mutants and the share caught."""

    format: str = "kernelblaster-mutants-1"
    device: str
    input_sets: int
    sources: list[str]
    left_out: dict[str, str]
    """Sources whose original is not judged correct there -> why."""
    rows: list[MutantRow]
    seconds: float

    @property
    def share_caught(self) -> float:
        """Caught mutants over counted ones."""
        counted = [row for row in self.rows if row.counted]
        return sum(row.caught for row in counted) / len(counted)


@dataclass(frozen=True)
class Origin:
    """A correct kernel."""

    name: str
    problem: Problem
    source: str
    final: bool


def origins() -> list[Origin]:
    """Starting and final kernels of the problems that have a shipped final one, problems in order."""
    problems = list(Dataset(data_dir() / "kernelbench-cuda").select(subset="level1,level2,level3", numbers=None))
    found = []
    for problem in problems:
        level, number = str(problem.id).split("/")
        name = f"{level}_{number}"
        finals = sorted(FINAL_KERNELS.glob(f"{name}_*.cu"))
        if finals:
            found.append(Origin(f"{name}/start", problem, read_start(problem), final=False))
        for path in finals:
            found.append(Origin(f"{name}/final", problem, path.read_text(encoding="utf-8"), final=True))
    return found


class MutantJudge:
    """Judges mutants of one origin after the other on one device. Safe for many threads."""

    def __init__(self, device: Device, inputs: InputStore) -> None:
        config = EvaluationConfig(timeout_s=TIMEOUT_S)
        self._device = device
        self._evaluator = Evaluator(device, inputs, config, StandardWorkload.SMALL, precision=Precision.FP16, seed=SEED)
        self._tools = Toolchain.find()
        self._launched: dict[str, frozenset[str]] = {}

    def check(self, origin: Origin) -> str:
        """Why an origin cannot be used; empty when it is judged correct and clean."""
        evaluation = self._evaluator.evaluate(origin.problem, origin.source)
        if not evaluation.correct or evaluation.profile is None:
            return f"{evaluation.verdict}: {evaluation.reason}"
        self._launched[origin.name] = frozenset(kernel.name for kernel in evaluation.profile.kernels)
        findings = self._evaluator.sanitize(origin.problem, origin.source)
        return f"{findings[0].tool}: {findings[0].message}" if findings else ""

    def judge(self, origin: Origin, mutant: Mutant) -> MutantRow:
        """What becomes of a mutant."""
        began = time.monotonic()
        outcome, reason = self._outcome(origin, mutant)
        does = next(rule.does for rule in RULES if rule.name == mutant.rule)
        return MutantRow(
            id=mutant.id,
            problem=str(origin.problem.id),
            rule=mutant.rule,
            does=does,
            line=mutant.line,
            text=mutant.text,
            outcome=outcome,
            reason=reason[:200],
            seconds=time.monotonic() - began,
        )

    def _outcome(self, origin: Origin, mutant: Mutant) -> tuple[str, str]:
        try:
            evaluation = self._evaluator.evaluate(origin.problem, mutant.source, profile=False)
            if evaluation.verdict in (Verdict.COMPILE_ERROR, Verdict.LOAD_ERROR):
                return NOT_COMPILED, evaluation.reason
            if not evaluation.correct:
                return evaluation.verdict.value, evaluation.reason
            if mutant.on_device and self._running(origin, mutant.source) == self._running(origin, origin.source):
                return EQUIVALENT, ""
            findings = self._evaluator.sanitize(origin.problem, mutant.source)
        except KernelBlasterError as error:
            return type(error).__name__, str(error)
        if findings:
            return Verdict.SANITIZER_ERROR.value, f"{findings[0].tool}: {findings[0].message}"
        worst = max(figures.budget_ratio for figures in evaluation.errors)
        return SURVIVED, f"at most {worst:.0%} of the error budget"

    def _running(self, origin: Origin, source: str) -> list[str]:
        """PTX of the kernels that the origin launches, and of all functions that they may call.

        Raises KernelBlasterError.
        """
        try:
            build = self._device.build(source, self._device.prepare(origin.problem, Precision.FP16))
        except BuildFailure as failure:
            raise KernelBlasterError(f"does not build any more: {failure.reason}") from failure
        ptx = "" if build.ptx is None else build.ptx.read_text(encoding="utf-8").partition(_DEBUG)[0]
        text = _NOISE.sub("", ptx)
        starts = [match.start() for match in _FUNCTION.finditer(text)]
        functions = [text[begin:end] for begin, end in pairwise([*starts, len(text)])]
        symbols = [match[1] if (match := _ENTRY.search(function)) else "" for function in functions]
        names = demangle(self._tools, [symbol or "-" for symbol in symbols])
        launched = self._launched[origin.name]
        pairs = zip(functions, symbols, names, strict=True)
        return [function for function, symbol, name in pairs if not symbol or _plain(name) in launched]


def _plain(name: str) -> str:
    """A demangled kernel name as profiles have it: without the `void` that templates return."""
    return name.removeprefix("void ")


def judge_origin(judge: MutantJudge, origin: Origin, chosen: Sequence[Mutant], workers: int) -> Iterator[MutantRow]:
    """Judge mutants of one origin in parallel."""
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(lambda mutant: judge.judge(origin, mutant), chosen)


def settled(path: Path) -> dict[str, MutantRow]:
    """Rows of a result file that need not be judged again, by id; none where there is no file."""
    if not path.is_file():
        return {}
    rows = MutationResult.model_validate_json(path.read_text(encoding="utf-8")).rows
    return {row.id: row for row in rows if row.judged and row.outcome != SURVIVED}


def run(device: Device, pattern: str, workers: int, known: Mapping[str, MutantRow]) -> Iterator[MutationResult]:
    """Judge all mutants whose id matches and that are not known; after each origin, all that is known so far."""
    result = MutationResult(
        device=device.facts.name,
        input_sets=EvaluationConfig().input_sets,
        sources=[],
        left_out={},
        rows=[],
        seconds=0.0,
    )
    began = time.monotonic()
    with InputStore() as inputs:
        judge = MutantJudge(device, inputs)
        for origin in origins():
            mutants = derive(origin.name, origin.source, per_rule=PLACES)
            chosen = [m for m in mutants if fnmatch.fnmatch(m.id, pattern) and (m.on_device or not origin.final)]
            if not chosen:
                continue
            new = [mutant for mutant in chosen if mutant.id not in known]
            reason = judge.check(origin) if new else ""
            if reason:
                result.left_out[origin.name] = reason
            else:
                judged = {row.id: row for row in judge_origin(judge, origin, new, workers)}
                rows = [judged.get(mutant.id) or known[mutant.id] for mutant in chosen]
                result.sources.append(origin.name)
                result.rows.extend(rows)
                tell(origin, rows, time.monotonic() - began)
            result.seconds = time.monotonic() - began
            yield result


def tell(origin: Origin, rows: Sequence[MutantRow], seconds: float) -> None:
    """Say on standard error what became of an origin's mutants."""
    counts = ", ".join(f"{count} {name}" for name, count in Counter(row.outcome for row in rows).most_common())
    print(f"{seconds:6.0f} s {origin.name}: {counts}", file=sys.stderr)
    for row in rows:
        if row.outcome == SURVIVED or not re.fullmatch("[a-z_]+", row.outcome):
            print(
                f"         {row.outcome} {row.id} line {row.line}: {row.text} ({row.reason})",
                file=sys.stderr,
                flush=True,
            )


def main() -> None:
    """Judge, write the JSON file, print the share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, required=True)
    parser.add_argument("--again", action="store_true", help="keep what FILE holds, but for survivors")
    parser.add_argument("--only", default="*", help="ids to judge, as a shell pattern")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    device = choose_device(RunConfig(device="emulated"), lambda text: print(text, file=sys.stderr)).device
    options.json.parent.mkdir(parents=True, exist_ok=True)
    known = settled(options.json) if options.again else {}
    for result in run(device, options.only, options.workers, known):
        options.json.write_text(result.model_dump_json(indent=1) + "\n", encoding="utf-8")
    counted = [row for row in result.rows if row.counted]
    print(f"{len(result.rows)} mutants, {len(counted)} counted, {sum(row.caught for row in counted)} caught")


if __name__ == "__main__":
    main()
