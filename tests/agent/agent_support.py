"""A problem, an evaluator and a model whose behaviour is written in the sources and scripts of the tests."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from kernelblaster.agent.context import Concurrency, ProblemContext
from kernelblaster.agent.events import Event
from kernelblaster.config import SearchConfig, SearchPart
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import (
    KernelProfile,
    Profile,
    ProfileSource,
    RuleResult,
    SanitizerFinding,
    SourceLine,
    SpeedupScope,
)
from kernelblaster.evaluation.results import Comparison, Decision, Evaluation, SweepTimes, SweptVariant, Timing, Verdict
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.expressions import Condition
from kernelblaster.knowledge.schema import KnowledgeDocument, Prior, Rule, StateEntry, StateGroup, TechniqueEntry
from kernelblaster.knowledge.store import KnowledgeStore
from kernelblaster.models.base import Purpose, Reply, Request, Usage
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision, Problem, ProblemId, StandardWorkload, TensorRole, TensorSpec

START_US = 100.0
FLOOR_US = 5.0
THRESHOLD = 0.01

REFERENCE = '''"""Softmax."""
import torch
SIZES = {"small": {"batch_size": 4, "dim": 33}, "medium": {"batch_size": 64, "dim": 1000}}
class Model(torch.nn.Module):
    """Softmax over the last axis."""
    def forward(self, x):
        return torch.softmax(x, dim=1)  # the truth
'''
DRIVER = """#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim);
static void call(kb::Driver& d) { launch_gpu_implementation(d.output("output"), d.input("x"), 1, 2); }
KB_DRIVER(call)
"""

RULE = RuleResult(rule="LaunchConfiguration", text="a partial wave", percent=50.0, scope=SpeedupScope.GLOBAL)
HOT = SourceLine(line=1, waiting=0.62, reason="global memory")
FACTS = DeviceFacts(
    kind=DeviceKind.EMULATED, name="H200", arch="sm_90", compile_arch="sm_90a", sm_count=132, clock_mhz=1980,
    memory_bytes=141 * 2**30, l2_bytes=60 * 2**20, shared_per_block=227 * 1024, shared_per_sm=228 * 1024,
    registers_per_sm=65536, max_warps_per_sm=64, peak_bandwidth=4.3e12, peak_flops={"fp32": 6.7e13, "fp16": 9.9e14},
    peak_source="data sheet",
)  # fmt: skip


def kernel(speed: float = 1.0, *, tag: str = "", verdict: Verdict = Verdict.CORRECT) -> str:
    """A source that the evaluator below judges `verdict`, `speed` times as fast as the start."""
    return f"// speed: {speed}\n// verdict: {verdict}\n__global__ void k{tag}() {{}}\n"


def tunable(*speeds: float, wrong: tuple[float, ...] = ()) -> str:
    """A source that declares `speeds`, written with the first; those in `wrong` compute wrong values."""
    declared = " ".join(map(str, speeds))
    refused = "".join(f"// wrong at: {speed}\n" for speed in wrong)
    return (
        f"// TUNE SPEED {declared}\n#define SPEED {speeds[0]}\n{refused}// verdict: correct\n__global__ void t() {{}}\n"
    )


def answer(source: str, expected: float = 1.5) -> str:
    """A well-formed reply."""
    return f"EXPECTED_SPEEDUP: {expected}\n```cuda\n{source}```\n"


def edit(*changes: tuple[str, str], expected: float = 1.5) -> str:
    """A reply that replaces lines of the kernel it was shown."""
    blocks = [f"<<<<<<< SEARCH\n{search}\n=======\n{replace}\n>>>>>>> REPLACE\n" for search, replace in changes]
    return f"EXPECTED_SPEEDUP: {expected}\n{''.join(blocks)}"


def make_problem(root: Path) -> Problem:
    """A softmax problem on disk."""
    directory = root / "problem"
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "reference.py").write_text(REFERENCE)
    (directory / "driver.cpp").write_text(DRIVER)
    (directory / "init.cu").write_text(kernel(1.0, tag="start"))
    return Problem(
        id=ProblemId(1, 23),
        name="Softmax",
        directory=directory,
        workloads={
            StandardWorkload.SMALL: {"batch_size": 4, "dim": 33},
            StandardWorkload.MEDIUM: {"batch_size": 64, "dim": 1000},
        },
    )


class CommentEvaluator:
    """Reads verdict and speed out of a candidate's comments. Logs every evaluation it makes to `journal`."""

    def __init__(self, journal: Path, *, delay_s: float = 0.0, findings: list[SanitizerFinding] | None = None) -> None:
        self.device = SimpleNamespace(facts=FACTS)
        self.journal = journal
        self.process_pairs: list[int] = []
        self.sweeps: list[list[str]] = []
        self._findings = findings or []
        self._delay_s = delay_s
        self._lock = threading.Lock()

    def evaluate(
        self, problem: Problem, source: str, *, baseline: str | None, profile: bool, process_pairs: int
    ) -> Evaluation:
        self.process_pairs.append(process_pairs)
        pair = f"{source_digest(source)[:12]} {source_digest(baseline)[:12] if baseline else '-'} {profile}\n"
        if self._delay_s:
            threading.Event().wait(self._delay_s)
        with self._lock, self.journal.open("a") as journal:
            journal.write(pair)
        verdict = Verdict(re.search(r"// verdict: (\w+)", source)[1])
        written = re.search(r"#define SPEED (\S+)", source)
        if written and f"// wrong at: {written[1]}\n" in source:
            verdict = Verdict.WRONG_VALUES
        evaluation = Evaluation(
            problem=str(problem.id), source_sha256=source_digest(source), verdict=verdict, reason="", device=FACTS.kind,
            device_name=FACTS.name, arch=FACTS.arch, precision=Precision.FP16, workload=StandardWorkload.SMALL,
        )  # fmt: skip
        if verdict is not Verdict.CORRECT:
            return evaluation.model_copy(update={"reason": f"it is a {verdict}", "log": "line 7: error: boom"})
        timing = _timing(source)
        compiled = re.search(r"// machine: (.*)", source)
        evaluation.machine = {"instructions": 100, **(json.loads(compiled[1]) if compiled else {})}
        return evaluation.model_copy(
            update={
                "timing": timing,
                "comparison": _comparison(baseline, timing) if baseline else None,
                "profile": _profile(timing.median_us) if profile else None,
            }
        )

    def sweep(self, problem: Problem, sources: list[str]) -> SweepTimes:
        """`#define SPEED` takes the place of the comment's."""
        self.sweeps.append(sources)
        found = [
            SweptVariant(source_sha256=source_digest(source), median_us=_timing(source).median_us, modelled=True)
            for source in sources
        ]
        return SweepTimes(variants=found, seconds={"build": 2.0, "time": 0.25})

    def sanitize(self, problem: Problem, source: str) -> list[SanitizerFinding]:
        return self._findings

    @property
    def calls(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []


def _timing(source: str) -> Timing:
    median = START_US / float(re.search(r"// speed: ([\d.]+)|#define SPEED ([\d.]+)", source)[0].split()[-1])
    return Timing(
        median_us=median, low_us=median, high_us=median, iqr_us=0.0, samples=5, floor_us=FLOOR_US,
        floor_fraction=FLOOR_US / median, attainable_us=FLOOR_US, modelled=True, samples_us=[median] * 5,
    )  # fmt: skip


def _comparison(baseline: str, timing: Timing) -> Comparison:
    against = _timing(baseline)
    ratio = against.median_us / timing.median_us
    decision = Decision.INCONCLUSIVE
    if abs(ratio - 1) > THRESHOLD:
        decision = Decision.FASTER if ratio > 1 else Decision.SLOWER
    return Comparison(
        speedup=ratio, low=ratio, high=ratio, decision=decision, threshold=THRESHOLD, baseline=against, candidate=timing
    )


def _profile(median_us: float) -> Profile:
    metrics = {
        Metric.DURATION: median_us * 1000, Metric.DRAM_THROUGHPUT: 91.0, Metric.SM_THROUGHPUT: 12.0,
        Metric.MEMORY_THROUGHPUT: 91.0, Metric.ACHIEVED_OCCUPANCY: 80.0, Metric.STALL_LONG_SCOREBOARD: 9.5,
        Metric.LOAD_SECTOR_USE: 25.0,
    }  # fmt: skip
    named = {str(metric): value for metric, value in metrics.items()}
    one = KernelProfile(
        name="softmax_kernel", grid=(4, 1, 1), block=(256, 1, 1), metrics=named, lines=[HOT], rules=[RULE]
    )
    return Profile(source=ProfileSource.EMULATED, kernels=[one], totals=named)


class ScriptedModel:
    """Answers generate and repair requests by a function of (rollout, step, attempt); the rest by purpose.

    A script may return text, or an exception to raise. Logs every call to `journal`.
    """

    name = "scripted"

    def __init__(
        self,
        journal: Path,
        script: Callable[[int, int, int], str | Exception],
        *,
        others: dict[Purpose, str | Exception] | None = None,
        mends: str | Exception = "no repair",
        answerable: frozenset[str] | None = None,
    ) -> None:
        self.journal = journal
        self.requests: list[Request] = []
        self._script = script
        silent = {
            Purpose.REFLECT: '{"changes": []}',
            Purpose.VERIFY: '{"veto": false}',
            Purpose.LESSON: '{"lesson": ""}',
        }
        self._others = {**silent, **(others or {})}
        self._answerable = answerable
        self._mends = mends

    async def complete(self, request: Request) -> Reply:
        await asyncio.sleep(0)
        self.requests.append(request)
        with self.journal.open("a") as journal:
            journal.write(f"{request.slot}\n")
        if "/mend/" in request.slot:
            said = self._mends
        elif request.purpose in (Purpose.GENERATE, Purpose.REPAIR):
            place = re.search(r"rollout-(\d+)/step-(\d+)/attempt-(\d+)", request.slot)
            said = self._script(*(int(number) for number in place.groups()))
        else:
            said = self._others[request.purpose]
        if isinstance(said, Exception):
            raise said
        return Reply(text=said, usage=Usage(prompt_tokens=10, completion_tokens=5, dollars=0.001), model=self.name)

    def answerable(self, tags: dict[str, str]) -> frozenset[str] | None:
        return self._answerable

    @property
    def calls(self) -> list[str]:
        return self.journal.read_text().splitlines() if self.journal.exists() else []


class EventList:
    """Keeps events."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.kind == kind]


def make_context(
    root: Path, model: ScriptedModel, evaluator: CommentEvaluator | None = None, **changes
) -> ProblemContext:
    """A context over `root`; `changes` replace fields, and `rollouts=`, `steps=`... those of the search.

    `knowledge=` is the file that the experience starts from. Lessons of pairs are drawn where a test says `ablate=`.
    """
    knowledge = changes.pop("knowledge", None) or make_knowledge(root)
    search = {name: changes.pop(name) for name in list(changes) if name in SearchConfig.model_fields}
    fields = {
        "run": "run-1",
        "problem": make_problem(root),
        "op_family": OpFamily.SOFTMAX,
        "precision": Precision.FP16,
        "workload": StandardWorkload.SMALL,
        "tensors": (
            TensorSpec("x", TensorRole.INPUT, DType.FLOAT16, (4, 33)),
            TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT16, (4, 33)),
        ),
        "config": SearchConfig(
            **{"rollouts": 1, "steps": 3, "repairs": 2, "ablate": (SearchPart.PAIR_LESSONS,), **search}
        ),
        "evaluator": evaluator or CommentEvaluator(root / "evaluations.log"),
        "experience": changes.get("experience") or Experience(knowledge),
        "model": model,
        "directory": root / "out",
        "events": EventList(),
        "limits": Concurrency(evaluations=asyncio.Semaphore(2)),
    }
    return ProblemContext(**{**fields, **changes})


def make_knowledge(root: Path, *, techniques: int = 12, decided: bool = True) -> KnowledgeStore:
    """A knowledge base of two states; the evaluator's profiles lie in the first when `decided`, else in no rule."""
    names = tuple(f"technique_{number}" for number in range(techniques))
    entry = TechniqueEntry(
        category="memory", summary="Load four values at once.", how_to=("Use float4.",), checks=("Tails work.",),
        prior=Prior(p_correct=0.7, mean_log_gain=0.1),
    )  # fmt: skip
    threshold = Condition(metric=str(Metric.DRAM_THROUGHPUT), op=">=", value=85 if decided else 99)
    rule = Rule(id="dram_busy", when=threshold, confidence=0.9, because="DRAM is busy")
    estimated = Condition(metric="nsight.LaunchConfiguration", op=">=", value=10)
    tail = Rule(id="tail", when=estimated, confidence=0.3, because="Nsight estimates a tail")
    states = {
        "memory_bandwidth_saturated": StateEntry(
            group=StateGroup.MEMORY, primary_bottleneck="DRAM bandwidth", rules=(rule,), techniques=names
        ),
        "hybrid_bound": StateEntry(group=StateGroup.HYBRID, primary_bottleneck="several", techniques=names),
        "wave_quantization": StateEntry(
            group=StateGroup.LATENCY, primary_bottleneck="a tail", rules=(tail,), techniques=names
        ),
    }
    document = KnowledgeDocument(
        format="kernelblaster-knowledge-3", fallback_state="hybrid_bound", states=states,
        techniques=dict.fromkeys(names, entry),
    )  # fmt: skip
    path = root / "optimization_database.json"
    if not path.exists():
        path.write_text(document.model_dump_json())
    return KnowledgeStore(path)
