"""Input sets: the bytes that candidates read, and the reference that only the judge holds.

An input set is drawn once per (problem, precision, size, distribution, seed) and shared by all candidates. Its inputs
and weights lie in read-only files; its reference and error scale stay in this process' memory and never touch a disk
that a candidate could read. Both are bounded: the sets used longest ago are dropped, unless someone is using them.
References in use do not count, so that a large one takes the place of no small ones that its next comparison needs.
"""

from __future__ import annotations

import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from kernelblaster.devices.base import UNPERTURBED, PerturbationKind
from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.inputs import scratch
from kernelblaster.evaluation.inputs.drawn import DrawnInputs
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.scratch import free_host_memory
from kernelblaster.problems.problem import TensorRole, TensorSpec
from kernelblaster.problems.reference import load_reference, tensor_specs

if TYPE_CHECKING:
    from kernelblaster.evaluation.correctness.input_draws import Draw
    from kernelblaster.evaluation.correctness.reference_output import ReferenceOutput
    from kernelblaster.evaluation.inputs.leading import Leading

_FILE_SHARE = 0.5
"""Of the scratch space, what the input files of all stores may take together; see `scratch.fair_share`."""
LARGE_REFERENCE = 1 << 30
"""Bytes of a reference above which those of judged timed calls are kept in pieces."""
_REFERENCE_BYTES = 8 << 30
_REFERENCE_SHARE = 0.25
"""Of the memory that is free when the store opens, what references may take where that is more."""


@dataclass(frozen=True)
class InputSet(DrawnInputs):
    """Drawn inputs and what must come out of them.

    Attributes:
        reference_output: None when nothing will be compared with it.
        mixed: the input whose samples have distributions of their own, if there is one.
        infinite: some inputs are infinities: where the reference is NaN, anything may be.
    """

    reference_output: ReferenceOutput | None
    mixed: Leading | None = None
    infinite: bool = False

    @property
    def expected(self) -> ReferenceOutput:
        """What must come out. Raises ValueError for a set that is not judged."""
        if self.reference_output is None:
            raise ValueError(f"{self.key.problem.slug} at size {self.key.workload} was drawn without its reference")
        return self.reference_output

    @property
    def reference_bytes(self) -> int:
        """Bytes of its reference output in memory."""
        return sum(tensor.bytes for tensor in self.reference_output.tensors) if self.reference_output else 0


