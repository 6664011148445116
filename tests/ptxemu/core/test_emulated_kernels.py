from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytestmark = pytest.mark.nvcc
RNG = np.random.default_rng(7)
_EDGE_INTEGERS = [0, 1, -1, 2, 31, 32, 255, -256, 65535, 2**31 - 1, -(2**31), 0x12345678]
_EDGE_FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    0.5,
    2.5,
    1e-38,
    1e-44,
    3.4e38,
    65504.0,
    65520.0,
    6e-8,
    1e9,
    float("inf"),
    float("nan"),
]
_SETTINGS = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def test_vector_add_with_a_partial_block(runner):
    a, b = normal(1000), normal(1000)
    got = runner("vadd", "4", "256", [a, b], 4000, 1000).array("f4")
    np.testing.assert_array_equal(got, a + b)


def test_half2_fused_multiply_add_rounds_once(runner):
    a, b, c = (normal(512).astype(np.float16) for _ in range(3))
    got = runner("saxpy_half2", "1", "256", [a, b, c], 1024, 256).array("f2")
    exact = a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)
    np.testing.assert_array_equal(got, exact.astype(np.float16))


def bf16_round(x: np.ndarray) -> np.ndarray:
    raw = x.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((raw + 0x7FFF + (raw >> 16 & 1)) >> 16 << 16).astype(np.uint32).view(np.float32)


def test_bf16_arithmetic(runner):
    a, b = bf16_round(normal(64)), bf16_round(normal(64))
    halves = [(x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b)]
    got = runner("bf16_math", "1", "64", halves, 128).array("u2").astype(np.uint32) << 16
    separate = bf16_round(bf16_round(a * b) + b)
    fused = bf16_round(a.astype(np.float64) * b + b)
    got = got.view(np.float32)
    assert np.all((got == separate) | (got == fused))


def test_softmax_with_shuffles(runner):
    x = normal(8, 100) * 4
    got = runner("softmax_rows", "8", "32", [x], 3200, 100).array("f4").reshape(8, 100)
    exact = np.exp(x - x.max(1, keepdims=True).astype(np.float64))
    np.testing.assert_allclose(got, exact / exact.sum(1, keepdims=True), rtol=1e-5)


def test_tiled_matmul(runner):
    a, b = normal(64, 64), normal(64, 64)
    got = runner("matmul_tiled", "4,4", "16,16", [a, b], 64 * 64 * 4, 64).array("f4").reshape(64, 64)
    np.testing.assert_allclose(got, a.astype(np.float64) @ b, atol=1e-4)


def test_float_atomics_repeat_bit_by_bit(runner):
    x = normal(10000)
    results = [runner("reduce_atomic", "7", "128", [x], 4, 10000, shared=512, threads=k).array("f4") for k in (1, 4)]
    assert results[0] == results[1]
    np.testing.assert_allclose(results[0], x.sum(dtype=np.float64), rtol=1e-3)


def test_integer_atomics(runner):
    x = RNG.integers(0, 1000, 5000, dtype=np.int32)
    got = runner("histogram", "20", "256", [x], 64, 5000).array("i4")
    np.testing.assert_array_equal(got, np.bincount(x & 15, minlength=16))


def collatz(v: int) -> int:
    for steps in range(1, 202):
        v = 3 * v + 1 if v & 1 else v >> 1
        if v == 1 or steps > 200:
            return steps
    raise AssertionError


def test_divergent_loop(runner):
    x = np.arange(2, 66, dtype=np.int32)
    got = runner("divergent_loop", "1", "64", [x], 256).array("i4")
    np.testing.assert_array_equal(got, [collatz(int(v)) for v in x])


def test_barrier_does_not_wait_for_exited_threads(runner):
    got = runner("early_exit_barrier", "1", "256", [], 1024, 100).array("i4")
    np.testing.assert_array_equal(got[:100], sum(range(100)))
    np.testing.assert_array_equal(got[100:], 0)


def test_votes_reductions_matches_and_diverged_shuffles(runner):
    x = RNG.integers(-50, 50, 32, dtype=np.int32)
    got = runner("warp_votes", "1", "32", [x], 512).array("u4").reshape(32, 4)
    assert np.all(got[:, 0] == sum(1 << k for k in range(32) if x[k] > 0))
    assert np.all(got[:, 1].astype(np.int32) == x.sum())
    for lane in range(32):
        assert got[lane, 2] == sum(1 << k for k in range(32) if x[k] & 3 == x[lane] & 3)
    np.testing.assert_array_equal(got[:, 3].astype(np.int32), np.where(np.arange(32) & 1, x[5], x[4]))


def test_barrier_reductions(runner):
    x = RNG.integers(0, 100, 96, dtype=np.int32)
    got = runner("counts", "1", "96", [x], 384).array("i4")
    assert np.all(got == (x & 1).sum() * 4 + 2 + int((x > 90).any()))


