"""Which sums ptxas fuses with a product, as its machine code for sm_90 shows."""

from __future__ import annotations

from pathlib import Path

import pytest
from emulator_support import TIMEOUT_S, needs_tools

from ptxemu.program.run import EmulatedProgram
from ptxemu.ptx.analysis.contractions import contractions
from ptxemu.ptx.syntax import parse

HEAD = ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry k() {\n"
REGISTERS = ".reg .f32 %a, %b, %c, %d, %m, %n, %s, %t, %o, %q;\n.reg .pred %p;\n"


def fused(code: str) -> dict[str, str]:
    """Result of each fused sum -> what it becomes."""
    (function,) = parse(f"{HEAD}{REGISTERS}{code}\nret;\n}}\n").functions
    return {
        str(function.body[index].operands[0]): f"{one.stem} {one.a} {one.b} {one.c}"
        for index, one in contractions(function.body).items()
    }


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("mul.f32 %m,%a,%b; add.f32 %o,%m,%c;", {"%o": "fma_rn %a %b %c"}),
        ("mul.f32 %m,%a,%b; add.f32 %o,%c,%m;", {"%o": "fma_rn %a %b %c"}),
        ("mul.f32 %m,%a,%b; sub.f32 %o,%m,%c;", {"%o": "fms_rn %a %b %c"}),
        ("mul.f32 %m,%a,%b; sub.f32 %o,%c,%m;", {"%o": "fnma_rn %a %b %c"}),
        ("mul.f32 %m,%a,%b; neg.f32 %s,%m; sub.f32 %o,%s,%c;", {"%o": "fnms_rn %a %b %c"}),
        ("mul.f32 %m,%a,%b; mov.f32 %s,%m; add.f32 %o,%s,%c;", {"%o": "fma_rn %a %b %c"}),
        ("mul.f32 %m,%a,%b; bar.sync 0; add.f32 %o,%m,%c;", {"%o": "fma_rn %a %b %c"}),
        ("mul.f32 %m,%a,%b; @%p add.f32 %o,%m,%c;", {"%o": "fma_rn %a %b %c"}),
        (
            "mul.f32 %m,%a,%b; add.f32 %o,%m,%c; add.f32 %q,%m,%d;",
            {"%o": "fma_rn %a %b %c", "%q": "fma_rn %a %b %d"},
        ),
        # of two products the first is fused, or the one that has no other use
        ("mul.f32 %m,%a,%b; mul.f32 %n,%c,%d; add.f32 %o,%m,%n;", {"%o": "fma_rn %a %b %n"}),
        ("mul.f32 %m,%a,%b; mul.f32 %n,%c,%d; add.f32 %o,%n,%m;", {"%o": "fma_rn %c %d %m"}),
        (
            "mul.f32 %m,%a,%b; mul.f32 %n,%c,%d; add.f32 %o,%n,%m; add.f32 %q,%n,%a;",
            {"%o": "fma_rn %a %b %n"},
        ),
        (
            "mul.f32 %m,%a,%b; mul.f32 %n,%c,%d; add.f32 %o,%n,%m; add.f32 %q,%m,%c; add.f32 %s,%n,%d;",
            {"%o": "fma_rn %c %d %m", "%s": "fma_rn %c %d %d"},
        ),
    ],
)
def test_products_are_fused_into_their_sums(code: str, expected: dict[str, str]) -> None:
    assert fused(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "mul.rn.f32 %m,%a,%b; add.f32 %o,%m,%c;",
        "mul.f32 %m,%a,%b; add.rn.f32 %o,%m,%c;",
        "mul.ftz.f32 %m,%a,%b; add.f32 %o,%m,%c;",
        "mul.sat.f32 %m,%a,%b; add.f32 %o,%m,%c;",
        "mul.f32 %m,%a,%b; add.f32 %o,%m,%m;",
        "mul.f32 %m,%a,%b; abs.f32 %s,%m; add.f32 %o,%s,%c;",
        "mul.f32 %m,%a,%b; add.f32 %o,%m,%c; st.shared.f32 [0],%m;",
        "mul.f32 %m,%a,%b; add.f32 %o,%m,%c; fma.rn.f32 %q,%m,%d,%c;",
        "mul.f32 %m,%a,%b; neg.f32 %s,%m; add.f32 %o,%s,%c; st.shared.f32 [0],%s;",
        "@%p mul.f32 %m,%a,%b; @%p add.f32 %o,%m,%c;",
        "mul.f32 %m,%a,%b; @%p bra L; add.f32 %o,%m,%c; L: bar.sync 0;",
        "mul.f32 %m,%a,%b; L: add.f32 %o,%m,%c; @%p bra L;",
        "mul.f32 %m,%a,%b; selp.f32 %s,%m,%d,%p; add.f32 %o,%s,%c;",
        "mul.f32 %m,%a,%b; mul.f32 %m,%c,%d; add.f32 %o,%m,%c;",
    ],
)
def test_what_is_rounded_twice_stays_so(code: str) -> None:
    assert fused(code) == {}


def test_factors_that_have_changed_since_are_not_used() -> None:
    assert fused("mul.f32 %m,%a,%b; add.rn.f32 %a,%a,%d; add.f32 %o,%m,%c;") == {}


@pytest.mark.nvcc
@needs_tools
def test_fused_sums_round_once(tmp_path: Path) -> None:
    source = tmp_path / "fused.cu"
    source.write_text(
        """
        #include <cstdio>
        #include <cuda_fp16.h>
        __global__ void k(float x, double u, __half h, float* y) {
            y[0] = 1.0f - x * x;
            y[1] = 1.0f - __fmul_rn(x, x);
            y[2] = __half2float(__hsub(__float2half(1.0f), __hmul(h, h)));
            y[3] = __half2float(__hsub(__float2half(1.0f), __hmul_rn(h, h)));
            y[4] = 1.0 - u * u;
        }
        int main() {
            float *y, z[5];
            cudaMalloc(&y, sizeof z);
            k<<<1, 1>>>(1 + 0x1p-12f, 1 + 0x1p-30, __float2half(1 + 0x1p-6f), y);
            cudaMemcpy(z, y, sizeof z, cudaMemcpyDeviceToHost);
            const float once[] = {-0x1p-11f - 0x1p-24f, -0x1p-11f, -0x1p-5f - 0x1p-12f, -0x1p-5f, -0x1p-29f - 0x1p-60f};
            int wrong = 0;
            for (int i = 0; i < 5; ++i) wrong |= (z[i] != once[i]) << i;
            return wrong;
        }
        """
    )
    assert EmulatedProgram.build(source).run(timeout_s=TIMEOUT_S).exit_code == 0
