"""The shape of `optimization_database.json`, format `kernelblaster-knowledge-3`.

The file has a curated part (states, techniques) that code never rewrites, and a learned part that only grows:
statistics, lessons, changes, proposals, imported priors, verified cores. Whatever a change says (a moved threshold, a
retired technique) is computed over the curated part when the file is read; nothing is edited in place. Learned numbers
are kept per run, so that two files that share history merge without counting it twice.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.cuda_source.features import Feature
from kernelblaster.devices.facts import DeviceKind, Library
from kernelblaster.evaluation.results import Verdict
from kernelblaster.knowledge.changes import AddTechnique, KnowledgeChange, Provenance
from kernelblaster.knowledge.expressions import Expression, conditions
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

FORMAT = "kernelblaster-knowledge-3"
SECOND_FORMAT = "kernelblaster-knowledge-2"
"""Like this one, but for lessons that come from measured pairs."""
FIRST_FORMAT = "kernelblaster-knowledge-1"
"""Its statistics are gains against the parent, not credit among siblings: they are dropped when it is read."""
MOST_MIB = 256
"""Of a file; what a thousand problems teach takes a few."""
MOST_WHOLE = 64 * 1024
"""Bytes of a kernel that is kept as a whole; the kernels of the shipped seed take 3 to 31 KB."""
HOW_TO_LINES = 8
FREE_FORM = "free_form"
"""Technique id that leaves the choice to the model."""


class DocumentPart(BaseModel):
    """Base of everything in the file: immutable, and unknown keys are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class StateGroup(StrEnum):
    """Which resource a state's bottleneck belongs to."""

    MEMORY = "memory"
    COMPUTE = "compute"
    LATENCY = "latency"
    HYBRID = "hybrid"
    OVERHEAD = "overhead"


class GainForm(StrEnum):
    """How a gain follows from one metric."""

    RAISE = "raise"
    """A utilisation would come to `to`: gain = to / value."""
    REMOVE = "remove"
    """A share of the time, in percent, would go but for `1 - to` of it: gain = 1 / (1 - to * value / 100)."""


class Gain(DocumentPart):
    """What mending a cause would bring at most, by Amdahl's law on one metric."""

    form: GainForm
    metric: str
    to: float = Field(gt=0)


class Rule(DocumentPart):
    """When `when` is known to hold, the profile is in the state with this confidence."""

    id: str
    when: Expression
    confidence: float = Field(gt=0, le=1)
    because: str
    """One line: what the numbers mean."""
    gain: Gain | None = None
    """None where no number says what the state costs."""

    @model_validator(mode="after")
    def _movable_thresholds_are_unique(self) -> Self:
        movable = [condition.metric for condition in conditions(self.when) if condition.bounds is not None]
        if len(movable) != len(set(movable)):
            raise ValueError(f"rule {self.id} has two movable thresholds of one metric")
        return self


class StateEntry(DocumentPart):
    """A bottleneck pattern, its rules and the techniques worth trying under it."""

    group: StateGroup
    primary_bottleneck: str
    secondary_characteristics: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    techniques: tuple[str, ...]


class Applicability(DocumentPart):
    """Where a technique makes sense. An empty list does not restrict."""

    min_arch: int | None = None
    """Least compute capability: 80 for sm_80."""
    precisions: tuple[Precision, ...] = ()
    op_families: tuple[OpFamily, ...] = ()
    fp32_needs_tf32: bool = False
    """It rounds the inputs of fp32 problems to tf32, which their error budget does not allow."""
    library: Library | None = None
    pointless_when: tuple[Expression, ...] = ()
    """Hardware bounds: the technique is pruned when one of these is known to hold."""


class Prior(DocumentPart):
    """What is believed before any measurement, worth so many pseudo-observations."""

    p_correct: float = Field(gt=0, lt=1)
    attempts: float = Field(4.0, gt=0)
    """Pseudo-attempts behind `p_correct`."""
    mean_log_gain: float
    """Natural logarithm of the speed-up against the parent, given correct; only differences count."""
    gains: float = Field(2.0, gt=0)
    """Pseudo-observations behind `mean_log_gain`."""


