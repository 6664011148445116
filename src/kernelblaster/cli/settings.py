"""Options that set a field of the configuration, and how they, a TOML file and the environment become one.

A named option carries the documentation of its field. Whatever has no option of its own is set by `--set`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from kernelblaster.config.fields import settings
from kernelblaster.config.sources import (
    CONFIG_FILE,
    SECOND_EXPERIMENT,
    VARIABLES,
    EffectiveConfig,
    Given,
    Origin,
    Source,
    parse_assignments,
    resolve,
)
from kernelblaster.errors import UsageError

NAMED = {
    "precision": "precision",
    "device": "device",
    "gpu_type": "gpu_type",
    "size": "size",
    "libraries": "libraries",
    "knowledge_base": "knowledge_base",
    "experiment": "experiment",
    "out": "out",
    "concurrency": "concurrency",
    "model": "model.name",
    "model_kind": "model.kind",
    "base_url": "model.base_url",
    "recording": "model.recording",
    "model_concurrency": "model.concurrency",
    "model_timeout": "model.timeout_s",
    "max_completion_tokens": "model.max_completion_tokens",
    "rounds": "search.rounds",
    "rollouts": "search.rollouts",
    "steps": "search.steps",
    "repairs": "search.repairs",
    "patience": "search.patience",
    "seed": "search.seed",
    "policy": "search.policy",
    "ablate": "search.ablate",
    "timeout": "budget.problem_minutes",
    "max_minutes": "budget.minutes",
    "max_dollars": "budget.dollars",
    "max_tokens": "budget.tokens",
    "input_sets": "evaluation.input_sets",
    "call_timeout": "evaluation.timeout_s",
    "sample": "evaluation.emulated_sample",
    "base_model": "train.model",
    "preset": "train.preset",
    "training_steps": "train.steps",
    "generations": "train.generations",
    "stage_reward": "train.reward",
    "loss": "train.loss",
    "advantage": "train.advantage",
    "beta": "train.beta",
    "turns": "train.turns",
    "training_seed": "train.seed",
    "max_judged": "train.max_judged",
    "minutes": "train.minutes",
}
"""Parameter of a command -> setting."""
SPELLED = {
    "base_model": "--model",
    "training_steps": "--steps",
    "stage_reward": "--reward",
    "training_seed": "--seed",
    "call_timeout": "--timeout",
}
"""Options that are not spelled like their parameter."""


def setting(name: str, *spellings: str, **how: Any) -> Any:
    """A Typer option for the setting that parameter `name` stands for, with the setting's documentation for its help.

    The option's own default is "not given"; what then holds is shown.
    """
    known = settings()[NAMED[name]]
    variables = [variable for variable, path in VARIABLES.items() if path == known.path]
    if known.path == "experiment":
        variables.append(SECOND_EXPERIMENT)
    told = f"{known.doc} (Variable {', '.join(variables)}.)" if variables else known.doc
    default = known.default if known.default != "none" else False
    return typer.Option(*(spellings or (_spelling(name),)), help=told, show_default=default, **how)


ConfigOption = Annotated[
    Path | None,
    typer.Option("--config", help=f"TOML file with settings; {CONFIG_FILE} in the working directory if not given."),
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="Any setting, e.g. search.patience=2; `config` lists all.", metavar="NAME=VALUE"),
]


def configured(
    parameters: Mapping[str, Any] | None = None, *, file: Path | None = None, assignments: list[str] | None = None
) -> EffectiveConfig:
    """The configuration that holds for a command.

    Args:
        parameters: of the command, by name; those that stand for no setting, or were not given, are left out. `price`
            is the pair of prices.
        file: of `--config`.
        assignments: of `--set`.

    Raises UsageError, also for a setting that is given twice.
    """
    named = {
        NAMED[name]: Given(value, Origin(Source.OPTION, _spelling(name)))
        for name, value in (parameters or {}).items()
        if name in NAMED and value is not None
    }
    price = (parameters or {}).get("price")
    if price is not None:
        origin = Origin(Source.OPTION, "--price")
        named["model.dollars_per_million_prompt"] = Given(price[0], origin)
        named["model.dollars_per_million_completion"] = Given(price[1], origin)
    assigned = parse_assignments(assignments or ())
    twice = sorted(named.keys() & assigned.keys())
    if twice:
        option = named[twice[0]].origin.name
        raise UsageError(f"{option} beside --set {twice[0]}", hint="give one of the two")
    return resolve(file, {**named, **assigned})


def _spelling(name: str) -> str:
    return SPELLED.get(name, f"--{name.replace('_', '-')}")
