"""Records a Python candidate: what it is to be recorded at, and the isolated process that does it."""

from __future__ import annotations

import ast
import os
import sys
import sysconfig
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pydantic import ValidationError

import kernelblaster
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.errors import MachineError, ProblemError
from kernelblaster.paths import how_to_install
from kernelblaster.problems.problem import Precision, Problem, TensorRole
from kernelblaster.problems.reference import load_reference, passed_names, tensor_specs
from kernelblaster.python_candidates.plan import (
    ANSWER,
    CANDIDATE,
    REQUEST,
    CandidateRecording,
    Extents,
    PlanArgument,
    RecordedGpu,
    RecorderAnswer,
    RecordingRequest,
    Refusal,
)
from kernelblaster.sandbox.isolation import SHARED_PREFIXES, FileView, SystemView
from kernelblaster.sandbox.limits import CommandResult, ExceededLimit, Limits
from kernelblaster.sandbox.process import SandboxedProcess, Scratch, clean_environment
from kernelblaster.sandbox.text import printable
from kernelblaster.storage.bounded_io import read_bounded

TIMEOUT_S = 300.0
"""Of a recording: Triton compiles a large kernel in seconds, each size in turn."""
TOO_SLOW = (
    f"recording took more than {TIMEOUT_S:.0f} s, in which Triton compiles each kernel for each size; "
    "unrolled code takes it longest: write shorter kernels, or loops that stay loops"
)
_LIMITS = Limits(
    memory_bytes=16 << 30, file_bytes=256 << 20, disk_bytes=2 << 30, tasks=128, output_bytes=16 << 20, forks=True
)
_INSTALLED = ("site-packages", "dist-packages")
_MOST_ANSWER_MIB = 64
_MOST_LOG, _MOST_REASON = 8000, 300
_ROOT = Path(kernelblaster.__file__).parents[1]
_PROGRAM = "import sys; sys.path[:0] = {paths!r}; from kernelblaster.python_candidates.recorder import main; main()"


def extents_of(problem: Problem, workload: str, precision: Precision) -> Extents:
    """One size of a problem, as a candidate is recorded at it. Raises ProblemError."""
    import torch

    reference = load_reference(problem)
    specs = tensor_specs(problem, workload, precision)
    with torch.device("meta"):
        init = list(reference.module.get_init_inputs(workload))
    if not _is_literal(init):
        raise ProblemError(
            f"{problem.slug}: get_init_inputs gives more than numbers, text and lists of these",
            hint="give literals: a Python candidate is constructed in another process",
        )
    inputs = {spec.name for spec in specs if spec.role is TensorRole.INPUT}
    arguments = tuple(
        PlanArgument(tensor=name) if name in inputs else PlanArgument(value=problem.scalars[name])
        for name in passed_names(reference.parameters, {*inputs, *problem.scalars})
    )
    return Extents(
        sizes=problem.workloads[workload],
        scalars=problem.scalars,
        init=repr(init),
        arguments=arguments,
        tensors=specs,
    )


def recorded_gpu(facts: DeviceFacts) -> RecordedGpu:
    """What a candidate is told of the device."""
    return RecordedGpu(
        name=facts.name,
        capability=int(facts.arch.removeprefix("sm_")),
        sm_count=facts.sm_count,
        memory_bytes=facts.memory_bytes,
        l2_bytes=facts.l2_bytes,
        shared_per_block=facts.shared_per_block,
    )


def has_triton() -> bool:
    """Whether Triton is installed beside this package."""
    return find_spec("triton") is not None


def require_triton() -> None:
    """Raise MachineError where Triton is not installed."""
    if not has_triton():
        raise MachineError("Triton is not installed, which Python candidates need", hint=how_to_install("triton"))


def record(source: str, request: RecordingRequest) -> CandidateRecording:
    """Record a candidate in a process of its own.

    Raises:
        BuildFailure: it does not compile, raises, or does what is not recorded.
        MachineError: Triton is not installed.
    """
    require_triton()
    with Scratch() as scratch:
        (scratch / CANDIDATE).write_text(source, encoding="utf-8")
        (scratch / REQUEST).write_text(request.model_dump_json(), encoding="utf-8")
        with start_recorder(scratch) as process:
            outcome = process.wait(TIMEOUT_S)
        return read_recording(scratch, outcome, len(request.extents))