class TechniqueEntry(DocumentPart):
    """An optimisation, as a prompt shows it and as selection weighs it."""

    category: str
    summary: str
    how_to: tuple[str, ...] = Field((), max_length=HOW_TO_LINES)
    checks: tuple[str, ...] = Field((), max_length=4)
    applicability: Applicability = Applicability()
    signs: tuple[Feature, ...] = ()
    """Features that a kernel gains, all of them, when this was done to it; none where no detector can tell."""
    snippet: str | None = Field(None, pattern=r"^\w+\.cu$")
    """Program below `data/kb/snippets` that shows it and checks itself."""
    prior: Prior
    imported: bool = False
    """Came from another release's file; its text was not curated here."""


class Sums(DocumentPart):
    """Additive sums over transitions."""

    attempts: int = Field(0, ge=0)
    failures: dict[Verdict, int] = {}
    n: int = Field(0, ge=0)
    """Correct, compared with the parent, and with siblings that were, too: the credits that were summed."""
    inconclusive: int = Field(0, ge=0)
    """Comparisons that could not tell the candidate from its parent."""
    sum_log: float = 0.0
    """Sum of credits: capped log gains against those of siblings (`knowledge.credit`)."""
    sum_sq_log: float = Field(0.0, ge=0)
    best: float | None = None
    """Largest decided log speed-up; None when there is none."""
    compared: int = Field(0, ge=0)
    """Correct and compared with the parent, siblings or not. 0 in files from before it was counted."""
    sum_gain: float = 0.0
    """Sum of their log speed-ups against the parent, as `best` has them; what could not be told apart adds 0."""
    sum_sq_gain: float = Field(0.0, ge=0)

    @property
    def failed(self) -> int:
        """Attempts that ended in a verdict other than `correct`."""
        return sum(self.failures.values())


class Cell(DocumentPart):
    """Key of a statistics row. Rows of different `device_kind` are never added up."""

    state: str
    technique: str
    arch: str
    device_kind: DeviceKind
    op_family: OpFamily
    precision: Precision
    weakly_verified: bool = False
    """Judged by a self-checking directory's own driver; weighs less in selection."""


class StatisticsRow(DocumentPart):
    """What one run learned about one cell."""

    run: str
    cell: Cell
    sums: Sums


class LessonCount(DocumentPart):
    """How often a lesson stood in the prompt of a step that went well or badly, in one run."""

    device_kind: DeviceKind = DeviceKind.CUDA
    """What that run's device was; counts of different kinds are never added up."""
    helpful: int = Field(0, ge=0)
    harmful: int = Field(0, ge=0)


class PairMeasurement(DocumentPart):
    """A kernel and what was made of it, both correct and measured: it speaks for a lesson, or against it."""

    transition: str
    """Digest of the transition."""
    problem: str
    op_family: OpFamily
    arch: str
    device_kind: DeviceKind
    precision: Precision
    speedup: float = Field(gt=0)
    """Parent's time / candidate's time."""
    low: float = Field(gt=0)
    high: float = Field(gt=0)
    contradicts: bool = False
    """Whether the outcome is the opposite of what the lesson says."""


class Lesson(DocumentPart):
    """One sentence that later prompts show, with its scope and its record."""

    id: str
    text: str
    state: str | None = None
    technique: str | None = None
    op_family: OpFamily | None = None
    precision: Precision | None = None
    counts: dict[str, LessonCount] = {}
    """Per run."""
    provenance: Provenance | None = None
    """None: curated."""
    pairs: tuple[PairMeasurement, ...] = ()
    """Measured pairs that it was drawn from, or that bear on it (`knowledge.pairs`); none for other lessons."""

    def record(self, kind: DeviceKind) -> tuple[int, int]:
        """How often it was helpful and how often harmful, over all runs on this kind of device."""
        counts = [count for count in self.counts.values() if count.device_kind is kind]
        return sum(count.helpful for count in counts), sum(count.harmful for count in counts)


class ChangeEntry(DocumentPart):
    """An accepted change, in effect from when it was applied."""

    id: str
    applied_at: AwareDatetime
    provenance: Provenance
    change: KnowledgeChange