@dataclass
class _Entry:
    """A set in the store, the number of its users, and the lock under which it is drawn."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    users: int = 0
    drawn: InputSet | None = None


class InputStore:
    """Draws input sets, keeps them, and owns their files. A context manager; safe for many threads.

    Args:
        root: where its directory is made; None: shared memory where there is room, else the temporary directory.
        file_bytes: bound on the files together; None: its share of half of the space.
        reference_bytes: bound on references in memory that nobody uses, together; None: 8 GiB, or a quarter of what is
            free.
        tell: told what is drawn.
    """

    def __init__(
        self,
        root: Path | None = None,
        *,
        file_bytes: int | None = None,
        reference_bytes: int | None = None,
        tell: Callable[[str], object] = lambda stage: None,
    ) -> None:
        self.tell = tell
        self.directory = scratch.create(root)
        self._file_bytes = file_bytes
        self._reference_bytes = reference_bytes or max(_REFERENCE_BYTES, int(_REFERENCE_SHARE * free_host_memory()))
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, _Entry] = OrderedDict()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove all files."""
        with self._lock:
            self._entries.clear()
        scratch.remove(self.directory)

    @contextmanager
    def use(self, key: InputKey) -> Iterator[InputSet]:
        """Lend an input set, drawing it first if need be; it stays while it is lent.

        Raises:
            ProblemError: the reference fails.
            DeviceError: its files cannot be written.
        """
        with self._lock:
            entry = self._entries.setdefault(key.name, _Entry())
            self._entries.move_to_end(key.name)
            entry.users += 1
        try:
            with entry.lock:
                missing = entry.drawn is None
                if entry.drawn is None:
                    entry.drawn = self._drawn(key)
            if missing:
                self._evict()
            yield entry.drawn
        finally:
            with self._lock:
                entry.users -= 1

    def draw(self, keys: Iterable[InputKey]) -> None:
        """Draw sets that will be used soon. Raises as `use`."""
        for key in keys:
            with self.use(key):
                pass

    def _drawn(self, key: InputKey) -> InputSet:
        from kernelblaster.evaluation.inputs.tensors import borrowed_memory

        self.tell(_stage(key))
        with borrowed_memory():  # what was drawn there is gone when this is left
            return self._draw(key) if key.perturbation == UNPERTURBED else self._vary(key)

    def _draw(self, key: InputKey) -> InputSet:
        from kernelblaster.evaluation.correctness.choosing import choose
        from kernelblaster.evaluation.inputs.drawing import permitted_perturbation

        specs = tensor_specs(key.problem, key.workload, key.precision)
        chosen = choose(key, specs)
        drawn, recipe = chosen.drawn, chosen.recipe
        tensors = {**drawn.inputs, **drawn.weights}
        kinds = {name: permitted_perturbation(key.problem, name, tensor) for name, tensor in tensors.items()}
        if drawn.mixed is not None:  # it has no structure, although masked or far samples look like labels in 16 bits
            kinds[drawn.mixed.name] = PerturbationKind.SHIFT
        return InputSet(
            key,
            recipe.distribution,
            specs,
            self._write(key, drawn, specs),
            kinds,
            chosen.expected,
            drawn.mixed,
            infinite=recipe.infinite,
        )

    def _vary(self, key: InputKey) -> InputSet:
        """The reference of a set that the harness perturbs; of a large one, pieces at places that nobody knows."""
        from kernelblaster.evaluation.correctness import reference_output
        from kernelblaster.evaluation.correctness.input_draws import perturb

        with self.use(replace(key, perturbation=UNPERTURBED)) as base:
            varied = perturb(
                load_reference(key.problem), key, base.specs, base.files, base.perturbation_kinds, base.mixed
            )
            secret = f"{key.seed}/{key.perturbation}" if base.reference_bytes > LARGE_REFERENCE else None
            expected = reference_output.solve(varied, base.outputs, key.precision, base.distribution, secret)
            return replace(base, key=key, files={}, reference_output=expected)

    def _write(self, key: InputKey, drawn: Draw, specs: Sequence[TensorSpec]) -> dict[str, Path]:
        from kernelblaster.evaluation.inputs.tensors import write_tensor

        directory = self.directory / key.name
        files = {}
        try:
            directory.mkdir(exist_ok=True)
            for number, spec in enumerate(specs):
                if spec.role is TensorRole.OUTPUT:
                    continue
                tensors = drawn.inputs if spec.role is TensorRole.INPUT else drawn.weights
                path = directory / f"{number}.bin"
                path.unlink(missing_ok=True)
                write_tensor(path, tensors[spec.name])
                path.chmod(0o444)
                files[spec.name] = path
        except OSError as error:
            raise DeviceError(
                f"cannot write the inputs of {key.problem.slug} to {self.directory}: {error.strerror or error}",
                hint="make room there, choose a smaller --size, or set TMPDIR to a larger disk",
            ) from error
        return files

    def _evict(self) -> None:
        """Drop the sets used longest ago until both bounds hold; sets in use stay."""
        with self._lock:
            kept = [(entry.drawn, entry.users) for entry in self._entries.values() if entry.drawn is not None]
            files = sum(drawn.file_bytes for drawn, _ in kept)
            references = sum(drawn.reference_bytes for drawn, users in kept if not users)
            allowed = self._file_bytes or scratch.fair_share(self.directory, files, _FILE_SHARE)
            for name, entry in list(self._entries.items()):
                if files <= allowed and references <= self._reference_bytes:
                    return
                if entry.users or entry.drawn is None:
                    continue
                files -= entry.drawn.file_bytes
                references -= entry.drawn.reference_bytes
                del self._entries[name]
                shutil.rmtree(self.directory / name, ignore_errors=True)


def _stage(key: InputKey) -> str:
    """What is done for a key, for a person who waits."""
    place = f"{key.problem.id} at size {key.workload}"
    if key.perturbation != UNPERTURBED:
        return f"computing the reference of a judged timed call of {place}"
    return f"drawing {key.draws[0]} inputs of {place}" + (" and computing their reference" if key.judged else "")
