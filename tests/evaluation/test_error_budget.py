"""Which kernels the error budget accepts and which it refuses, on the shipped problems' own references."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
import torch
from budget_support import RELU_SLUG, Jury, Kernel
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode

from kernelblaster.evaluation.correctness import compare as compare_module
from kernelblaster.evaluation.correctness.compare import compare
from kernelblaster.evaluation.correctness.error_budget import Budget
from kernelblaster.evaluation.correctness.error_scale import ErrorScale, fits, spacing
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.correctness.widening import Widened
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.tensors import TORCH_DTYPES, write_tensor
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Precision, TensorRole, TensorSpec

MATMUL = "level1/001_Square_matrix_multiplication"
MATVEC = "level1/004_Matrix_vector_multiplication"
RELU = RELU_SLUG
SOFTMAX = "level1/023_Softmax"
GELU = "level1/026_GELU"
RMSNORM = "level1/036_RMSNorm"
LAYERNORM = "level1/040_LayerNorm"
MAXPOOL = "level1/042_Max_Pooling_2D"
SUM = "level1/047_Sum_reduction_over_a_dimension"
CUMSUM = "level1/089_cumsum"
CROSS_ENTROPY = "level1/095_CrossEntropyLoss"
GEMM_LEAKY = "level2/012_Gemm_Multiply_LeakyReLU"
GEMM_SOFTMAX = "level2/099_Matmul_GELU_Softmax"

ALL = tuple(Precision)
HALF = (Precision.FP16, Precision.BF16)
FULL = (Precision.FP32,)


def tf32(x: torch.Tensor) -> torch.Tensor:
    """Round to ten bits of mantissa, as tensor cores read fp32."""
    bits = x.contiguous().view(torch.int32)
    return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


def through(dtype: torch.dtype) -> Callable[[torch.Tensor], torch.Tensor]:
    """Round to a 16-bit type and back."""
    return lambda x: x.to(dtype).float()


def serial_sum(x: torch.Tensor, dim: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Add terms one after the other in one accumulator: the least accurate honest order."""
    total = torch.zeros_like(x.select(dim, 0), dtype=dtype)
    for term in x.to(dtype).unbind(dim):
        total = total + term
    return total.float()


def tiled_sum(x: torch.Tensor, dim: int, tiles: int = 32) -> torch.Tensor:
    """Strided partial sums, added serially."""
    parts = [x.narrow(dim, 0, x.shape[dim])[(slice(None),) * dim + (slice(t, None, tiles),)] for t in range(tiles)]
    return serial_sum(torch.stack([serial_sum(part, dim) for part in parts]), 0)


def fast_exp(x: torch.Tensor) -> torch.Tensor:
    """exp as 2^(x log2 e) with one rounding of the product and 2 ulps of noise, as `__expf` is."""
    return torch.exp2(x * math.log2(math.e)) * (1 + 2 * 2.0**-23)


