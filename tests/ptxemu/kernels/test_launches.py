"""PTX launched on arrays of this process: values, what comes back beside them, and what is refused."""

from __future__ import annotations

import array
import ctypes
from pathlib import Path

import numpy as np
import pytest
from emulator_support import needs_tools

import ptxemu
from ptxemu.metrics.names import NsightMetric

pytestmark = [pytest.mark.nvcc, needs_tools]
TEXT = Path(__file__).with_name("launched.ptx").read_text(encoding="utf-8")
TRITON = Path(__file__).with_name("from_triton")


class OnlyDlpack:
    """An array as PyTorch gives it away."""

    def __init__(self, content: np.ndarray, device: tuple[int, int] = (1, 0)) -> None:
        self.content = content
        self.device = device

    def __dlpack__(self, **options: object) -> object:
        return self.content.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


@pytest.fixture(scope="module")
def module() -> ptxemu.PtxModule:
    return ptxemu.load_ptx(TEXT)


def test_values_counters_and_time_come_back(module: ptxemu.PtxModule) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    result = module.launch("saxpy", 8, 128, [0.5, x, y, np.int64(1000)], checks=True, lines=2)
    assert (y == 0.5 * np.arange(1000) + 1).all()
    assert result.findings == ()
    assert result.metrics[NsightMetric.GLOBAL_LOAD_SECTORS] == 2 * 125
    assert result.metrics[NsightMetric.REGISTERS_PER_THREAD] > 0
    assert result.modelled_us > 0


@pytest.mark.parametrize(
    "make",
    [
        lambda values: np.array(values, np.float32),
        lambda values: array.array("f", values),
        lambda values: bytearray(np.array(values, np.float32)),
        lambda values: OnlyDlpack(np.array(values, np.float32)),
    ],
    ids=["numpy", "array", "bytearray", "dlpack"],
)
def test_arrays_of_many_makers(module: ptxemu.PtxModule, make) -> None:
    x, y = make([1.0, 2.0, 3.0]), make([10.0, 20.0, 30.0])
    module.launch("saxpy", 1, 32, [2, x, y, 3])
    found = np.from_dlpack(y) if isinstance(y, OnlyDlpack) else np.frombuffer(y, np.float32)
    assert found.tolist() == [12, 24, 36]


def test_arrays_that_overlap_overlap_on_the_device(module: ptxemu.PtxModule) -> None:
    whole = np.arange(64, dtype=np.float32)
    module.launch("saxpy", 1, 32, [1.0, whole[:32], whole[16:48], 32])
    assert (whole[48:] == np.arange(48, 64)).all()
    assert whole[47] == 47 + 31


def test_numbers_and_structures_take_the_type_of_the_parameter(module: ptxemu.PtxModule) -> None:
    class Pair(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int32), ("b", ctypes.c_double))

    out = np.zeros(4, np.float64)
    module.launch("values", 1, 1, [-1, 2.5, Pair(7, 0.125), out])
    assert out.tolist() == [-1, 2.5, 7, 0.125]


def test_a_null_pointer_and_an_empty_array_fault_where_they_are_read(module: ptxemu.PtxModule) -> None:
    for nothing in (None, np.zeros(0, np.float32)):
        with pytest.raises(ptxemu.KernelFailed, match="cudaErrorIllegalAddress"):
            module.launch("saxpy", 1, 32, [1.0, nothing, np.zeros(32, np.float32), 32])


def test_a_kernel_that_fails_leaves_arrays_alone_and_says_what_was_found(module: ptxemu.PtxModule) -> None:
    x, y = np.ones(100, np.float32), np.ones(100, np.float32)
    with pytest.raises(ptxemu.KernelFailed) as failed:
        module.launch("saxpy", 1, 128, [1.0, x, y, 128], checks=True)
    assert (y == 1).all()
    assert {one.kind for one in failed.value.findings} == {ptxemu.FindingKind.OUT_OF_BOUNDS}
    assert failed.value.exit_code == 1


def test_a_kernel_without_end_is_killed(module: ptxemu.PtxModule) -> None:
    with pytest.raises(ptxemu.KernelFailed):
        module.launch("endless", 1, 1, [], timeout_s=0.3)