def start_recorder(scratch: Path, stdin: int | None = None) -> SandboxedProcess:
    """A recorder of the candidate in `scratch`; with an input it reads nothing there before a byte has come.

    Raises DeviceError.
    """
    return SandboxedProcess(
        [sys.executable, "-I", "-c", _PROGRAM.format(paths=_import_paths())],
        limits=_LIMITS,
        cwd=scratch,
        environment=clean_environment(scratch, _environment(scratch)),
        view=FileView(readable=tuple(interpreter_folders()), system=SystemView.TOOLS),
        stdin=stdin,
    )


def _import_paths() -> list[str]:
    """Where this process imports packages from: `-I` leaves out what PYTHONPATH has added."""
    return [str(_ROOT), *(entry for entry in sys.path if Path(entry).name in _INSTALLED)]


def _environment(scratch: Path) -> dict[str, str]:
    return {
        "TRITON_CACHE_DIR": str(scratch / "triton"),
        "TORCHINDUCTOR_CACHE_DIR": str(scratch / "inductor"),
        "LOGNAME": "candidate",  # libraries ask for a name, and the view has no list of users
        "OMP_NUM_THREADS": "1",  # nothing is computed
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def interpreter_folders() -> Iterable[Path]:
    """Python, what is installed beside it, and this package; no working directory that `sys.path` may name."""
    installed = (Path(entry) for entry in sys.path)
    found = {*_installations(), _ROOT, *(path for path in installed if path.name in _INSTALLED)}
    return sorted(path.resolve() for path in found if path.is_dir())


def _installations() -> Iterable[Path]:
    """Where this Python lies; of one that came with the system its library alone: its prefix holds everything."""
    for prefix in (sys.prefix, sys.base_prefix):
        if Path(prefix) not in SHARED_PREFIXES:
            yield Path(prefix)
    yield from (Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib"))


def read_recording(scratch: Path, outcome: CommandResult, sizes: int) -> CandidateRecording:
    """What a recorder has left. Raises BuildFailure."""
    answer = scratch / ANSWER
    if not outcome.ok or not os.path.lexists(answer):
        require_sound_recorder()
        if outcome.exceeded is ExceededLimit.TIME:
            raise BuildFailure(BuildFailureKind.COMPILE, TOO_SLOW, outcome.output[-_MOST_LOG:])
        raise BuildFailure(
            BuildFailureKind.COMPILE,
            f"the process that records the candidate {outcome.describe()}",
            outcome.output[-_MOST_LOG:],
        )
    try:
        read = RecorderAnswer.model_validate_json(read_bounded(answer, _MOST_ANSWER_MIB, follow=False))
    except ValidationError as error:
        # Without its input: what the file holds is nothing that was said to anybody.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        raise _unreadable(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except OSError as error:
        raise _unreadable(str(error.strerror)) from error
    if read.refusal is not None:
        raise _failure(read.refusal)
    if read.recording is None or len(read.recording.plans) != sizes:
        raise BuildFailure(BuildFailureKind.COMPILE, "the recording lacks sizes")
    return read.recording


@cache
def require_sound_recorder() -> None:
    """Raise MachineError where a recorder that is given no candidate fails, too; asked once where it does not."""
    with Scratch() as scratch, start_recorder(scratch) as process:
        outcome = process.wait(TIMEOUT_S)
    if not outcome.ok:
        last = (outcome.output.strip().splitlines() or [""])[-1]
        raise MachineError(
            f"no Python candidate can be recorded here: the recorder {outcome.describe()}: {printable(last.encode())}",
            hint="check that PyTorch, Triton and this package's requirements are importable by this Python",
        )


def _unreadable(why: str) -> BuildFailure:
    said = printable(why.encode("utf-8", errors="replace"))[:_MOST_REASON]
    return BuildFailure(BuildFailureKind.COMPILE, f"the recording cannot be read: {said}")


def _failure(refusal: Refusal) -> BuildFailure:
    reason = f"{refusal.reason}; {refusal.hint}" if refusal.hint else refusal.reason
    return BuildFailure(BuildFailureKind.COMPILE, reason[:1000], refusal.log[:_MOST_LOG])


def _is_literal(value: object) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError):
        return False