def serial_matmul(a: torch.Tensor, b: torch.Tensor, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Accumulate one outer product after the other."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=dtype)
    for k in range(a.shape[1]):
        total = total + (a[:, k, None] * b[None, k, :]).to(dtype)
    return total.float()


def online_softmax(x: torch.Tensor, exp: Callable[[torch.Tensor], torch.Tensor] = torch.exp) -> torch.Tensor:
    """One pass with a running maximum, in blocks of 64 columns."""
    highest = torch.full((x.shape[0], 1), -math.inf)
    total = torch.zeros(x.shape[0], 1)
    for block in x.split(64, dim=1):
        higher = torch.maximum(highest, block.amax(dim=1, keepdim=True))
        anchor = torch.where(higher == -math.inf, 0.0, higher)  # rows may begin masked
        total = total * exp(highest - anchor) + exp(block - anchor).sum(dim=1, keepdim=True)
        highest = higher
    return exp(x - highest) * (1 / total)


def gelu_tanh(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.gelu(x, approximate="tanh")


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    """Two passes, serial over planes, with an approximate rsqrt."""
    rows = x.reshape(x.shape[0], -1)
    mean = tiled_sum(rows, 1)[:, None] / rows.shape[1]
    variance = tiled_sum((rows - mean).square(), 1)[:, None] / rows.shape[1]
    normal = (rows - mean) * (torch.rsqrt(variance + eps) * (1 + 2.0**-22))
    return normal.reshape(x.shape) * weight + bias


def one_pass_layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    """The variance as mean of squares minus squared mean, which cancels far from zero."""
    rows = x.reshape(x.shape[0], -1)
    mean = tiled_sum(rows, 1)[:, None] / rows.shape[1]
    variance = tiled_sum(rows.square(), 1)[:, None] / rows.shape[1] - mean.square()
    normal = (rows - mean) * torch.rsqrt(variance.clamp(min=0) + 1e-5)
    return normal.reshape(x.shape) * weight + bias


def masking_softmax(x: torch.Tensor) -> torch.Tensor:
    """Takes zeros for padding."""
    return torch.where(x == 0, 0.0, torch.softmax(torch.where(x == 0, -math.inf, x), dim=1))


def softmax_of_most(x: torch.Tensor) -> torch.Tensor:
    """Leaves the last element out of the maximum: right unless it stands far above the rest."""
    powers = torch.exp(x - x[:, :-1].amax(dim=1, keepdim=True))
    return powers / powers.sum(dim=1, keepdim=True)


def gelu_softmax_of_most(most: slice) -> Kernel:
    """Leaves an end of the row out of the maximum of softmax(gelu(x W^T + b))."""

    def kernel(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        hidden = torch.nn.functional.gelu(x @ weight.T + bias)
        powers = torch.exp(hidden - hidden[:, most].amax(dim=1, keepdim=True))
        return powers / powers.sum(dim=1, keepdim=True)

    return kernel


def skipping_matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Skips a tile of 32 along k where it begins with a zero."""
    parts = a.split(32, dim=1)
    return sum((part * (part[:, :1] != 0)) @ rows for part, rows in zip(parts, b.split(32), strict=True))


def rms_norm(x: torch.Tensor, eps: float = 1e-5) -> torch.Tensor:
    return x * torch.rsqrt(serial_sum(x.square(), 1)[:, None] / x.shape[1] + eps)


def cross_entropy(scores: torch.Tensor, targets: torch.Tensor, rows: int | None = None) -> torch.Tensor:
    """Serial over classes and over the batch, with a fast exponential."""
    highest = scores.amax(dim=1)
    total = serial_sum(fast_exp(scores - highest[:, None]), 1)
    losses = highest + torch.log(total) - scores.gather(1, targets[:, None])[:, 0]
    used = losses[:rows]
    return serial_sum(used, 0) / used.shape[0]


def gemm_leaky(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, times: float = 2.0) -> torch.Tensor:
    return torch.nn.functional.leaky_relu((serial_matmul(x, weight.T) + bias) * times, 0.1)


HONEST: dict[str, tuple[str, tuple[Precision, ...], Kernel]] = {
    "matmul, serial over k": (MATMUL, ALL, serial_matmul),
    "matmul, k in two halves": (MATMUL, ALL, lambda a, b: a[:, :65] @ b[:65] + a[:, 65:] @ b[65:]),
    "matrix-vector, strided": (MATVEC, ALL, lambda a, b: tiled_sum(a * b[:, 0], 1)[:, None]),
    "relu": (RELU, ALL, lambda x: x.clamp(min=0)),
    "softmax, online": (SOFTMAX, ALL, online_softmax),
    "softmax, online, __expf": (SOFTMAX, ALL, lambda x: online_softmax(x, fast_exp)),
    "gelu, erf": (GELU, ALL, lambda x: 0.5 * x * (1 + torch.erf(x * math.sqrt(0.5)))),
    "rms norm, rsqrt": (RMSNORM, ALL, rms_norm),
    "layer norm, two passes": (LAYERNORM, ALL, layer_norm),
    "max pool": (MAXPOOL, ALL, lambda x: torch.nn.functional.max_pool2d(x, 4, 1, 1)),
    "sum, serial": (SUM, ALL, lambda x: serial_sum(x, 1)[:, None]),
    "sum, tiled": (SUM, ALL, lambda x: tiled_sum(x, 1)[:, None]),
    "cumsum, serial": (CUMSUM, ALL, lambda x: torch.cumsum(x, dim=1, dtype=torch.float32)),
    "cross entropy, serial": (CROSS_ENTROPY, ALL, cross_entropy),
}

DISHONEST: dict[str, tuple[str, tuple[Precision, ...], Kernel]] = {
    "matmul in tf32": (MATMUL, FULL, lambda a, b: tf32(a) @ tf32(b)),
    "matmul in bf16": (MATMUL, FULL, lambda a, b: through(torch.bfloat16)(a) @ through(torch.bfloat16)(b)),
    "matmul in fp16": (MATMUL, FULL, lambda a, b: through(torch.float16)(a) @ through(torch.float16)(b)),
    "matmul accumulated in fp16": (MATMUL, (Precision.FP16,), lambda a, b: serial_matmul(a, b, torch.float16)),
    "matmul accumulated in bf16": (MATMUL, (Precision.BF16,), lambda a, b: serial_matmul(a, b, torch.bfloat16)),
    "matmul in bf16 under fp16": (
        MATMUL, (Precision.FP16,), lambda a, b: through(torch.bfloat16)(a) @ through(torch.bfloat16)(b)),
    "matmul, half of k": (MATMUL, ALL, lambda a, b: 2 * (a[:, :65] @ b[:65])),
    "matmul, last k left out": (MATMUL, ALL, lambda a, b: a[:, :-1] @ b[:-1]),
    "matmul, transposed": (MATMUL, ALL, lambda a, b: (a @ b).T),
    "matrix-vector, even columns doubled": (MATVEC, ALL, lambda a, b: 2 * (a[:, ::2] @ b[::2])),
    "relu is the identity": (RELU, ALL, lambda x: x),
    "relu gives zeros": (RELU, ALL, torch.zeros_like),
    "relu through fp16": (RELU, FULL, lambda x: through(torch.float16)(x.clamp(min=0))),
    "softmax is one over n": (SOFTMAX, ALL, lambda x: torch.full_like(x, 1 / x.shape[1])),
    "softmax gives zeros": (SOFTMAX, ALL, torch.zeros_like),
    "softmax normalised by half a row": (
        SOFTMAX, ALL, lambda x: x.exp() / (2 * x[:, :750].exp().sum(dim=1, keepdim=True))),
    "softmax through fp16": (SOFTMAX, FULL, lambda x: torch.softmax(through(torch.float16)(x), dim=1)),
    "softmax gives NaN": (SOFTMAX, ALL, lambda x: torch.full_like(x, math.nan)),
    "gelu is relu": (GELU, ALL, torch.relu),
    "gelu by the tanh formula": (GELU, FULL, gelu_tanh),
    "rms norm without eps": (RMSNORM, ALL, lambda x: rms_norm(x, eps=0.0)),
    "rms norm by half the channels": (
        RMSNORM, ALL, lambda x: x * torch.rsqrt(x[:, :16].square().mean(dim=1, keepdim=True) + 1e-5)),
    "layer norm without scale and shift": (
        LAYERNORM, ALL, lambda x, w, b: layer_norm(x, torch.ones_like(w), torch.zeros_like(b))),
    "layer norm without eps": (LAYERNORM, ALL, lambda x, w, b: layer_norm(x, w, b, eps=0.0)),
    "max pool without the window's last row": (
        MAXPOOL, ALL, lambda x: torch.nn.functional.max_pool2d(x, (3, 4), 1, (1, 1))[:, :, :34]),
    "sum, first half doubled": (SUM, ALL, lambda x: 2 * x[:, : x.shape[1] // 2].sum(dim=1, keepdim=True)),
    "sum accumulated in fp16": (SUM, (Precision.FP16,), lambda x: serial_sum(x, 1, torch.float16)[:, None]),
    "cumsum, exclusive": (CUMSUM, ALL, lambda x: torch.cumsum(x, dim=1) - x),
    "cross entropy ignores targets": (CROSS_ENTROPY, ALL, lambda s, t: cross_entropy(s, torch.zeros_like(t))),
    "cross entropy of half the batch": (CROSS_ENTROPY, ALL, lambda s, t: cross_entropy(s, t, rows=65)),
    "gemm with another factor": (GEMM_LEAKY, ALL, lambda x, w, b: gemm_leaky(x, w, b, times=1.9)),
    "gemm without bias": (GEMM_LEAKY, ALL, lambda x, w, b: gemm_leaky(x, w, torch.zeros_like(b))),
}  # fmt: skip


SEEN_BY_ONE: dict[str, tuple[str, tuple[Precision, ...], Distribution, Kernel]] = {
    "layer norm in one pass": (LAYERNORM, (Precision.FP16, Precision.FP32), Distribution.OFFSET, one_pass_layer_norm),
    "softmax leaves an element out of the maximum": (SOFTMAX, ALL, Distribution.SPARSE, softmax_of_most),
    "softmax behind a layer, without the last": (
        GEMM_SOFTMAX, ALL, Distribution.SPARSE, gelu_softmax_of_most(slice(None, -1))),
    "softmax behind a layer, without the first": (
        GEMM_SOFTMAX, ALL, Distribution.NEGATIVE, gelu_softmax_of_most(slice(1, None))),
    "softmax takes zeros for padding": (SOFTMAX, ALL, Distribution.SPARSE, masking_softmax),
    "matmul skips tiles that begin with a zero": (MATMUL, ALL, Distribution.SPARSE, skipping_matmul),
}  # fmt: skip
"""Wrong kernels that all other distributions pass."""


def cases(table: dict[str, tuple[str, tuple[Precision, ...], Kernel]]) -> list[object]:
    """Every kernel in each of its precisions; by default in one of them, another each day."""
    today = date.today().toordinal()
    return [
        pytest.param(
            slug,
            precision,
            kernel,
            id=f"{name}, {precision}",
            marks=[] if (today + row + place) % len(precisions) == 0 else [pytest.mark.slow],
        )
        for row, (name, (slug, precisions, kernel)) in enumerate(table.items())
        for place, precision in enumerate(precisions)
    ]


@pytest.fixture
def jury(store: InputStore, tmp_path: Path) -> Jury:
    return Jury(store, tmp_path)


@pytest.mark.parametrize(("slug", "precision", "kernel"), cases(HONEST))
def test_honest_kernels_pass_on_every_distribution(jury: Jury, slug: str, precision: Precision, kernel: Kernel) -> None:
    for distribution in Distribution:
        findings = jury.judge(slug, precision, distribution, kernel)
        assert findings.passed, f"{distribution}: {findings.describe()} (ratio {findings.ratio:.2f})"


@pytest.mark.parametrize(("slug", "precision", "kernel"), cases(DISHONEST))
def test_wrong_kernels_are_refused(jury: Jury, slug: str, precision: Precision, kernel: Kernel) -> None:
    """At least one of the distributions must show it."""
    ratios = {d: jury.judge(slug, precision, d, kernel).ratio for d in Distribution}
    assert max(ratios.values()) > 1, ratios


@pytest.mark.parametrize("name", SEEN_BY_ONE)
def test_each_structured_distribution_sees_what_the_others_do_not(jury: Jury, name: str) -> None:
    slug, precisions, only, kernel = SEEN_BY_ONE[name]
    for precision in precisions:
        seen = [d for d in Distribution if not jury.judge(slug, precision, d, kernel).passed]
        # Coarse values are often zero: they see, too, what only zeros show. Mixed ones are several others at once.
        others = (Distribution.COARSE, Distribution.MIXED)
        assert [d for d in seen if d not in others] == [only], precision


def some_rows_off_by(x: torch.Tensor, share: float) -> torch.Tensor:
    """A softmax in which the sum of every eighth row is too large by this share, as many 16-bit additions leave it."""
    powers = torch.exp(x - x.amax(dim=1, keepdim=True))
    sums = powers.sum(dim=1, keepdim=True)
    sums[::8] *= 1 + share
    return powers / sums


def test_a_factor_is_named_where_one_makes_the_wrong_values(jury: Jury) -> None:
    doubled = jury.judge(RELU, Precision.FP32, Distribution.DECLARED, lambda x: 2 * torch.relu(x))
    least = jury.judge(RELU, Precision.FP32, Distribution.DECLARED, lambda x: x.clamp(max=0))
    assert "2 times expected" in doubled.describe()
    assert "times expected" not in least.describe()  # its zeros are wrong, too: no factor makes them


def test_an_error_that_rows_share_shows_in_them_alone(jury: Jury) -> None:
    found = jury.judge(
        SOFTMAX, Precision.FP16, Distribution.OFFSET, lambda x: some_rows_off_by(x, 0.00115), declared=True
    )
    assert found.wrong == 0
    assert not found.passed
    assert found.worst_row is not None
    assert found.worst_row.ratio == found.ratio > 1
    assert f"{abs(found.worst_row.share):.2%}" in found.describe()


HALVES = (DType.FLOAT16, DType.BFLOAT16)
SPEC = TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT16, (4, 200))
ROWS = TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT16, (24, 160))


def findings_of(output: torch.Tensor, reference: torch.Tensor, tmp_path: Path, spec: TensorSpec = SPEC) -> object:
    """Compare with a plain implementation that only rounds."""
    dtype = TORCH_DTYPES[spec.dtype]
    scale = ErrorScale.measure(reference, reference.to(dtype), spec)
    write_tensor(tmp_path / "o.bin", output.to(dtype))
    return compare(tmp_path / "o.bin", reference, Budget(spec, scale, 2.0), 0xFF)


@pytest.fixture
def reference() -> torch.Tensor:
    return torch.randn(SPEC.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_the_rounded_reference_passes_and_five_ulps_do_not(reference: torch.Tensor, tmp_path: Path) -> None:
    assert findings_of(reference, reference, tmp_path).passed
    off = reference.clone()
    off[2, 7] += 5 * spacing(off, DType.FLOAT16)[2, 7]
    found = findings_of(off, reference, tmp_path)
    assert not found.passed
    assert found.wrong == 1
    assert found.worst.index == (2, 7)


def test_one_element_may_stray_as_far_as_plain_errors_go_anywhere(tmp_path: Path) -> None:
    reference = torch.randn(ROWS.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    off, step = reference.clone(), spacing(reference.abs().max(), DType.FLOAT16)
    first, second = reference.abs().reshape(-1).argsort()[:2].tolist()
    off.reshape(-1)[first] += step / 2
    assert findings_of(off, reference, tmp_path, ROWS).passed
    off.reshape(-1)[second] += step / 2
    assert findings_of(off, reference, tmp_path, ROWS).wrong == 2
    off.reshape(-1)[first] += 4 * step
    off.reshape(-1)[second] = reference.reshape(-1)[second]
    assert findings_of(off, reference, tmp_path, ROWS).wrong == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_element_that_is_not_finite_never_passes(reference: torch.Tensor, tmp_path: Path, bad: float) -> None:
    output = reference.clone()
    output[1, 1] = bad
    found = findings_of(output, reference, tmp_path)
    assert not found.passed
    assert found.not_finite == 1
    assert found.max_error == math.inf


def test_overflow_must_be_the_same_infinity(reference: torch.Tensor, tmp_path: Path) -> None:
    reference[0, :3] = torch.tensor([1e6, -1e6, 65520.0])
    assert findings_of(reference, reference, tmp_path).passed
    saturated = reference.clone().clamp(-65504, 65504)
    found = findings_of(saturated, reference, tmp_path)
    assert found.wrong == 2
    flipped = reference.clone()
    flipped[0, 0] *= -1
    assert not findings_of(flipped, reference, tmp_path).passed


def test_a_reference_that_is_not_finite_asks_for_the_same(reference: torch.Tensor, tmp_path: Path) -> None:
    reference[0, 0], reference[0, 1] = math.nan, math.inf
    assert findings_of(reference, reference, tmp_path).passed
    assert not findings_of(torch.nan_to_num(reference), reference, tmp_path).passed


def test_small_rows_are_not_licensed_by_a_large_one(reference: torch.Tensor, tmp_path: Path) -> None:
    reference[0] *= 1e4
    wrong = reference.clone()
    wrong[3] *= 1.02
    found = findings_of(wrong, reference, tmp_path)
    assert found.wrong > 150
    assert "index >= 3" not in found.describe()


def rectified(slope: float, error: float, seed: int, tmp_path: Path) -> bool:
    """Whether a leaky rectifier passes for one without slope, where both round what they are given to `error`."""
    generator = torch.Generator().manual_seed(seed)
    exact, *off = torch.randn((3, *SPEC.shape), generator=generator, dtype=torch.float64)
    plain, got = (exact + error * one.clamp(-1, 1) for one in off)
    scale = ErrorScale.measure(exact.relu(), plain.relu().half(), SPEC)
    write_tensor(tmp_path / "o.bin", torch.where(got > 0, got, slope * got).half())
    return compare(tmp_path / "o.bin", exact.relu(), Budget(SPEC, scale, 2.0), 0xFF).passed


def test_zeros_of_a_rectifier_may_be_off_by_what_is_attainable_beside_its_edge(tmp_path: Path) -> None:
    assert all(rectified(0.0, 2.0**-10, seed, tmp_path) for seed in range(24))
    assert not any(rectified(0.01, 2.0**-10, seed, tmp_path) for seed in range(24))


@pytest.mark.parametrize(("carriers", "passes"), [(16, True), (256, False)])
def test_few_lucky_roundings_refuse_nobody_however_many_zeros_are_beside_them(
    carriers: int, passes: bool, tmp_path: Path
) -> None:
    reference = torch.zeros(SPEC.shape, dtype=torch.float64)
    reference.view(-1)[:carriers] = 1.0
    assert findings_of(reference * (1 + 2.0**-10), reference, tmp_path).passed is passes


class _Operands(TorchDispatchMode):
    """Notes what types each operation is given."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, torch.dtype] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if args and isinstance(args[0], torch.Tensor):
            self.seen[func.overloadpacket.__name__] = args[0].dtype
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("scan", ["cumsum", "cumprod", "logcumsumexp"])
def test_scans_of_the_plain_implementation_add_in_fp32_whatever_the_device_does(scan: str, kind: torch.dtype) -> None:
    x = torch.rand((3, 500), generator=torch.Generator().manual_seed(2)).to(kind)
    with _Operands() as operands, Widened(kind):
        found = getattr(torch, scan)(x + x, dim=1)
    assert operands.seen["add"] is kind
    assert operands.seen[scan] is torch.float32
    assert torch.equal(found, getattr(torch, scan)((x + x).float(), dim=1).to(kind))


def test_an_operation_that_torch_lacks_in_sixteen_bits_is_rounded_like_the_others() -> None:
    x = torch.randn((2, 3, 4, 4, 4), generator=torch.Generator().manual_seed(2)).half()
    with Widened(torch.float16):
        averages = torch.nn.functional.avg_pool3d(x, 2)
        with pytest.raises(RuntimeError):
            torch.nn.functional.avg_pool3d(x, 5)
    assert torch.equal(averages, torch.nn.functional.avg_pool3d(x.float(), 2).half())


def test_a_plain_implementation_that_overflows_refuses_nobody(tmp_path: Path) -> None:
    spec = TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT16, ())
    reference = torch.tensor(15.7156, dtype=torch.float64)
    scale = ErrorScale.measure(reference, torch.tensor(torch.inf, dtype=torch.float16), spec)
    assert scale.reference_norm == pytest.approx(15.7156)
    assert not scale.plain_finite
    for output, passes in ((15.7156, True), (15.9, False)):
        write_tensor(tmp_path / "o.bin", torch.tensor(output, dtype=torch.float16))
        assert compare(tmp_path / "o.bin", reference, Budget(spec, scale, 2.0), 0xFF).passed is passes


def test_a_full_gpu_is_no_reason_not_to_compare(
    reference: torch.Tensor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = findings_of(reference, reference, tmp_path)
    compare_on, asked = compare_module._compare_on, []

    def full_at_first(device: torch.device, *rest: object) -> object:
        asked.append(device)
        if len(asked) == 1:
            raise RuntimeError("CUDA error: out of memory")
        return compare_on(device, *rest)

    monkeypatch.setattr(compare_module, "_compare_on", full_at_first)
    assert findings_of(reference, reference, tmp_path) == before
    assert asked[1].type == "cpu"


def test_scalar_outputs_are_compared(tmp_path: Path) -> None:
    spec = TensorSpec("output", TensorRole.OUTPUT, DType.BFLOAT16, ())
    reference = torch.tensor(6.9077, dtype=torch.float64)
    assert findings_of(reference, reference, tmp_path, spec).passed
    assert not findings_of(reference * 1.02, reference, tmp_path, spec).passed


def row_ratio(output: torch.Tensor, reference: torch.Tensor, plain: torch.Tensor, spec: TensorSpec = ROWS) -> float:
    """The largest shared error of a row over what is granted; output and plain are of the spec's format."""
    budget = Budget(spec, ErrorScale.measure(reference, plain, spec), 2.0)
    flat = reference.reshape(-1)
    shared = budget.over(flat, 0).shared(output.double().reshape(-1))
    assert shared is not None
    return float(shared.ratio.max())


def rows_of(kind: str, spec: TensorSpec, generator: torch.Generator) -> torch.Tensor:
    """References whose roundings differ, are the same for whole rows, or are nearly ties."""
    noise = torch.randn(spec.shape, generator=generator, dtype=torch.float64)
    if kind == "constant":
        return noise[:, :1].expand(spec.shape).contiguous()
    if kind == "two values":
        return torch.where(noise > 0, noise[:1, :1], noise[:1, 1:2])
    if kind == "ties":
        stored = noise.to(TORCH_DTYPES[spec.dtype]).double()
        return stored + spacing(stored, spec.dtype) / 2 * (1 + 2.0**-20 * noise)
    if kind == "one large":
        return noise * torch.where(torch.arange(spec.shape[1]) == 3, 1000.0, 2.0**-8)
    if kind == "subnormal":
        return noise * 2.0**-22
    if kind == "nearly all masked":
        return noise * (torch.arange(spec.shape[1]) % 100 < torch.arange(spec.shape[0])[:, None] % 4)
    return noise.exp() if kind == "positive" else noise


KINDS = ("normal", "positive", "constant", "two values", "ties", "one large", "subnormal", "nearly all masked")


@given(st.sampled_from(KINDS), st.sampled_from(HALVES), st.floats(-1, 1), st.integers(0, 2**32))
@settings(deadline=None)
def test_no_rounded_result_of_fp32_arithmetic_shares_too_much(kind: str, dtype: str, common: float, seed: int) -> None:
    """A common factor of up to half an epsilon, as a row's sum has that is stored in 16 bits, and fp32 noise."""
    generator = torch.Generator().manual_seed(seed)
    spec = TensorSpec("output", TensorRole.OUTPUT, dtype, ROWS.shape)
    stored, reference = TORCH_DTYPES[dtype], rows_of(kind, ROWS, generator)
    factor = common * (torch.finfo(stored).eps / 2 - 2.0**-14)
    noise = 2.0**-16 * (2 * torch.rand(reference.shape, generator=generator, dtype=torch.float64) - 1)
    output = (reference * (1 + factor + noise)).to(stored)
    assert row_ratio(output, reference, reference.to(stored), spec) <= 1


@given(st.sampled_from(KINDS), st.sampled_from(HALVES), st.integers(0, 2**32))
@settings(deadline=None)
def test_no_roundings_of_intermediate_results_share_too_much(kind: str, dtype: str, seed: int) -> None:
    """One that the plain implementation does not have, of each element or of a row's factor, or both if it has both."""
    generator = torch.Generator().manual_seed(seed)
    spec = TensorSpec("output", TensorRole.OUTPUT, dtype, ROWS.shape)
    stored, reference = TORCH_DTYPES[dtype], rows_of(kind, ROWS, generator)

    def rounding(*shape: int) -> torch.Tensor:
        """What rounding does to a factor of this shape."""
        factor = torch.rand(shape, generator=generator, dtype=torch.float64) + 0.5
        return factor.to(stored).double() / factor

    rows, columns = reference.shape
    plain = reference.to(stored)
    assert row_ratio((reference * rounding(rows, columns)).to(stored), reference, plain, spec) <= 1
    assert row_ratio((reference * rounding(rows, 1)).to(stored), reference, plain, spec) <= 1
    output, plain = ((reference * rounding(rows, columns) * rounding(rows, 1)).to(stored) for _ in range(2))
    assert row_ratio(output, reference, plain, spec) <= 1


@pytest.mark.parametrize("dtype", [DType.FLOAT16, DType.BFLOAT16])
def test_a_row_that_is_off_as_a_whole_is_refused_in_the_midst_of_right_ones(dtype: str, tmp_path: Path) -> None:
    spec = TensorSpec("output", TensorRole.OUTPUT, dtype, (64, 1024))
    reference = rows_of("positive", spec, torch.Generator().manual_seed(3))
    off = reference.clone()
    off[7] *= 1 - 1.1 * torch.finfo(TORCH_DTYPES[dtype]).eps
    found = findings_of(off, reference, tmp_path, spec)
    assert found.wrong == 0
    assert not found.passed
    assert found.worst_row is not None
    assert found.worst_row.index == (7,)
    assert found.worst_row.share == pytest.approx(-1.1 * torch.finfo(TORCH_DTYPES[dtype]).eps, rel=0.1)
    assert "output[7, :]" in found.describe()
    assert findings_of(reference, reference, tmp_path, spec).worst_row.ratio == 0


def test_rows_of_few_values_grant_the_others_nothing() -> None:
    stored = TORCH_DTYPES[ROWS.dtype]
    eps, reference = torch.finfo(stored).eps, rows_of("positive", ROWS, torch.Generator().manual_seed(3))
    reference[::2, 3:] = 0.0
    plain, off = ((reference * (1 + eps)).to(stored).double() for _ in range(2))
    off[::2] *= 1 + 4 * eps
    measured = [ErrorScale.measure(reference, result, ROWS).plain_shared for result in (plain, off)]
    assert measured[0] == measured[1] > 0
    assert ErrorScale.measure(torch.zeros_like(reference), torch.zeros_like(reference), ROWS).plain_shared == 0


def test_what_is_not_finite_says_nothing_of_its_row(tmp_path: Path) -> None:
    reference = rows_of("positive", ROWS, torch.Generator().manual_seed(3))
    reference[2, :3] = torch.tensor([math.nan, math.inf, 1e6], dtype=torch.float64)
    reference[4] = 0.0
    found = findings_of(reference, reference, tmp_path, ROWS)
    assert found.passed
    assert found.worst_row.ratio == 0
    output = reference.clone()
    output[5, 5], output[6] = math.nan, 1.005 * reference[6]
    found = findings_of(output, reference, tmp_path, ROWS)
    assert not found.passed
    assert found.worst_row.index == (6,)


def test_rows_that_are_few_short_or_in_fp32_are_not_judged(tmp_path: Path) -> None:
    for dtype, shape in ((DType.FLOAT16, (15, 160)), (DType.FLOAT16, (24, 127)), (DType.FLOAT32, (24, 160))):
        spec = TensorSpec("output", TensorRole.OUTPUT, dtype, shape)
        reference = torch.randn(shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        assert findings_of(reference, reference, tmp_path, spec).worst_row is None


@given(st.floats(-7e4, 7e4, allow_nan=False))
def test_spacing_is_the_distance_to_the_next_number(value: float) -> None:
    stored = torch.tensor(value, dtype=torch.float64).to(torch.float16)
    if not torch.isfinite(stored):
        assert not fits(torch.tensor([value], dtype=torch.float64), DType.FLOAT16).all()
        return
    above = torch.nextafter(stored.abs(), torch.tensor(math.inf, dtype=torch.float16)).double()
    step = above - stored.abs().double()
    if torch.isfinite(step):
        assert float(spacing(stored.double(), DType.FLOAT16)) == float(step)


def test_an_honest_chain_with_sixteen_bits_between_its_kernels_passes_nearly_every_set() -> None:
    """Another order of summation, and the same roundings between kernels: errors as PyTorch's, on other elements."""
    spec = TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT16, (37, 210))
    refused = 0
    for seed in range(200):
        generator = torch.Generator().manual_seed(seed)
        x, w = (torch.randn(rows, 190, generator=generator).half() for rows in spec.shape)
        x[:, 1::2] = (torch.randn(37, 95, generator=generator) * 0.05).half() - x[:, ::2]
        w[:, 1::2] = w[:, ::2]
        scale, shift = (torch.randn(210, generator=generator).half() for _ in range(2))

        def chain(
            dtype: torch.dtype, order: torch.Tensor, given: tuple[torch.Tensor, ...] = (x, w, scale, shift)
        ) -> torch.Tensor:
            x, w, scale, shift = (tensor.to(dtype) for tensor in given)
            product = x[:, order] @ (w[:, order] / 16).T
            normed = torch.nn.functional.group_norm(product, 6, scale, shift)
            return torch.nn.functional.leaky_relu(normed) * 2

        order = torch.arange(190)
        reference, plain = chain(torch.float64, order), chain(torch.float16, order)
        other = chain(torch.float16, torch.randperm(190, generator=generator))
        budget = Budget(spec, ErrorScale.measure(reference, plain, spec), 2.0)
        flat = reference.reshape(-1)
        refused += bool(((other.double().reshape(-1) - flat).abs() > budget.over(flat, 0).tolerances).any())
    assert refused <= 2


def test_a_small_row_of_a_sample_may_lose_what_its_sample_asks_for() -> None:
    """A norm over several axes loses a part of the sample's scale, also where a row is nearly zero."""
    spec = TensorSpec("output", TensorRole.OUTPUT, DType.FLOAT16, (2, 40, 256))
    reference = torch.randn(spec.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    reference[0, 7] *= 1e-4
    reference[1] *= 1e-4
    budget = Budget(spec, ErrorScale.measure(reference, reference.half(), spec), 2.0)
    tolerances = budget.over(reference.reshape(-1), 0).tolerances.reshape(spec.shape)
    assert tolerances[0, 7].min() > 2.0**-16
    assert tolerances[1].max() < 2.0**-16
