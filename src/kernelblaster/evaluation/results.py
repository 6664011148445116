"""All that is known of a candidate. Pydantic, because it is written to disk and printed by `--json`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kernelblaster.devices.facts import DeviceKind
from kernelblaster.devices.failures import NO_MEMORY
from kernelblaster.devices.profiles import KernelResources, Profile
from kernelblaster.evaluation.tiers import Tier
from kernelblaster.problems.problem import Precision
from kernelblaster.problems.workload import WORKLOAD_KEYS
from kernelblaster.python_candidates.language import CandidateLanguage
from kernelblaster.sandbox.isolation import Isolation


class Verdict(StrEnum):
    """How the evaluation of a candidate ended. Only `correct` carries a time."""

    COMPILE_ERROR = "compile_error"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    WRONG_SHAPE = "wrong_shape"
    WRONG_VALUES = "wrong_values"
    NONDETERMINISTIC = "nondeterministic"
    INPUT_MUTATED = "input_mutated"
    SANITIZER_ERROR = "sanitizer_error"
    REWARD_HACK = "reward_hack"
    NOT_EMULATABLE = "not_emulatable"
    BUILT = "built"
    """Nothing is known but that it builds: it was judged at the tier `compile`."""
    CORRECT = "correct"


class ErrorFigures(BaseModel):
    """Error of one output on one input set, against the float64 reference, beside the budget."""

    model_config = ConfigDict(ser_json_inf_nan="strings")

    tensor: str
    workload: Annotated[str, Field(validation_alias=WORKLOAD_KEYS)]
    distribution: str
    """How the inputs were drawn: a name of `distributions`."""
    seed: int
    max_error: float
    """Largest |candidate - reference|; inf where the candidate is not finite and the reference is."""
    norm_error: float
    """||candidate - reference|| / ||reference||"""
    budget_ratio: float
    """Worst ratio of error to its budget, element-wise and in norm; the set passes when it is <= 1."""
    worst_index: tuple[int, ...] | None = None
    expected: float | None = None
    got: float | None = None
    passed: bool
    bitwise_repeatable: bool | None = None


class Decision(StrEnum):
    """Candidate against its baseline, beyond noise."""

    FASTER = "faster"
    SLOWER = "slower"
    INCONCLUSIVE = "inconclusive"


class Conditions(BaseModel):
    """What NVML said of the GPU while it was timed: SM clock in MHz, temperature in degrees Celsius."""

    readings: int
    sm_mhz_low: float
    sm_mhz_median: float
    sm_mhz_high: float
    temperature_low: float
    temperature_high: float
    discarded: int
    """Visits or blocks of samples thrown away because the clock was low."""


class Timing(BaseModel):
    """Whole-call time of a candidate with a cold L2, in microseconds; `low_us`/`high_us` bound the median (95 %)."""

    median_us: float
    low_us: float
    high_us: float
    iqr_us: float
    samples: int
    host_median_us: float | None = None
    floor_us: float | None
    """Roofline floor: no correct kernel can be faster on this device. None where a call's tensors are not known."""
    floor_fraction: float | None
    """floor_us / median_us"""
    attainable_us: float | None = None
    """What a well-written kernel is expected to reach (`evaluation.attainable`); it guides, and refuses nothing. None
    where a call's tensors are not known, and in records of earlier versions."""
    modelled: bool
    """True when the time comes from the emulated device's model. Never compare with a measured one."""
    executed_share: float = 1.0
    """Share of the call's blocks that were executed for a modelled time; see `Profile.executed_share`."""
    samples_us: list[float] = []
    conditions: Conditions | None = None
    """None where clocks cannot be read."""

    @property
    def headroom(self) -> float | None:
        """Time / attainable time: 1 where nothing is expected to be left, below 1 where the estimate was passed."""
        return None if self.attainable_us is None else self.median_us / self.attainable_us


class ProcessPairRatio(BaseModel):
    """Baseline time / candidate time in one pair of fresh processes, with its 95 % bootstrap interval."""

    speedup: float
    low: float
    high: float
    conditions: Conditions | None = None


class BatchEvidence(BaseModel):
    """What batches of calls, timed by the judge's own clock alone, said of a comparison; times in microseconds."""

    candidate_us: float
    """Median time of one call of a batch."""
    baseline_us: float
    calls: int
    """Calls of the candidate in one batch."""
    batches: int
    launches_hidden: bool
    """Whether the candidate's launches were issued before the device came to them; else its time holds host time."""
    most_speedup: float | None = None
    """The greatest speed-up that they bear out; None in records of earlier versions."""


