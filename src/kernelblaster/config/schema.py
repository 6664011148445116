"""Every setting of a run, with its type, range, default and meaning."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, SecretStr, model_validator

from kernelblaster.config.section import Section
from kernelblaster.config.training import TrainConfig
from kernelblaster.devices.facts import Library
from kernelblaster.problems.problem import Precision

DATASET = "kernelbench-cuda"
"""The shipped data set."""
AUTOMATIC = "auto"
"""The kind of model or device that is chosen by what is there."""
GIVEN = "given"
"""The kind of a model that a caller made itself."""


class ModelKind(StrEnum):
    """Where candidates come from."""

    OPENAI_API = "openai_api"
    BATCH_EXCHANGE = "batch_exchange"
    RECORDED = "recorded"


class SearchPart(StrEnum):
    """Parts of the search that can be switched off, each with what it does."""

    about: str

    def __new__(cls, name: str, about: str) -> Self:
        member = str.__new__(cls, name)
        member._value_ = name
        member.about = about
        return member

    RETRIEVAL = "retrieval", "a technique is retrieved for each step; without, the model tries what it likes"
    MEMORY = "memory", "what was measured before counts in that choice; without, the curated priors alone"
    CLASSIFICATION = "classification", "the bottleneck is named; without, all kernels are in the fallback state"
    LESSONS = "lessons", "prompts show lessons of earlier rounds"
    PAIR_LESSONS = (
        "pair_lessons",
        "the model draws lessons from measured pairs of slow and fast code, and prompts show them",
    )
    EXPERIENCE = "experience", "prompts tell how often the technique was right, and how fast"
    HYPOTHESES = "hypotheses", "prompts rank three techniques, or better, instead of ordering one"
    HISTORY = "history", "prompts tell what the rollout has tried"
    PROFILE = "profile", "prompts show hardware counters"
    TILES = "tiles", "prompts tell how the launch fills the GPU: blocks per SM and what limits them, waves, the tail"
    HOT_LINES = "hot_lines", "prompts show the source lines at which warps wait most"
    NSIGHT_RULES = "nsight_rules", "results of Nsight's rules are evidence for bottlenecks"
    SASS_CREDIT = "sass_credit", "machine code confirms or refutes what a reply did, before it is credited"
    RECALL = "recall", "a search begins with its problem's own verified kernel, if one is known, right and faster"
    CODE_MEMORY = "code_memory", "half of the prompts show a verified kernel of another problem; winners are remembered"
    SWEEP = "sweep", "the machine tries the values that a reply declares as tunable, and judges the fastest variant"
    ARCHIVE = (
        "archive",
        "replies go to the most promising kernels of an archive; without, each rollout is a chain of steps",
    )
    EDITS = "edits", "a reply may hold edits of the kernel it was shown instead of a whole file"
    REPAIRS = "repairs", "compile errors and wrong results go back to the model"
    REFLECTION = "reflection", "the model proposes changes of the knowledge base after each round"
    REVIEW = "review", "the model may veto the final kernel"


def _listed(value: Any) -> Any:
    """`none`, or names between commas, as variables and options give a list."""
    if not isinstance(value, str):
        return value
    names = sorted({part.strip().lower() for part in value.split(",")} - {""})
    return [] if names == ["none"] else names


def _between_commas(value: Any) -> Any:
    """`none`, or items between commas that keep their case."""
    if not isinstance(value, str):
        return value
    items = [part.strip() for part in value.split(",") if part.strip()]
    return [] if [item.lower() for item in items] == ["none"] else items


class SearchConfig(Section):
    """Width, depth and patience of the search. Defaults are upstream's."""

    rounds: int = Field(1, ge=1, le=1000)
    """Rounds of rollouts; each ends with reflection, and the next starts from the best kernel so far."""
    rollouts: int = Field(10, ge=1, le=1000)
    """Rollouts (chains of steps) per round, side by side."""
    steps: int = Field(10, ge=1, le=1000)
    """Steps per rollout: one technique, one candidate and its repairs."""
    first_attempts: int = Field(6, ge=1)
    """Replies in which the model may write a correct first kernel, for a problem that has none."""
    repairs: int = Field(3, ge=0)
    """Times a compile error or wrong result goes back to the model, per step."""
    islands: int = Field(2, ge=1, le=100)
    """Groups of rollouts that improve their own kernels; one reply of a round joins the fastest of two groups."""
    sweep_variants: int = Field(24, ge=2, le=64)
    """Variants of a reply that declares tunable constants that are compiled and timed at most, itself among them."""
    lesson_pairs: int = Field(2, ge=1, le=20)
    """Pairs of slow and fast code from which lessons are drawn after each generation of the archive, at most."""
    patience: int = Field(4, ge=1)
    """Steps in a row without an accepted candidate after which a rollout stops."""
    process_pairs: int = Field(5, ge=1, le=1000)
    """Pairs of fresh processes in which a finalist is measured against the start."""
    least_headroom: float = Field(1.05, gt=0, allow_inf_nan=False)
    """Time / attainable time below which a rollout stops, unless PyTorch is known to be faster still."""
    seed: int = 0
    """Seed of technique selection; input seeds are drawn per run by the judge."""
    reflect: bool = True
    """Ask the model after each round for changes of the knowledge base."""
    soft_verify: bool = True
    """Ask the model to veto the final kernel."""
    policy: str = "thompson"
    """How techniques are chosen: thompson, ucb, greedy, uniform, or a registered policy."""
    ablate: Annotated[tuple[SearchPart, ...], BeforeValidator(_listed)] = ()
    """Parts of the search to switch off, for comparison: retrieval, memory, classification, lessons, pair_lessons,
    experience, hypotheses, history, profile, tiles, hot_lines, nsight_rules, sass_credit,
    recall, code_memory, sweep, archive, edits, repairs, reflection, review."""

    def has(self, part: SearchPart) -> bool:
        """Whether a part of the search is switched on."""
        switched = {SearchPart.REFLECTION: self.reflect, SearchPart.REVIEW: self.soft_verify}
        return part not in self.ablate and switched.get(part, True)

    @property
    def allowed_repairs(self) -> int:
        """Repairs per step; none where they are switched off."""
        return self.repairs if self.has(SearchPart.REPAIRS) else 0

    @model_validator(mode="before")
    @classmethod
    def _earlier_names(cls, given: Any) -> Any:
        """`run.json` of earlier versions says `sessions`."""
        if isinstance(given, dict) and "sessions" in given:
            given = {**given, "process_pairs": given["sessions"]}
            del given["sessions"]
        return given