class Success(DocumentPart):
    """A quarantined technique made a kernel faster."""

    transition: str
    """Digest of the transition."""
    problem: str
    device_kind: DeviceKind


class Proposal(DocumentPart):
    """A technique that a model proposed, quarantined until `knowledge.changes` finds it proven."""

    technique: AddTechnique
    provenance: Provenance
    proposed_at: AwareDatetime
    successes: tuple[Success, ...] = ()


class ImportedPrior(DocumentPart):
    """A number from another release's file: a weak belief, never a measurement."""

    state: str
    technique: str
    mean_log_gain: float
    weight: float = Field(gt=0, le=1)
    """Pseudo-observations it is worth."""
    source: str


class RunEvidence(DocumentPart):
    """Which transitions of a run are already in the statistics."""

    applied: tuple[str, ...] = ()
    """Digests."""
    sealed: bool = False
    """The digests were dropped to bound the file: nothing more is accepted from this run."""
    updated_at: AwareDatetime


class ShapeRegime(StrEnum):
    """How long a call may take at best: what a core is good at depends on it."""

    SHORT = "short"
    """Below 10 us: launches and latency count."""
    MEDIUM = "medium"
    LONG = "long"
    """From 100 us on: throughput counts."""
    UNKNOWN = "unknown"

    @classmethod
    def of(cls, attainable_us: float | None) -> ShapeRegime:
        """By the attainable time of the call, in microseconds."""
        if attainable_us is None:
            return cls.UNKNOWN
        return cls.SHORT if attainable_us < 10 else cls.MEDIUM if attainable_us < 100 else cls.LONG


class Core(DocumentPart):
    """A verified kernel that others may learn from: the code memory (see `knowledge.cores`)."""

    problem: str
    definition: str | None = None
    """Digest of what the problem computes (`Problem.definition_digest`): other data sets have its id, too. None in
    files of earlier versions."""
    op_family: OpFamily
    arch: str
    device_kind: DeviceKind
    precision: Precision
    regime: ShapeRegime
    median_us: float = Field(gt=0)
    """Of the call, as it was measured when the core was verified."""
    attainable_us: float | None = Field(None, gt=0)
    libraries: tuple[Library, ...] = ()
    source: str
    """Without comments."""
    excerpt: bool = False
    """Whether the source is the hottest kernel with what it uses, for the whole is too long to be shown."""
    whole: str | None = Field(None, max_length=MOST_WHOLE)
    """The file as it was judged, for later searches of the same problem; None where it was not kept."""

    @property
    def id(self) -> str:
        """By its code."""
        return "core-" + source_digest(self.source)[:12]

    @property
    def share(self) -> float | None:
        """Attainable time / time; None where the attainable time is not known."""
        return None if self.attainable_us is None else self.attainable_us / self.median_us


class KnowledgeDocument(DocumentPart):
    """The whole file."""

    format: Literal["kernelblaster-knowledge-3"]
    about: str = ""
    fallback_state: str
    """Where a profile goes that no rule recognises."""
    states: dict[str, StateEntry]
    techniques: dict[str, TechniqueEntry]
    lessons: tuple[Lesson, ...] = ()
    statistics: tuple[StatisticsRow, ...] = ()
    changes: tuple[ChangeEntry, ...] = ()
    proposals: dict[str, Proposal] = {}
    imported_priors: tuple[ImportedPrior, ...] = ()
    runs: dict[str, RunEvidence] = {}
    cores: tuple[Core, ...] = ()

    @model_validator(mode="after")
    def _references_resolve(self) -> Self:
        for name, state in self.states.items():
            missing = [technique for technique in state.techniques if technique not in self.techniques]
            if missing:
                raise ValueError(f"state {name} names techniques that do not exist: {', '.join(missing)}")
        if self.fallback_state not in self.states:
            raise ValueError(f"fallback state {self.fallback_state} does not exist")
        rules = [rule.id for state in self.states.values() for rule in state.rules]
        if len(rules) != len(set(rules)):
            raise ValueError("rule ids repeat")
        return self