def signed(value: int, bits: int = 32) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def integer_forms(a: int, b: int) -> list[int]:
    ua, ub = a & 0xFFFFFFFF, b & 0xFFFFFFFF
    quotient = (lambda x, y: abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1))(a, b or 1)
    both = ub << 32 | ua
    picked = [both >> 8 * k & 255 for k in (0, 4, 1, 5)]
    dot = 5 + sum(signed(ua >> s, 8) * signed(ub >> s, 8) for s in (0, 8, 16, 24))
    return [
        quotient, a - quotient * b if b else 0, ua // (ub | 1), ua % (ub | 1),
        a * b >> 32, ua * ub >> 32, signed(a * b, 64) >> 13, ua.bit_count(),
        32 - ua.bit_length(), int(f"{ua:032b}"[::-1], 2), (ua & -ua).bit_length(), (ub << 32 | ua) << (ub & 31) >> 32,
        sum(byte << 8 * k for k, byte in enumerate(picked)), dot, min(a, b), max(ua, ub),
        ua << (ub & 31), a >> (ub & 31), (ua & ub) ^ ~ua, abs(a),
        signed(ua, 8), ub & 0xFFFF, abs(ua - ub) + 3, (ua << 32 | ub) // (ub | 1),
    ]  # fmt: skip


words = st.one_of(st.sampled_from(_EDGE_INTEGERS), st.integers(-(2**31), 2**31 - 1))


@given(st.lists(st.tuples(words, words), min_size=32, max_size=32))
@_SETTINGS
def test_integer_operations_against_python(runner, pairs):
    a, b = (np.array([pair[k] for pair in pairs], np.int32) for k in (0, 1))
    got = runner("integer_forms", "1", "32", [a, b], 32 * 96, count=False).array("u4").reshape(32, 24)
    expected = np.array([[v & 0xFFFFFFFF for v in integer_forms(*pair)] for pair in pairs], np.uint32)
    np.testing.assert_array_equal(got, expected)


floats = st.one_of(st.sampled_from(_EDGE_FLOATS), st.floats(width=32))


@given(st.lists(st.tuples(floats, floats), min_size=32, max_size=32))
@_SETTINGS
def test_float_operations_against_numpy(runner, pairs):
    a, b = (np.array([pair[k] for pair in pairs], np.float32) for k in (0, 1))
    got = runner("float_forms", "1", "32", [a, b], 32 * 64, count=False).array("f4").reshape(32, 16)
    with np.errstate(all="ignore"):
        wide = a.astype(np.float64)
        towards_zero = (wide + b).astype(np.float32)
        expected = {
            0: a + b, 1: a * b, 2: a / b, 4: np.sqrt(np.abs(a)), 5: np.fmin(a, b), 6: np.fmax(a, b), 7: np.floor(a),
            8: np.trunc(b), 9: np.rint(a), 12: np.copysign(a, b), 14: a.astype(np.float16).astype(np.float32),
        }  # fmt: skip
        for column, values in expected.items():
            np.testing.assert_array_equal(got[:, column], values, err_msg=f"column {column}")
        finite = np.isfinite(towards_zero) & np.isfinite(wide + b)
        assert np.all(np.abs(got[finite, 10].astype(np.float64)) <= np.abs((wide + b)[finite]))
        product = wide * b
        finite = np.isfinite(product) & np.isfinite(got[:, 11])
        assert np.all(got[finite, 11].astype(np.float64) >= product[finite])
        number = ~np.isnan(b) & np.isfinite(b)
        np.testing.assert_array_equal(got[number, 15], bf16_round(b[number]))


def test_double_math_library(runner):
    import math

    x = np.abs(RNG.standard_normal(64)) + 0.1
    got = runner("double_math", "1", "64", [x], 512).array("f8")
    np.testing.assert_allclose(got, [math.exp(v) / math.sqrt(v) + math.erf(v) for v in x], rtol=1e-13)


def test_constant_and_device_variables(runner):
    got = runner("constants", "1", "8", [], 32).array("f4")
    np.testing.assert_array_equal(got, np.tile([8.5, 5.0, 7.25, 15.0], 2).astype(np.float32))


def test_local_array_indexed_by_data(runner):
    x = RNG.integers(0, 1000, 40, dtype=np.int32)
    got = runner("local_array", "1", "32", [x], 128, 40).array("i4")
    for thread in range(32):
        total = 0
        for k in range(16):
            total = signed(total * 3 + int(x[(thread + (int(x[k]) & 15)) % 40]))
        assert got[thread] == total


def test_call_of_a_function_that_is_not_inlined(runner):
    x = normal(32)
    k = np.arange(32) & 3
    got = runner("called_function", "1", "32", [x], 128).array("f4")
    np.testing.assert_array_equal(got, np.where(k == 0, -x, x * k.astype(np.float32)) + x)


def test_switch_with_a_jump_table(runner):
    x = np.arange(32, dtype=np.int32)
    t = np.arange(32)
    cases = [np.full(32, 11), t * 7, np.full(32, -5), 90 // (t + 1), t ^ 3, 1000 - t, 0 * t, 0 * t]
    got = runner("switch_table", "1", "32", [x], 128).array("i4")
    np.testing.assert_array_equal(got, np.choose(x & 7, cases))


def test_asynchronous_copy(runner):
    x = normal(64, 4)
    got = runner("async_copy", "1", "64", [x], 1024).array("f4").reshape(64, 4)
    np.testing.assert_array_equal(got, x[::-1])


def test_tensor_core_tile(runner):
    a, b = normal(16, 16).astype(np.float16), normal(16, 8).astype(np.float16)
    got = runner("tensor_tile", "1", "32", [a, b], 512).array("f4").reshape(16, 8)
    np.testing.assert_allclose(got, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-6, atol=1e-6)


def test_lanes_may_wait_for_each_other(runner):
    got = runner("spin_between_lanes", "1", "32", [], 128).array("i4")
    assert np.all(got[:16] == 1)


def test_device_printf_reaches_stdout(runner):
    assert runner("prints", "1", "32").stdout == "lane 0 of kernel 1.50\nlane 1 of kernel 1.50\n"
