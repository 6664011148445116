"""Judges replies that improve a kernel against that kernel, side by side, into a file of rows."""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from parents import PRECISION, WORKLOAD
from rows import JudgedReply

from kernelblaster.config import EvaluationConfig, RunConfig
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.evaluator import Evaluator
from kernelblaster.evaluation.results import Decision
from kernelblaster.models.edits import parse_candidate
from kernelblaster.models.replies import UnusableReply
from kernelblaster.problems.problem import StandardWorkload
from kernelblaster.runs.choices import choose_device
from kernelblaster.runs.evaluations import find_problem
from kernelblaster.storage.jsonl import append_line, cut_torn_line

SEED = 20_261_124
"""Of the input values; no prompt tells it."""
TIMING_SECONDS = 1.0
UNUSABLE = "unusable_reply"


@dataclass(frozen=True)
class ToJudge:
    """A reply without a row.

    Attributes:
        id: of the row.
        problem: `level1/023`.
        parent: source of the kernel that it is to improve.
        reply: word for word.
    """

    id: str
    problem: str
    parent: str
    reply: str


class Bench:
    """Judges replies on one device.

    Args:
        kind: of the device.
        inputs: input sets, owned by the caller.
    """

    def __init__(self, kind: DeviceKind, inputs: InputStore) -> None:
        self._config = RunConfig(device=kind, precision=PRECISION)
        workload = WORKLOAD if kind is DeviceKind.CUDA else StandardWorkload.SMALL
        # Nobody here attacks who is beside him: replies are verified side by side, and timed alone.
        settings = EvaluationConfig(max_seconds_timing=TIMING_SECONDS, in_company=True)
        device = choose_device(self._config, tell=lambda stage: None).device
        self._evaluator = Evaluator(device, inputs, settings, workload, precision=PRECISION, seed=SEED)

    def judge(self, asked: ToJudge) -> JudgedReply:
        """Judge a reply against its parent. Raises DeviceError: the machine's failure is no row."""
        began = time.monotonic()
        facts = self._evaluator.device.facts
        row = JudgedReply(
            id=asked.id, device=facts.name, modelled=facts.kind is DeviceKind.EMULATED,
            workload=self._evaluator.workload, verdict=UNUSABLE, seconds=0,
        )  # fmt: skip
        try:
            candidate = parse_candidate(asked.reply, None)
        except UnusableReply as error:
            return row.model_copy(update={"reason": str(error), "seconds": time.monotonic() - began})
        problem = find_problem(asked.problem, self._config)
        judged = self._evaluator.evaluate(problem, candidate.source, baseline=asked.parent, profile=False)
        found: dict[str, object] = {
            "verdict": judged.verdict.value,
            "reason": judged.reason[:300],
            "stated_speedup": candidate.expected_speedup,
            "seconds": time.monotonic() - began,
        }
        if judged.comparison is not None:
            compared = judged.comparison
            faster = compared.decision is Decision.FASTER
            found |= {"speedup": compared.speedup, "low": compared.low, "high": compared.high, "faster": faster}
        return row.model_copy(update=found)


def judge_all(kind: DeviceKind, path: Path, minutes: float, workers: int, asked: Iterable[ToJudge]) -> None:
    """Judge replies until the minutes are over; a row is written as soon as it is there.

    `asked` is gone through once the file ends with a whole line, so that it may read the file.
    """
    end = time.monotonic() + 60 * minutes
    cut_torn_line(path)
    with InputStore() as inputs, ThreadPoolExecutor(workers) as pool:
        bench = Bench(kind, inputs)

        def work(one: ToJudge) -> JudgedReply | None:
            try:
                return bench.judge(one) if time.monotonic() < end else None
            except DeviceError as error:  # the machine's failure is no row: the same command judges the reply again
                print(f"{one.id} not judged: {error.message}", flush=True)
                return None

        waiting = list(asked)
        print(f"{len(waiting)} replies to judge", flush=True)
        for done in as_completed([pool.submit(work, one) for one in waiting]):
            row = done.result()
            if row is not None:
                append_line(path, row.model_dump_json().encode())
                print(f"{row.id} {row.verdict} {row.speedup or ''} ({row.seconds:.0f} s) {row.reason[:80]}", flush=True)