def test_only_what_is_written_to_has_to_be_writable(module: ptxemu.PtxModule) -> None:
    x, y = np.ones(32, np.float32), np.ones(32, np.float32)
    x.flags.writeable = False
    module.launch("saxpy", 1, 32, [1.0, x, y, 32])
    assert (y == 2).all()
    with pytest.raises(ptxemu.InvalidInput, match="read-only"):
        module.launch("saxpy", 1, 32, [1.0, y, x, 32])
    assert (x == 1).all()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([1.0, np.zeros(8, np.float32)], "4 arguments"),
        ([1.0, np.zeros((8, 8), np.float32).T, np.zeros(64, np.float32), 8], "argument 1.*contiguous"),
        ([1.0, np.zeros(8, object), np.zeros(8, np.float32), 8], "argument 1.*objects"),
        ([1.0, OnlyDlpack(np.zeros((4, 2), np.float32).T), np.zeros(8, np.float32), 8], "argument 1.*contiguous"),
        ([1.0, OnlyDlpack(np.zeros(8, np.float32), (2, 0)), np.zeros(8, np.float32), 8], "argument 1.*GPU"),
        ([1.0, "x", np.zeros(8, np.float32), 8], "argument 1.*str"),
        ([np.zeros(8, np.float32), None, None, 8], "argument 0"),
        ([1.0, None, None, 1 << 32], "argument 3.*4294967296"),
        ([1.0, None, None, 2.5], "argument 3"),
    ],
)
def test_arguments_that_do_not_fit_are_named(module: ptxemu.PtxModule, arguments: list[object], said: str) -> None:
    with pytest.raises(ptxemu.InvalidInput, match=said):
        module.launch("saxpy", 1, 32, arguments)


@pytest.mark.slow
def test_torch_tensors(module: ptxemu.PtxModule) -> None:
    torch = pytest.importorskip("torch")
    x, y = torch.arange(64.0), torch.zeros(64)
    module.launch("saxpy", 2, 32, [3.0, x, y, 64])
    assert torch.equal(y, 3 * x)
    for tensor in (torch.zeros(8, 8).T, torch.zeros(64, requires_grad=True)):
        with pytest.raises(ptxemu.InvalidInput, match="argument 1"):
            module.launch("saxpy", 1, 32, [1.0, tensor, y, 8])


@pytest.mark.parametrize(
    ("grid", "block"), [(1, 5000), (1, (32, 32, 2)), ((1, 70000), 32), (0, 32), ((1, 1, 1, 1), 32)]
)
def test_launches_that_a_gpu_refuses(module: ptxemu.PtxModule, grid, block) -> None:
    with pytest.raises(ptxemu.InvalidInput):
        module.launch("endless", grid, block)


def test_an_unknown_kernel_is_told_the_others(module: ptxemu.PtxModule) -> None:
    with pytest.raises(ptxemu.InvalidInput) as refused:
        module.launch("sxapy", 1, 1)
    assert "saxpy" in refused.value.hint


def test_text_that_ptxas_refuses() -> None:
    with pytest.raises(ptxemu.ProgramDoesNotBuild, match="ptxas"):
        ptxemu.load_ptx(TEXT.replace("fma.rn.f32", "fma.rn.f33"))


def test_clusters_and_much_shared_memory(module: ptxemu.PtxModule) -> None:
    out = np.zeros(8, np.uint32)
    result = module.launch("places", 8, 1, [out], shared_bytes=100_000, cluster=(4,), checks=True)
    assert out.tolist() == [100_004, 100_104, 100_204, 100_304] * 2
    assert result.metrics[NsightMetric.SHARED_DYNAMIC] == 100_000


def test_triton_softmax() -> None:
    x = np.random.default_rng(0).standard_normal((5, 1000)).astype(np.float32)
    y = np.empty_like(x)
    softmax = ptxemu.load_ptx((TRITON / "softmax_rows.ptx").read_text(encoding="utf-8"))
    result = softmax.launch("softmax_rows", 5, 128, [x, y, 1000, None, None], shared_bytes=16, checks=True, lines=1)
    raised = np.exp(x.astype(np.float64))
    np.testing.assert_allclose(y, raised / raised.sum(1, keepdims=True), rtol=1e-5)
    assert result.findings == ()
    assert result.launch.lines[0].source_file == "kernels.py"


def test_triton_product_by_wgmma() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((112, 96), (96, 80)))
    c = np.zeros((112, 80), np.float32)
    matmul = ptxemu.load_ptx((TRITON / "matmul.ptx").read_text(encoding="utf-8"))
    arguments = [a, b, c, 112, 80, 96, None, None]
    result = matmul.launch("matmul", (2, 2), 128, arguments, shared_bytes=24576, checks=True)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-4)
    assert result.findings == ()
    assert result.metrics[NsightMetric.PIPE_TENSOR] > 0
