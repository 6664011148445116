"""What clients send, and the state that they may ask for. Pydantic, since it crosses the socket."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernelblaster.environment.baselines import EpisodeBaseline
from kernelblaster.environment.submission import Language, require_judged
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.tiers import Tier

MAX_TURNS = 10
MOST_TURNS = 1000
MOST_MEASUREMENTS = 16
"""Of one source."""


class KernelAction(BaseModel):
    """A submission; only `code` is required."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    code: str
    """A `.cu` file or a Python module, or a reply that holds one in a fenced block; at most 256 KiB."""
    language: Language = Language.AUTO
    profile: bool = True
    """Collect hardware counters of a correct kernel, at the tier `full`."""
    tier: Tier | None = None
    """How far it is judged; as said at reset if None."""
    sanitize: bool | None = None
    """Run the device's sanitizers, unless at the tier `compile`; None for where they may say why it fails, at the tier
    `full`. They change neither verdict nor reward."""
    measurement: Annotated[int, Field(ge=0, lt=MOST_MEASUREMENTS)] = 0
    """Which of several evaluations of the same source: each is made in fresh processes, once, and kept."""
    problem_id: str | None = None
    """Begins an episode of one turn on this problem where none was begun: one request scores one submission."""
    metadata: dict[str, Any] = {}
    """The caller's own; never read."""


class ResetRequest(BaseModel):
    """What `reset` takes."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)

    seed: int | None = None
    """Decides which problem is drawn, and nothing else: input values of the judge stay secret. Where the problem is
    named it decides nothing: clients send one with every reset."""
    episode_id: Annotated[str, Field(max_length=200)] | None = None
    problem_id: Annotated[str, Field(max_length=200)] | None = None
    """An exact name such as `L1_23_Softmax` or `level1/23`."""
    split: Annotated[str, Field(max_length=200)] | None = None
    """A task list: `level1`, `train`, `heldout`, `all`. Without one, problems are drawn from `train`."""
    index: int | None = None
    """Place in `split`, from 0."""
    levels: Annotated[str | list[int | str], Field(max_length=200)] | None = None
    """Problems are drawn from these, such as `1,2` or `level1`."""
    max_turns: Annotated[int, Field(ge=1, le=MOST_TURNS)] = MAX_TURNS
    languages: list[Language] = [Language.AUTO]
    """That submissions may be written in; `triton` or `inline` among them has the description say how."""
    baseline: EpisodeBaseline | None = None
    """What speed-ups are against; as served if None."""
    tier: Tier = Tier.FULL
    """How far submissions are judged that do not say so themselves."""
    stop_at_highest: bool = True
    """End the episode when the reward cannot grow; False to go on for `max_turns`, as a policy does that learns from
    every turn."""
    stop_at: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Speed-up at which the episode is over."""


class EpisodeState(BaseModel):
    """Where an episode stands."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    episode_id: str | None = None
    step_count: int = 0
    """Turns used since reset."""
    problem_id: str | None = None
    max_turns: int = 0
    seed: int | None = None
    """That drew the problem; None where it was named."""
    best_speedup: float | None = None
    """Largest that was decided, faster or slower; None where none was."""
    best_reward: float | None = None
    best_sha256: str | None = None
    solved: bool = False
    """A submission was correct."""
    done: bool = False


def requested(arguments: dict[str, object]) -> ResetRequest:
    """Arguments of a reset, checked. Raises UsageError naming the first that cannot be used."""
    try:
        request = ResetRequest.model_validate(arguments)
    except ValidationError as error:
        first = error.errors()[0]
        raise UsageError(
            f"reset: {'.'.join(map(str, first['loc']))}: {first['msg']}",
            hint=f"it takes {', '.join(ResetRequest.model_fields)}",
        ) from error
    for language in request.languages:
        require_judged(language)
    return request
