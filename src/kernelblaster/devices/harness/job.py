"""The job file: everything the driver program is told. Text, one fact per line, no expected values."""

from __future__ import annotations

import secrets
from pathlib import Path

from kernelblaster.devices.base import Harness, Job
from kernelblaster.errors import DeviceError
from kernelblaster.problems.problem import TensorRole
from kernelblaster.sandbox.isolation import FileView

FORMAT = "kernelblaster-job-3"


def new_nonce() -> str:
    """A secret that every reply of one process must begin with."""
    return secrets.token_hex(16)


def write_job(job: Job, path: Path, nonce: str) -> None:
    """Write a job for one process. Raises DeviceError when a name or path cannot be told in its format."""
    lines = [FORMAT, f"nonce {nonce}"]
    lines += [f"size {_word(name)} {value:d}" for name, value in job.sizes.items()]
    lines += [f"scalar {_word(name)} {value!r}" for name, value in job.scalars.items()]
    for tensor in job.tensors:
        spec = tensor.spec
        shape = " ".join(str(extent) for extent in (len(spec.shape), *spec.shape))
        what = f"{spec.role} {_word(spec.name)} {spec.dtype} {tensor.change}"
        lines.append(f"tensor {what} {shape} {_line(str(tensor.path.absolute()))}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def job_view(program: Path, harness: Harness, job: Job) -> FileView:
    """What a program must see to do its job: itself, the directories of its inputs, those of its outputs."""
    places: dict[bool, set[Path]] = {False: set(), True: set()}
    for tensor in job.tensors:
        places[tensor.spec.role is TensorRole.OUTPUT].add(tensor.path.absolute().parent)
    return FileView(
        readable=(program, *harness.loads_from, *sorted(places[False])), writable=tuple(sorted(places[True]))
    )


def _word(text: str) -> str:
    if not text or any(character.isspace() for character in text):
        raise DeviceError(f"a job cannot carry the name {text!r}", hint="use names without blanks in reference.py")
    return text


def _line(text: str) -> str:
    if "\n" in text:
        raise DeviceError(f"a job cannot carry the path {text!r}", hint="use a path without line breaks")
    return text
