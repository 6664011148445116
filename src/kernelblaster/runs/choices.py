"""Which device and which model a run uses, each with one line that says why."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from kernelblaster.config import AUTOMATIC, BudgetConfig, ModelConfig, ModelKind, RunConfig
from kernelblaster.devices.base import Device
from kernelblaster.devices.emulated.emulator import gpu_names
from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.devices.profilers import profiled_by
from kernelblaster.devices.registry import DEVICES, DeviceRequest, OpenedDevice
from kernelblaster.errors import UsageError
from kernelblaster.evaluation.inputs.scratch import host_memory
from kernelblaster.evaluation.integrity.candidate_rules import CandidateRules
from kernelblaster.evaluation.timed_size import size_instead, usual_size
from kernelblaster.models.backends import BACKENDS, RecordedBackend
from kernelblaster.models.forecast import forecast
from kernelblaster.models.ledger import CostLedger
from kernelblaster.models.stages import check_models, price_of_drafts
from kernelblaster.problems.problem import Problem
from kernelblaster.problems.self_checking import needs_a_gpu
from kernelblaster.records.whole_run import spending_of
from kernelblaster.runs.observing import ExpectedCosts
from kernelblaster.runs.progress import ProgressDevice
from kernelblaster.sandbox.limits import Limits

MOST_OF_HOST = 0.75
"""Of a host's memory that a candidate's process may take."""


@dataclass(frozen=True)
class ModelChoice:
    """A model configuration and why it was chosen."""

    config: ModelConfig
    reason: str


def expected_costs(config: RunConfig, asked: BudgetConfig, unfinished: int, ledger: CostLedger) -> ExpectedCosts | None:
    """What the search of so many problems may cost; None where nothing is asked of a model that may charge.

    Args:
        config: with the caps that hold.
        asked: the caps as configured.
        unfinished: problems that are left.
        ledger: of the run.
    """
    if config.model.kind not in (ModelKind.OPENAI_API, ModelKind.BATCH_EXCHANGE) or not unfinished:
        return None
    before = ledger.totals()
    return ExpectedCosts(
        forecast=forecast(config.search, unfinished, price_of_drafts(config.model), before),
        caps=config.budget,
        by_default=config.budget != asked,
        before=spending_of(before),
    )


def timed_workload(config: RunConfig, facts: DeviceFacts, problems: Iterable[Problem]) -> str:
    """The size that is timed: as configured, else small where times are modelled and medium on a GPU.

    Where no problem declares that, it is what stands for it in the first one that has sizes, see `size_instead`.
    """
    if config.size is not None:
        return config.size
    usual = usual_size(facts.kind)
    sized = [problem for problem in problems if problem.workloads]
    if not sized or any(usual in problem.workloads for problem in sized):
        return usual
    return size_instead(sized[0], usual, facts.kind)


def workload_in(config: RunConfig, workload: str, facts: DeviceFacts, problem: Problem) -> str:
    """The size at which one problem of a run is timed: the run's, or where none was asked for what stands for it."""
    return workload if config.size is not None else size_instead(problem, workload, facts.kind)


def _gpu_key(gpu_type: str) -> str:
    key = gpu_type.lower().replace(" ", "").replace("-", "").replace("nvidia", "")
    known = gpu_names()
    if key not in known:
        raise UsageError(f"unknown GPU type {gpu_type!r}", hint=f"use one of {', '.join(known)}")
    return key


def choose_device(config: RunConfig, tell: Callable[[str], object]) -> OpenedDevice:
    """The device that `config.device` names; `auto`: cuda where a GPU is found, else emulated.

    Says to `tell` what takes time. Raises UsageError, DeviceError.
    """
    if config.device not in (AUTOMATIC, *DEVICES):
        raise UsageError(f"unknown device {config.device!r}", hint=f"use auto, {', '.join(DEVICES)}")
    name, why = config.device, "asked for"
    gpu_type = _gpu_key(config.gpu_type) if config.gpu_type else None
    if name == AUTOMATIC:
        name, why = _detected()
    request = DeviceRequest(
        gpu_type=gpu_type,
        policy=CandidateRules(),
        limits=limits_of(config),
        jobs=config.evaluation.compile_jobs,
        why=why,
        tell=tell,
    )
    return DEVICES.get(name)(request)


def _detected() -> tuple[str, str]:
    """The device for this machine, and why."""
    from kernelblaster.devices.cuda.probe import detect_gpu

    return (DeviceKind.EMULATED, "no NVIDIA GPU was found") if detect_gpu() is None else (DeviceKind.CUDA, "found")


def watched(device: Device, config: RunConfig, tell: Callable[[str], object]) -> Device:
    """The device with the configured profiler, which says to `tell` what it does. Raises UsageError."""
    return ProgressDevice(profiled_by(device, config.evaluation.profiler), tell)


def refuse_self_checking(problems: Iterable[Problem], config: RunConfig) -> None:
    """Raise UsageError for a problem whose libtorch driver judges itself, where no GPU would be chosen."""
    from kernelblaster.devices.cuda.probe import detect_gpu

    self_checking = next((problem for problem in problems if problem.weakly_verified), None)
    if self_checking is None or config.device not in (AUTOMATIC, DeviceKind.EMULATED):
        return
    if config.device == DeviceKind.EMULATED or detect_gpu() is None:
        raise needs_a_gpu(self_checking)


def refuse_unknown_workload(problems: Sequence[Problem], config: RunConfig) -> None:
    """Raise UsageError when the size asked for is one that no problem declares."""
    declared = dict.fromkeys(workload for problem in problems for workload in problem.workloads)
    if config.size is not None and declared and config.size not in declared:
        raise UsageError(f"no problem declares a size {config.size!r}", hint=f"choose among {', '.join(declared)}")


def limits_of(config: RunConfig) -> Limits:
    """Limits of a candidate's process: alone it is ended before the host is out of memory."""
    gb = 1 << 30
    evaluation = config.evaluation
    file_bytes = int(evaluation.file_gb * gb)
    memory_bytes = min(int(evaluation.memory_gb * gb), int(MOST_OF_HOST * host_memory()))
    return Limits(memory_bytes=memory_bytes, file_bytes=file_bytes, disk_bytes=2 * file_bytes)


def choose_model_config(config: ModelConfig, problems: Collection[str] = ()) -> ModelChoice:
    """Complete `config` for its kind (`auto` or a registered kind); recordings are told by the problems of the run.

    Raises UsageError.
    """
    if config.kind not in (AUTOMATIC, *BACKENDS):
        raise UsageError(f"unknown model kind {config.kind!r}", hint=f"use auto, {', '.join(BACKENDS)}")
    kind, why = _automatic(config) if config.kind == AUTOMATIC else (config.kind, "asked for")
    backend = BACKENDS.get(kind)
    completed = backend.complete(config.model_copy(update={"kind": kind}))
    if isinstance(backend, RecordedBackend):
        told = backend.describe(completed, problems)
    else:
        told = backend.describe(completed)
    check_models(completed)
    return ModelChoice(completed, f"{told}: {why}")


def _automatic(config: ModelConfig) -> tuple[str, str]:
    if config.recording is not None:
        return ModelKind.RECORDED, "--recording is given"
    if config.api_key is not None:
        return ModelKind.OPENAI_API, "OPENAI_API_KEY is set"
    if config.base_url is not None:
        return ModelKind.OPENAI_API, "a base URL is set"
    return ModelKind.RECORDED, "OPENAI_API_KEY is not set"
