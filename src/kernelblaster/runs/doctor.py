"""Probes that need more than the device layer: the emulated device and the model endpoint."""

from __future__ import annotations

from kernelblaster.config import ModelConfig
from kernelblaster.devices.cuda.probe import Probe
from kernelblaster.errors import DeviceError, ModelError, UsageError
from kernelblaster.models.endpoint import endpoint_of
from kernelblaster.paths import cache_dir


def probe_emulated() -> Probe:
    """Whether the emulated GPU's core can be built here."""
    from kernelblaster.devices.emulated.emulator import built_core

    try:
        core = built_core(cache_dir())
    except DeviceError as error:
        return Probe(
            name="emulated device", ok=False, found=error.message, costs="nothing runs without a GPU", hint=error.hint
        )
    return Probe(name="emulated device", ok=True, found=f"core in {core.library_dir}", costs="", hint="")


def probe_model(config: ModelConfig, *, online: bool) -> Probe:
    """Whether a model is configured and, when `online`, answers a request for its list of models."""
    if config.api_key is None and config.base_url is None:
        return Probe(
            name="model",
            ok=False,
            found="no OPENAI_API_KEY and no base URL",
            costs="only recordings and the batch exchange can write candidates",
            hint="set OPENAI_API_KEY, or OPENAI_BASE_URL for a local server",
        )
    try:
        where = endpoint_of(config)
    except UsageError as error:
        return Probe(name="model", ok=False, found=error.message, costs="no model can be asked", hint=error.hint)
    if not online:
        return Probe(
            name="model",
            ok=True,
            checked=False,
            found=f"{config.name} over {where}, not contacted: key and name may be wrong",
            hint="`kernelblaster doctor --online` asks it",
        )
    from kernelblaster.models.probe import offered_models

    try:
        names = offered_models(config, retries=0)
    except ModelError as error:
        return Probe(
            name="model", ok=False, found=error.message, costs="no candidates from this model", hint=error.hint
        )
    if names is None:
        return Probe(name="model", ok=True, found=f"{where} answers, but lists no models", costs="", hint="")
    known = "offered" if config.name in names else "not in its list"
    return Probe(name="model", ok=True, found=f"{where} answers; {config.name} is {known}", costs="", hint="")