class Comparison(BaseModel):
    """A paired (ABBA) comparison. `speedup` = baseline time / candidate time, with its 95 % bootstrap interval.

    One of several pairs of fresh processes has the median of their ratios for its `speedup`, and the least and the
    greatest of them for its interval; `baseline` and `candidate` are then of the pair that gave the median.
    """

    speedup: float
    low: float
    high: float
    decision: Decision
    threshold: float
    """Least effect that counts, e.g. 0.01 on a GPU."""
    baseline: Timing
    candidate: Timing
    sessions: list[ProcessPairRatio] = []
    """Each pair of processes; empty when there was one."""
    batches: BatchEvidence | None = None
    """None where nothing asked for it, and where times are modelled; of the pair that gave the median."""

    @model_validator(mode="before")
    @classmethod
    def _of_first_release(cls, given: object) -> object:
        """Files of the first release call the baseline `rival`."""
        if isinstance(given, dict) and "rival" in given:
            return {("baseline" if name == "rival" else name): value for name, value in given.items()}
        return given

    @property
    def spread(self) -> float | None:
        """(greatest - least ratio) / median over the sessions; None when there was one."""
        ratios = [session.speedup for session in self.sessions]
        return (max(ratios) - min(ratios)) / self.speedup if ratios else None


class Evaluation(BaseModel):
    """Outcome of evaluating one candidate."""

    format: str = "kernelblaster-evaluation-1"
    problem: str
    source_sha256: str
    language: CandidateLanguage = CandidateLanguage.CUDA
    verdict: Verdict
    reason: str
    """One line for a person and for the model; empty when correct."""
    log: str = ""
    """Compiler or runtime output, bounded; goes back to the model as repair input."""
    device: DeviceKind
    device_name: str
    arch: str
    precision: Precision
    workload: Annotated[str, Field(validation_alias=WORKLOAD_KEYS)]
    """Workload that was timed and profiled; meaningless, like `precision`, for a self-checking driver."""
    outputs_judged: bool = True
    """Whether outputs of that workload were compared with the reference; False where blocks may be sampled on the
    emulated device, then outputs were judged at smaller sizes alone."""
    libraries: list[str] = []
    input_sets: int | None = None
    """Input sets that a candidate must pass; `errors` holds those that were judged. None where nobody counted them."""
    errors: list[ErrorFigures] = []
    timing: Timing | None = None
    comparison: Comparison | None = None
    profile: Profile | None = None
    resources: list[KernelResources] = []
    machine: dict[str, int] | None = None
    """Features (`cuda_source.features`) of the machine code -> instructions that show them; None where nobody knows."""
    tier: Tier = Tier.FULL
    """How far it was judged; one that is correct at the tier `correct` has no times."""
    weakly_verified: bool = False
    """The problem's own driver judged the candidate; see `evaluation.self_checking` for what that is worth."""
    isolation: Isolation | None = None
    """How the candidate was kept apart from the machine; None where nobody recorded it."""
    in_company: bool = False
    """Whether it was verified beside others on the same GPU, its author being trusted to leave them alone."""
    warnings: list[str] = []
    seconds: dict[str, float] = {}
    """Wall seconds per stage: build, inputs, verify, time, profile; wait, while others used the device."""
    alone_s: float = 0.0
    """Wall seconds for which it kept others from the GPU; 0 on an emulated one, and in records of earlier versions."""

    @property
    def found_no_memory(self) -> bool:
        """Whether it failed because memory of the GPU could not be had, which in company others may hold."""
        return self.verdict is Verdict.RUNTIME_ERROR and NO_MEMORY in self.reason

    @property
    def correct(self) -> bool:
        """Whether the candidate may be timed, rewarded and remembered."""
        return self.verdict is Verdict.CORRECT

    @property
    def passed_share(self) -> float | None:
        """Share of the input sets that were passed, those never judged among the failed; None where unknown."""
        if not self.input_sets:
            return None
        sets: dict[tuple[str, str, int], bool] = {}
        for figures in self.errors:
            key = (figures.workload, figures.distribution, figures.seed)
            sets[key] = figures.passed and sets.get(key, True)
        return min(1.0, sum(sets.values()) / self.input_sets)


class SweptVariant(BaseModel):
    """What a sweep found of one variant."""

    model_config = ConfigDict(frozen=True)

    source_sha256: str
    median_us: float | None = None
    """Of its samples with a cold L2; None when it was not timed."""
    samples: int = 0
    modelled: bool
    reason: str = ""
    """Why it was not timed; empty when it was."""


class SweepTimes(BaseModel):
    """What a sweep found of all variants, in the order given."""

    model_config = ConfigDict(frozen=True)

    variants: list[SweptVariant]
    seconds: dict[str, float] = {}
    """Wall seconds per stage: build, inputs, time; wait, while others used the device."""
