"""The judge's replay of a perturbation gives the very bytes that the harness computes, for every type and kind."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernelblaster.devices.base import UNPERTURBED, PerturbationKind
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.evaluation.inputs.perturbations import apply_perturbation
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES
from kernelblaster.paths import harness_include_dir
from kernelblaster.problems.dtype import DType

FLOATS = [dtype for dtype in TORCH_DTYPES if dtype.is_floating_point]
WHOLE = [dtype for dtype in TORCH_DTYPES if not dtype.is_floating_point]
OF_FLOATS = [kind for kind in PerturbationKind if kind is not PerturbationKind.MIRROR]
INTEGERS = [dtype for dtype in WHOLE if dtype is not DType.BOOL]
NUMBERS = st.integers(1, 2**63 - 1)


class Harness:
    """The harness' perturbation code in a process of its own."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def close(self) -> None:
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(timeout=10)

    def perturb(
        self,
        values: torch.Tensor,
        dtype: DType,
        change: PerturbationKind,
        index: int,
        perturbation: int,
        mirror: int = 0,
    ) -> bytes:
        """The bytes of perturbed values."""
        data = raw(values)
        head = f"{index} {perturbation} {dtype} {change} {mirror} {values.numel()}\n"
        self._process.stdin.write(head.encode() + data)
        self._process.stdin.flush()
        return self._process.stdout.read(len(data))


def raw(values: torch.Tensor) -> bytes:
    return values.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    here, program = Path(__file__).parent, tmp_path_factory.mktemp("perturb") / "perturb"
    toolchain = Toolchain.find()
    includes = [f"-I{path}" for path in (harness_include_dir(), *toolchain.include_dirs)]
    sources = [str(here / name) for name in ("perturb.cpp", "host_cudart.cpp")]
    command = [str(toolchain.host_compiler), "-std=c++17", "-O1", *includes, *sources, "-o", str(program)]
    subprocess.run(command, check=True)
    running = Harness(program)
    yield running
    running.close()


def values_of(dtype: DType, count: int, seed: int) -> torch.Tensor:
    """Values of every kind that the type has: random bits, NaN left out; flags are flags."""
    generator = torch.Generator().manual_seed(seed)
    bits = torch.randint(0, 256, (count * dtype.itemsize,), dtype=torch.uint8, generator=generator)
    if dtype is DType.BOOL:
        return (bits % 2).bool()
    values = bits.view(TORCH_DTYPES[dtype])
    if dtype.is_floating_point:
        values = torch.where(values.double().isnan(), torch.ones(()).to(values.dtype), values)
    return values


@given(
    st.sampled_from(FLOATS), st.sampled_from(OF_FLOATS), st.integers(0, 5000), st.integers(0, 40), NUMBERS,
    st.integers(0, 2**32),
)  # fmt: skip
@settings(max_examples=300, deadline=None)
def test_floating_point_values(
    harness: Harness, dtype: DType, change: PerturbationKind, count: int, index: int, perturbation: int, seed: int
) -> None:
    values = values_of(dtype, count, seed)
    replayed = apply_perturbation(values, change, index, perturbation)
    assert replayed.dtype is values.dtype
    assert harness.perturb(values, dtype, change, index, perturbation) == raw(replayed)


@given(
    st.sampled_from(WHOLE), st.sampled_from([PerturbationKind.ROTATE, PerturbationKind.FIXED]), st.integers(0, 5000),
    st.integers(0, 40), NUMBERS, st.integers(0, 2**32),
)  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_integers_and_flags(
    harness: Harness, dtype: DType, change: PerturbationKind, count: int, index: int, perturbation: int, seed: int
) -> None:
    values = values_of(dtype, count, seed)
    replayed = apply_perturbation(values, change, index, perturbation)
    assert harness.perturb(values, dtype, change, index, perturbation) == raw(replayed)
    assert torch.equal(replayed.sort().values, values.sort().values)


@given(st.sampled_from(INTEGERS), st.data(), st.integers(2, 5000), st.integers(0, 40), NUMBERS)
@settings(max_examples=100, deadline=None)
def test_mirrored_integers_stay_in_bounds(
    harness: Harness, dtype: DType, data: st.DataObject, count: int, index: int, perturbation: int
) -> None:
    least, most = torch.iinfo(TORCH_DTYPES[dtype]).min, torch.iinfo(TORCH_DTYPES[dtype]).max
    low = data.draw(st.integers(max(least, -(2**62)), min(most, 2**62) - 1))
    high = data.draw(st.integers(low + 1, min(most, 2**62)))
    values = torch.randint(low, high + 1, (count,), generator=torch.Generator().manual_seed(index))
    values = values.to(TORCH_DTYPES[dtype])
    replayed = apply_perturbation(values, PerturbationKind.MIRROR, index, perturbation, low + high)
    assert harness.perturb(values, dtype, PerturbationKind.MIRROR, index, perturbation, low + high) == raw(replayed)
    assert int(replayed.long().min()) >= low
    assert int(replayed.long().max()) <= high


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_pattern_is_halved_as_ieee_multiplication_does(harness: Harness, dtype: DType) -> None:
    if dtype.bits <= 16:
        kind = {8: torch.uint8, 16: torch.int16}[dtype.bits]
        values = torch.arange(1 << dtype.bits).to(kind).view(TORCH_DTYPES[dtype])
        values = torch.where(values.double().isnan(), torch.ones(()).to(values.dtype), values)
    else:
        values = values_of(dtype, 1 << 16, seed=1)
    halves = next(number for number in range(1, 99) if not torch.equal(scaled(values, number), values))
    assert harness.perturb(values, dtype, PerturbationKind.SCALE, 0, halves) == raw(scaled(values, halves))
    exact = (values.double() / 2).to(values.dtype)
    assert raw(scaled(values, halves)) == raw(exact)


def scaled(values: torch.Tensor, perturbation: int) -> torch.Tensor:
    return apply_perturbation(values, PerturbationKind.SCALE, 0, perturbation)


def test_no_perturbation_leaves_values_as_they_are(harness: Harness) -> None:
    values = values_of(DType.FLOAT32, 3000, seed=2)
    for change in PerturbationKind:
        assert harness.perturb(values, DType.FLOAT32, change, 1, UNPERTURBED) == raw(values)
        assert torch.equal(apply_perturbation(values, change, 1, UNPERTURBED), values)
