"""A judge whose verdict a source states itself: `// verdict speedup decision`; what is real is all around it."""

from __future__ import annotations

import threading
from types import SimpleNamespace

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, SanitizerFinding
from kernelblaster.environment.rewards import NOT_BUILT
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.results import Comparison, Decision, ErrorFigures, Evaluation, Timing, Verdict
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.problems.problem import Precision

FACTS = DeviceFacts(
    kind=DeviceKind.CUDA, name="H200", arch="sm_90", compile_arch="sm_90a", sm_count=132, clock_mhz=1980,
    memory_bytes=1 << 37, l2_bytes=60 << 20, shared_per_block=227 << 10, shared_per_sm=228 << 10,
    registers_per_sm=65536, max_warps_per_sm=64, peak_bandwidth=4.3e12, peak_flops={}, peak_source="test",
)  # fmt: skip
LAUNCHER = "void launch_gpu_implementation(void*, void*) {}"


def kernel(verdict: Verdict, speedup: float = 1.0, decision: Decision = Decision.INCONCLUSIVE, note: str = "") -> str:
    """A source with this outcome."""
    return f"// {verdict} {speedup!r} {decision}\n{note}{LAUNCHER}\n"


def timing(median_us: float) -> Timing:
    return Timing(
        median_us=median_us, low_us=median_us, high_us=median_us, iqr_us=0.0, samples=9, floor_us=1.0,
        floor_fraction=1.0 / median_us, modelled=False,
    )  # fmt: skip


def evaluation(
    verdict: Verdict,
    speedup: float = 1.0,
    decision: Decision = Decision.INCONCLUSIVE,
    *,
    log: str = "",
    reason: str = "said",
    max_error: float = 0.5,
    totals: dict[str, float] | None = None,
) -> Evaluation:
    """An outcome as the evaluator reports it."""
    found = Evaluation(
        problem="level1/023", source_sha256="a", verdict=verdict, reason=reason, log=log, device=DeviceKind.CUDA,
        device_name="H200", arch="sm_90", precision=Precision.FP16, workload="small",
    )  # fmt: skip
    found.errors = [
        ErrorFigures(
            tensor="output", workload="small", distribution="declared", seed=1, max_error=max_error, norm_error=0.1,
            budget_ratio=2.0, worst_index=(3, 5), expected=1.0, got=2.0, passed=verdict is Verdict.CORRECT,
        )
    ]  # fmt: skip
    if verdict is Verdict.CORRECT:
        us = 100.0 / min(max(speedup, 1e-3), 1e9)
        found.timing = timing(us)
        found.comparison = Comparison(
            speedup=speedup, low=speedup, high=speedup, decision=decision, threshold=0.01, baseline=timing(100.0),
            candidate=timing(us),
        )  # fmt: skip
        if totals is not None:
            launch = KernelProfile(name="k", grid=(1, 1, 1), block=(32, 1, 1), metrics=totals)
            found.profile = Profile(source=ProfileSource.NCU, kernels=[launch], totals=totals)
    return found


class FakeJudge:
    """Counts what it is asked; `lost` makes the device fail, `gate` holds evaluations back."""

    precision = Precision.FP16
    workload = "small"
    libraries = ()
    device = SimpleNamespace(facts=FACTS)

    def __init__(self) -> None:
        self.judged: list[str] = []
        self.tiers: list[Tier] = []
        """Of all that was judged, starts among it."""
        self.baselines: list[str | None] = []
        """What each was to be compared with."""
        self.findings: list[SanitizerFinding] = []
        """Of sanitizers, in any source."""
        self.sanitized: list[str] = []
        self.lost = False
        self.gate = threading.Event()
        self.gate.set()

    def evaluate(
        self, problem, source: str, *, baseline: str | None, profile: bool, tier: Tier = Tier.FULL
    ) -> Evaluation:
        found = self._judged(source)
        found.tier = tier
        self.tiers.append(tier)
        self.baselines.append(baseline)
        if not tier.times:
            assert baseline is None
            found.timing = found.comparison = found.profile = None
        if tier is Tier.COMPILE and found.verdict not in NOT_BUILT:
            found.verdict, found.errors = Verdict.BUILT, []
        return found

    def sanitize(self, problem, source: str) -> list[SanitizerFinding]:
        self.gate.wait(10)
        if self.lost:
            raise DeviceError("the GPU is lost", hint="find it")
        self.sanitized.append(source)
        return list(self.findings)

    def _judged(self, source: str) -> Evaluation:
        self.gate.wait(10)
        if self.lost:
            raise DeviceError("the GPU is lost", hint="find it")
        self.judged.append(source)
        words = source.split("\n", 1)[0].split()
        if len(words) != 4 or words[1] not in list(Verdict):
            return evaluation(Verdict.CORRECT)
        return evaluation(Verdict(words[1]), float(words[2]), Decision(words[3]))