class BudgetConfig(Section):
    """Hard caps of a run; none where no value is given, but for the cap on what a model may charge."""

    dollars: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Dollars for the whole run. If neither dollars nor tokens are given: 10 where every model's price is known."""
    tokens: int | None = Field(None, gt=0)
    """Tokens for the whole run. If neither dollars nor tokens are given: 10 million where a price is unknown."""
    minutes: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Minutes for the whole run, earlier starts included."""
    problem_minutes: float = Field(480, gt=0, allow_inf_nan=False)
    """Minutes per problem."""


class ModelConfig(Section):
    """Who writes candidates, and how it is reached."""

    kind: str = AUTOMATIC
    """openai_api, batch_exchange, recorded, or auto: a recording where one is named, the API where a key or URL is set,
    else the shipped recording."""
    name: str = "gpt-5-mini-2025-08-07"
    """Model name."""
    stages: Annotated[tuple[str, ...], BeforeValidator(_between_commas)] = ()
    """Other models of the same endpoint for single purposes (generate, repair, classify, reflect, verify, lesson), such
    as repair=gpt-5-nano-2025-08-07, or several by weight: generate=gpt-5*1+gpt-5-mini*3; for openai_api alone.
    What they charge is known of OpenAI's own, or told by `prices`."""
    prices: Annotated[tuple[str, ...], BeforeValidator(_between_commas)] = ()
    """Dollars per million prompt and completion tokens of several models, such as gpt-5=1.25:10,gpt-5-mini=0.25:2; a
    third number is the price of cached prompt tokens. A name stands for its dated snapshots, too, as `name` does
    for the one price set below or by `--price`, which wins."""
    base_url: str | None = None
    """Chat completions endpoint; OpenAI's if not given."""
    api_key: SecretStr | None = None
    """Key of the endpoint. It is never written down."""
    recording: Path | None = None
    """Recording to replay, the shipped one if not given; with a kind that asks a model, the recording that is made."""
    concurrency: int = Field(8, ge=1)
    """Requests in flight at once."""
    timeout_s: float = Field(600, gt=0, allow_inf_nan=False)
    """Seconds that the model may take for one reply."""
    stream: bool = True
    """Have replies streamed, where the endpoint does that, so that one that stalls is noticed."""
    idle_timeout_s: float = Field(60, gt=0, allow_inf_nan=False)
    """Seconds without anything new, once the text of a streamed reply has begun, after which it is cut short."""
    max_retries: int = Field(5, ge=0)
    """Times a request that failed for a passing reason is sent again."""
    max_completion_tokens: int | None = Field(None, gt=0)
    """Tokens of one reply at most; the endpoint's limit if not given."""
    temperature: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Sampling temperature. Sent only when set: reasoning models refuse it."""
    top_p: float | None = Field(None, gt=0, le=1)
    """Share of the probability that is sampled from. Sent only when set."""
    reasoning_effort: str | None = Field(None, min_length=1, max_length=32)
    """How long a reasoning model thinks: low, medium, high, or what the endpoint knows. Sent only when set."""
    dollars_per_million_prompt: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Price of a million prompt tokens of `name`."""
    dollars_per_million_cached_prompt: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Price of a million prompt tokens of `name` that the endpoint had cached; that of others if not given."""
    dollars_per_million_completion: float | None = Field(None, ge=0, allow_inf_nan=False)
    """Price of a million completion tokens of `name`."""


class EvaluationConfig(Section):
    """How hard a candidate is checked and timed."""

    input_sets: int = Field(10, ge=1, le=1000)
    """Input sets (seed x distribution) a candidate must pass; 10 are all nine distributions and the set that is timed.
    Unless it is 1, two sets at extents that no prompt shows are added, three of a normalisation."""
    judged_calls: int = Field(3, ge=1, le=10)
    """Timed calls of a process that are judged; one where there is no room for the outputs of more."""
    all_sets: bool = False
    """Go on after wrong values and count the sets of the cheap size that pass, for rewards by degrees."""
    error_factor: float = Field(2.0, gt=0, allow_inf_nan=False)
    """Error that is allowed, as a multiple of a plain implementation's error."""
    timeout_s: float = Field(60, gt=0, allow_inf_nan=False)
    """Seconds that a candidate may take for one call."""
    max_seconds_timing: float = Field(3.0, gt=0, allow_inf_nan=False)
    """GPU seconds per comparison."""
    memory_gb: float = Field(64, gt=0, allow_inf_nan=False)
    """Host memory of a candidate's process, in GiB; three quarters of the host's at most."""
    emulated_sample: float = Field(20, ge=0, allow_inf_nan=False)
    """Emulated, at sizes above small: million warp instructions of a launch that are enough; outputs are then not
    judged there. 0 executes and judges everything."""
    file_gb: float = Field(8, gt=0, allow_inf_nan=False)
    """Largest file a candidate may write, in GiB; all its files but outputs together may be twice as large."""
    concurrency: int = Field(0, ge=0)
    """Candidates judged at once; 0: one per CPU core. On a GPU one of them runs while others compile."""
    profiler: str = "device"
    """What counts: device (ncu on a GPU, counts on the emulated one), events (times only), or a registered profiler."""
    compile_jobs: int = Field(0, ge=0)
    """Candidates compiled at once; 0: as many as are judged."""
    processes: int = Field(1, ge=1, le=64)
    """Processes of a run that judge, each the candidates of problems of its own. Several pay off where many problems
    are searched at once; on a GPU with `in_company`."""
    gpus: Annotated[tuple[str, ...], BeforeValidator(_between_commas)] = ()
    """GPUs of one kind that these processes take in turns, named as in CUDA_VISIBLE_DEVICES: 0,1,2; a problem stays on
    one. None named: all on the first that is visible."""
    in_company: bool = False
    """Trust the authors of candidates to leave other candidates alone: on a GPU they are then verified and sanitized
    side by side, in this process and in others, and hold it alone only while they are timed and counted."""


