"""Which device and which model a run uses, each with one line that says why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import SecretStr

from kernelblaster.config import AUTOMATIC, ModelConfig, ModelKind, RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.emulated.emulator import DEFAULT_GPU, gpu_names
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.errors import DeviceError, UsageError
from kernelblaster.models.endpoint import endpoint_of
from kernelblaster.paths import cache_dir, data_dir
from kernelblaster.problems.problem import Problem, Size
from kernelblaster.problems.self_checking import needs_a_gpu
from kernelblaster.sandbox.limits import Limits

SHIPPED_RECORDING = "recordings/h200.jsonl.gz"


@dataclass(frozen=True)
class DeviceChoice:
    """A device and why it was chosen."""

    device: Device
    reason: str


@dataclass(frozen=True)
class ModelChoice:
    """A model configuration and why it was chosen."""

    config: ModelConfig
    reason: str


def timed_size(config: RunConfig, facts: DeviceFacts) -> str:
    """The size that is timed: as configured, else small where times are modelled and medium on a GPU."""
    if config.size is not None:
        return config.size
    return Size.SMALL if facts.kind is DeviceKind.EMULATED else Size.MEDIUM


def _gpu_key(gpu_type: str) -> str:
    key = gpu_type.lower().replace(" ", "").replace("-", "").replace("nvidia", "")
    known = gpu_names()
    if key not in known:
        raise UsageError(f"unknown GPU type {gpu_type!r}", hint=f"use one of {', '.join(known)}")
    return key


def choose_device(config: RunConfig, tell: Callable[[str], object]) -> DeviceChoice:
    """The device for `config.device` (`auto`, `cuda`, `emulated`); says to `tell` what takes time.

    Raises UsageError, DeviceError.
    """
    if config.device not in (AUTOMATIC, *DeviceKind):
        raise UsageError(f"unknown device {config.device!r}", hint="use auto, cuda or emulated")
    gpu_type = _gpu_key(config.gpu_type) if config.gpu_type else None
    if config.device == DeviceKind.EMULATED:
        return _emulated(config, gpu_type, "asked for", tell)
    from kernelblaster.devices.cuda.probe import detect_gpu

    gpu = detect_gpu()
    if gpu is None:
        if config.device == DeviceKind.CUDA:
            raise DeviceError("no NVIDIA GPU was found", hint="see `kernelblaster doctor`, or use --device emulated")
        return _emulated(config, gpu_type, "no NVIDIA GPU was found", tell)
    found = gpu.name.lower().replace(" ", "")
    if gpu_type is not None and gpu_type not in found:
        raise UsageError(
            f"GPU type {config.gpu_type} was asked for, this machine has {gpu.name} ({gpu.arch})",
            hint="unset GPU_TYPE / --gpu-type, or use --device emulated",
        )
    from kernelblaster.devices.cuda.device import CudaDevice

    return DeviceChoice(
        CudaDevice(limits=limits_of(config), jobs=config.evaluation.compile_jobs), f"{gpu.name} was found"
    )


def refuse_self_checking(problems: Iterable[Problem], config: RunConfig) -> None:
    """Raise UsageError for a problem whose libtorch driver judges itself, where no GPU would be chosen."""
    from kernelblaster.devices.cuda.probe import detect_gpu

    self_checking = next((problem for problem in problems if problem.weakly_verified), None)
    if self_checking is None or config.device == DeviceKind.CUDA:
        return
    if config.device == DeviceKind.EMULATED or detect_gpu() is None:
        raise needs_a_gpu(self_checking)


def refuse_unknown_size(problems: Sequence[Problem], config: RunConfig) -> None:
    """Raise UsageError when the size asked for is one that no problem declares."""
    declared = dict.fromkeys(size for problem in problems for size in problem.sizes)
    if config.size is not None and declared and config.size not in declared:
        raise UsageError(f"no problem declares a size {config.size!r}", hint=f"choose among {', '.join(declared)}")


def limits_of(config: RunConfig) -> Limits:
    """Limits of a candidate's process."""
    gb = 1 << 30
    evaluation = config.evaluation
    file_bytes = int(evaluation.file_gb * gb)
    return Limits(memory_bytes=int(evaluation.memory_gb * gb), file_bytes=file_bytes, disk_bytes=2 * file_bytes)


def _emulated(config: RunConfig, gpu_type: str | None, why: str, tell: Callable[[str], object]) -> DeviceChoice:
    from kernelblaster.devices.emulated.device import EmulatedDevice
    from kernelblaster.devices.emulated.emulator import built_core, core_is_built

    device = EmulatedDevice.create(
        gpu_type or DEFAULT_GPU, limits=limits_of(config), jobs=config.evaluation.compile_jobs
    )
    if not core_is_built(cache_dir()):
        tell("building the emulated GPU: once on this machine, under a minute")
    built_core(cache_dir())
    return DeviceChoice(device, f"{why}, so its PTX runs on the CPU; times are modelled, not measured")


def choose_model_config(config: ModelConfig) -> ModelChoice:
    """Complete `config` for its kind (`auto` or a ModelKind). Raises UsageError."""
    kind = config.kind
    if kind not in (AUTOMATIC, *ModelKind):
        raise UsageError(f"unknown model kind {kind!r}", hint=f"use auto, {', '.join(ModelKind)}")
    if kind == AUTOMATIC:
        kind, why = _automatic(config)
    else:
        why = "asked for"
    if kind == ModelKind.OPENAI_API:
        if config.api_key is None and config.base_url is None:
            raise UsageError("no API key", hint="set OPENAI_API_KEY, or --base-url for a local server")
        # Local servers ignore the key, and the SDK insists on one.
        key = config.api_key or SecretStr("none")
        config = config.model_copy(update={"kind": ModelKind.OPENAI_API, "api_key": key})
        return ModelChoice(config, f"{config.name} over {endpoint_of(config)}: {why}")
    if kind == ModelKind.BATCH_EXCHANGE:
        endpoint_of(config)  # what answers may be charged for is read off it
        return ModelChoice(
            config.model_copy(update={"kind": ModelKind.BATCH_EXCHANGE}), f"batch exchange of files: {why}"
        )
    recording = config.recording or shipped_recording()
    if not recording.exists():
        raise UsageError(f"no recording at {recording}", hint="give --recording FILE, or set OPENAI_API_KEY")
    update = {"kind": ModelKind.RECORDED, "recording": recording, "name": "recorded"}
    return ModelChoice(config.model_copy(update=update), f"replays {recording.name}: {why}")


def _automatic(config: ModelConfig) -> tuple[str, str]:
    if config.recording is not None:
        return ModelKind.RECORDED, "--recording is given"
    if config.api_key is not None:
        return ModelKind.OPENAI_API, "OPENAI_API_KEY is set"
    if config.base_url is not None:
        return ModelKind.OPENAI_API, "a base URL is set"
    return ModelKind.RECORDED, "OPENAI_API_KEY is not set"


def shipped_recording() -> Path:
    """The recording that comes with the package."""
    return data_dir() / SHIPPED_RECORDING
