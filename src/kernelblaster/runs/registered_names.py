"""Names in a configuration that a registry has to know, told before anything is opened."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kernelblaster.config import AUTOMATIC, GIVEN, ModelKind, RunConfig
from kernelblaster.config.sources import EffectiveConfig, Origin, Source
from kernelblaster.devices.facts import DeviceKind
from kernelblaster.errors import UsageError


def require_registered(config: RunConfig | EffectiveConfig) -> None:
    """Raise UsageError for a kind of model, a device, a policy or a profiler that no registry knows.

    Says where the name was written, where that is known. Registries are loaded for names alone that do not come with
    the package: loading them takes a third of a second.
    """
    origins: Mapping[str, Origin] = {}
    if isinstance(config, EffectiveConfig):
        origins, config = config.origins, config.config
    for path, what, name, known in _unknown(config):
        origin = origins.get(path)
        where = f"{origin}: " if origin is not None and origin.source is not Source.DEFAULT else ""
        raise UsageError(f"{where}unknown {what} {name!r}", hint=f"use {', '.join(known)}")


def _unknown(config: RunConfig) -> Iterator[tuple[str, str, str, Collection[str]]]:
    """Setting, what it names, the name, and all names that are known."""
    name = config.model.kind
    if name not in (AUTOMATIC, GIVEN, *ModelKind):
        from kernelblaster.models.backends import BACKENDS

        if name not in BACKENDS:
            yield "model.kind", "model kind", name, [AUTOMATIC, *BACKENDS]
    name = config.device
    if name not in (AUTOMATIC, *DeviceKind):
        from kernelblaster.devices.registry import DEVICES

        if name not in DEVICES:
            yield "device", "device", name, [AUTOMATIC, *DEVICES]
    name, usual = config.search.policy, RunConfig().search.policy
    if name != usual:
        from kernelblaster.knowledge.policies import POLICIES

        if name not in POLICIES:
            yield "search.policy", "search policy", name, list(POLICIES)
    name, usual = config.evaluation.profiler, RunConfig().evaluation.profiler
    if name != usual:
        from kernelblaster.devices.profilers import PROFILERS

        if name not in PROFILERS:
            yield "evaluation.profiler", "profiler", name, list(PROFILERS)