class RunConfig(Section):
    """Everything a run is given; written to `run.json`, the key left out."""

    dataset: str = DATASET
    """Name of a shipped data set."""
    precision: Precision = Precision.FP16
    """Storage type of floating-point tensors: fp16, fp32 or bf16."""
    experiment: str = "timing_analysis"
    """Name under which results collect."""
    out: Path = Path("out")
    """Directory in which runs are kept."""
    device: str = AUTOMATIC
    """cuda, emulated, a registered device, or auto: cuda where a GPU is found, else emulated."""
    gpu_type: str | None = None
    """a100, l40s, h100, h200, ...: checked against the GPU found; emulated: the architecture."""
    size: str | None = None
    """Size (workload) that is timed and profiled, by name: small if emulated, else medium, if not given."""
    libraries: Annotated[tuple[Library, ...], BeforeValidator(_listed)] = ()
    """Libraries a candidate may call: none, or cublas,cudnn,cutlass."""
    knowledge_base: Path | None = None
    """Knowledge base to start from; the experiment's own if not given, else the shipped one, which holds what was
    measured by architecture."""
    concurrency: int = Field(4, ge=1)
    """Problems in flight at once."""
    search: SearchConfig = SearchConfig()
    budget: BudgetConfig = BudgetConfig()
    model: ModelConfig = ModelConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
    train: TrainConfig = TrainConfig()
