"""The one configuration object. The command line and the environment fill it; everything else reads it.

Environment names are upstream's (see README): MODEL, GPU_TYPE, DATASET, PRECISION, EXPERIMENT_NAME,
RL_EXPERIMENT_NAME, OPENAI_API_KEY, OPENAI_BASE_URL. A `.env` file in the working directory is read.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from pydantic import BaseModel, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from kernelblaster.devices.facts import Library
from kernelblaster.problems.problem import Precision


class ModelKind(StrEnum):
    """Where candidates come from."""

    OPENAI_API = "openai_api"
    BATCH_EXCHANGE = "batch_exchange"
    RECORDED = "recorded"


DATASET = "kernelbench-cuda"
"""The shipped data set."""
AUTOMATIC = "auto"
"""The kind of model or device that is chosen by what is there."""
GIVEN = "given"
"""The kind of a model that a caller made itself."""


class SearchConfig(BaseModel):
    """Width, depth and patience of the search. Defaults are upstream's."""

    rounds: int = Field(1, ge=1)
    """Rounds of rollouts; each ends with reflection, and the next starts from the best kernel so far."""
    rollouts: int = Field(10, ge=1)
    """Chains per round, fanned out."""
    steps: int = Field(10, ge=1)
    """Transitions per rollout."""
    repairs: int = Field(3, ge=0)
    """Times a compile error or wrong result goes back to the model, per step."""
    patience: int = Field(4, ge=1)
    """A rollout stops after this many steps in a row without an accepted candidate."""
    sessions: int = Field(5, ge=1)
    """Pairs of fresh processes in which a finalist is measured against the start."""
    near_floor: float = Field(0.9, gt=0, le=1)
    """A rollout stops when floor time / its time exceeds this."""
    seed: int = 0
    """Seeds technique selection; input seeds are drawn per run by the judge."""
    reflect: bool = True
    """Ask the model for typed knowledge base changes after the rollouts of a problem."""
    soft_verify: bool = True
    """Ask the model to veto the final kernel."""


class BudgetConfig(BaseModel):
    """Hard caps. None means no cap."""

    dollars: float | None = Field(None, gt=0)
    tokens: int | None = Field(None, gt=0)
    minutes: float | None = Field(None, gt=0)
    """Wall time of the whole run."""
    problem_minutes: float = Field(480, gt=0)
    """Wall time per problem."""


class ModelConfig(BaseModel):
    """Which model, and how it is reached."""

    kind: str = AUTOMATIC
    """A `ModelKind`, or `auto`: a recording where one is named, the API where a key or URL is set, else the shipped
    recording."""
    name: str = "gpt-5-mini-2025-08-07"
    base_url: str | None = None
    api_key: SecretStr | None = None
    recording: Path | None = None
    concurrency: int = Field(8, ge=1)
    timeout_s: float = Field(600, gt=0)
    max_retries: int = Field(5, ge=0)
    max_completion_tokens: int | None = Field(None, gt=0)
    temperature: float | None = Field(None, ge=0)
    """Sent only when set: reasoning models refuse it."""
    dollars_per_million_prompt: float | None = Field(None, ge=0)
    dollars_per_million_completion: float | None = Field(None, ge=0)


class EvaluationConfig(BaseModel):
    """How hard a candidate is checked and timed."""

    input_sets: int = Field(9, ge=1)
    """Input sets (seed x distribution) per candidate: all eight distributions, and the one that is timed.

    Beside them, unless there is only one, two sets at extents that no prompt shows."""
    error_factor: float = Field(2.0, gt=0)
    """c in err(candidate) <= c * err(plain implementation)."""
    timeout_s: float = Field(60, gt=0)
    """One request to the candidate's process."""
    max_seconds_timing: float = Field(3.0, gt=0)
    """GPU seconds per comparison."""
    memory_gb: float = Field(64, gt=0)
    """Host memory of a candidate's process."""
    emulated_sample: float = Field(20, ge=0)
    """Million warp instructions of a launch that are enough on the emulated device at a timed size larger than `small`,
    where outputs are then not judged; 0: every block is executed, and outputs are judged there, too."""
    file_gb: float = Field(8, gt=0)
    """Largest file it may write; all its files together, outputs left out, may be twice as large."""


class Environment(BaseSettings):
    """Variables that upstream's users already set; options of the command line win over them."""

    # A variable that is set to nothing, as compose files leave those that are not set, is one that is not set.
    model_config = SettingsConfigDict(env_file=".env", extra="ignore", env_ignore_empty=True)

    openai_api_key: SecretStr | None = None
    openai_base_url: str | None = None
    model: str = "gpt-5-mini-2025-08-07"
    gpu_type: str | None = None
    dataset: str = DATASET
    precision: Precision = Precision.FP16
    experiment_name: str = "timing_analysis"
    rl_experiment_name: str | None = None
    """Upstream's second name for a series of runs: where it is set, it is appended to the first."""

    @property
    def experiment(self) -> str:
        """Name under which results collect."""
        names = (self.experiment_name, self.rl_experiment_name)
        return "-".join(name for name in names if name)


class RunConfig(BaseModel):
    """Everything one run is given; written to `run.json` (the key is not)."""

    dataset: str = DATASET
    precision: Precision = Precision.FP16
    experiment: str = "timing_analysis"
    out: Path = Path("out")
    device: str = "auto"
    """`cuda`, `emulated` or `auto` (cuda when a GPU and nvcc are there)."""
    gpu_type: str | None = None
    """Checked against the GPU found; on the emulated device it chooses the modelled architecture."""
    size: str | None = None
    """Size that is timed and profiled; None: `small` emulated, `medium` on a GPU."""
    libraries: tuple[Library, ...] = ()
    knowledge_base: Path | None = None
    """A knowledge base to start from; None: the experiment's own, else the shipped seed."""
    concurrency: int = Field(4, ge=1)
    """Problems in flight at once."""
    compile_jobs: int = Field(0, ge=0)
    """Concurrent compiles; 0: one per CPU core."""
    search: SearchConfig = SearchConfig()
    budget: BudgetConfig = BudgetConfig()
    model: ModelConfig = ModelConfig()
    evaluation: EvaluationConfig = EvaluationConfig()
