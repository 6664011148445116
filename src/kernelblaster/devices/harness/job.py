"""What a harness program is told of its job, as packets: sizes, scalars and tensors, with the inputs' files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path

from kernelblaster.devices.base import Harness, Job, JobTensor
from kernelblaster.devices.harness.channel import MOST_DESCRIPTORS, PacketBuilder
from kernelblaster.devices.harness.output_files import make_ours
from kernelblaster.devices.harness.protocol import HarnessRequest
from kernelblaster.errors import DeviceError
from kernelblaster.problems.problem import TensorRole
from kernelblaster.sandbox.isolation import FileView
from kernelblaster.sandbox.limits import Limits

_TENSORS_PER_PACKET = 100
"""Names are short: a packet of so many is some ten kilobytes."""


def job_packets(job: Job) -> Iterator[tuple[PacketBuilder, list[Path]]]:
    """The packets that tell a job, and the files whose descriptors go with each."""
    first = PacketBuilder(HarnessRequest.JOB).u32(len(job.sizes))
    for name, size in job.sizes.items():
        first.text(name).i64(size)
    first.u32(len(job.scalars))
    for name, scalar in job.scalars.items():
        first.text(name).f64(scalar)
    yield first.u32(len(job.tensors)), []
    for at in range(0, len(job.tensors), _TENSORS_PER_PACKET):
        tensors = job.tensors[at : at + _TENSORS_PER_PACKET]
        message = PacketBuilder(HarnessRequest.TENSORS)
        for tensor in tensors:
            spec = tensor.spec
            message.text(spec.role).text(spec.name).text(spec.dtype).text(tensor.change).i64(tensor.mirror).list_i64(
                spec.shape
            )
        yield message, [tensor.path for tensor in tensors if is_input(tensor)]


def reload_packets(job: Job) -> Iterator[tuple[PacketBuilder, list[Path]]]:
    """The packets that bring other values: each holds the index of its first tensor."""
    inputs = [(index, tensor) for index, tensor in enumerate(job.tensors) if is_input(tensor)]
    for at in range(0, len(inputs), MOST_DESCRIPTORS):
        part = inputs[at : at + MOST_DESCRIPTORS]
        yield PacketBuilder(HarnessRequest.RELOAD).u32(part[0][0]), [tensor.path for _, tensor in part]


def is_input(tensor: JobTensor) -> bool:
    """Whether the harness reads a tensor's file."""
    return tensor.spec.role is not TensorRole.OUTPUT


@contextmanager
def opened(paths: Sequence[Path]) -> Iterator[list[int]]:
    """Descriptors of files for reading. Raises DeviceError."""
    with ExitStack() as stack:
        try:
            descriptors = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in paths]
        except OSError as error:
            raise DeviceError(f"cannot read a tensor: {error}", hint="check disk space and open files") from error
        for descriptor in descriptors:
            stack.callback(os.close, descriptor)
        yield descriptors


@contextmanager
def opened_outputs(job: Job) -> Iterator[list[int]]:
    """Descriptors of the job's output files, which are made with the size of their tensors.

    Afterwards nobody who was given one can change what the files hold. Raises DeviceError.
    """
    outputs = [tensor for tensor in job.tensors if not is_input(tensor)]
    with ExitStack() as stack:
        descriptors = []
        for tensor in outputs:
            try:
                descriptor = os.open(tensor.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                stack.callback(os.close, descriptor)
                os.ftruncate(descriptor, tensor.spec.bytes)
            except OSError as error:
                raise DeviceError(f"cannot make a file for an output: {error}", hint="free disk space") from error
            descriptors.append(descriptor)
        yield descriptors
    for tensor in outputs:
        make_ours(tensor.path)


def job_view(program: Path, harness: Harness) -> FileView:
    """What a program must see to do its job: itself and what it loads. Tensors come as descriptors."""
    return FileView(readable=(program, *harness.loads_from))


def fitting(limits: Limits, job: Job) -> Limits:
    """Limits under which the job's own outputs can be written."""
    outputs = [tensor.spec.bytes for tensor in job.tensors if tensor.spec.role is TensorRole.OUTPUT]
    return replace(
        limits,
        file_bytes=max(limits.file_bytes, *outputs, 0),
        disk_bytes=limits.disk_bytes + sum(outputs),
    )
