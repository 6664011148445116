"""Element types of tensors: one enumeration for problem files, formats of other tools, the harness and the judge."""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType


class DType(StrEnum):
    """Element type of a tensor, by the name that PyTorch, FlashInfer-Bench and SOL-ExecBench share."""

    FLOAT64 = "float64"
    FLOAT32 = "float32"
    FLOAT16 = "float16"
    BFLOAT16 = "bfloat16"
    FLOAT8_E4M3FN = "float8_e4m3fn"
    FLOAT8_E5M2 = "float8_e5m2"
    FLOAT4_E2M1 = "float4_e2m1"
    FLOAT4_E2M1FN_X2 = "float4_e2m1fn_x2"
    """Two values in one byte."""
    INT64 = "int64"
    INT32 = "int32"
    INT16 = "int16"
    INT8 = "int8"
    UINT8 = "uint8"
    BOOL = "bool"

    @classmethod
    def of(cls, text: str) -> DType:
        """The type that a name or label stands for. Raises ValueError."""
        return next((dtype for dtype, label in _LABELS.items() if label == text), None) or cls(text)

    @property
    def is_floating_point(self) -> bool:
        """Whether its values are rounded, so that an output of this type has an error budget."""
        return self.value.startswith(("float", "bfloat"))

    @property
    def bits(self) -> int:
        """Bits of one element in memory."""
        return _BITS[self]

    @property
    def itemsize(self) -> int:
        """Bytes of one element. Raises ValueError for a type that is smaller than a byte."""
        if self.bits % 8:
            raise ValueError(f"an element of type {self} does not fill whole bytes")
        return self.bits // 8

    @property
    def label(self) -> str:
        """How it is shown to people and models: `fp16`, `fp32`, `bf16` as in `--precision`, else its name."""
        return _LABELS.get(self, self.value)


_BITS = MappingProxyType(
    {
        DType.FLOAT64: 64,
        DType.FLOAT32: 32,
        DType.FLOAT16: 16,
        DType.BFLOAT16: 16,
        DType.FLOAT8_E4M3FN: 8,
        DType.FLOAT8_E5M2: 8,
        DType.FLOAT4_E2M1: 4,
        DType.FLOAT4_E2M1FN_X2: 8,
        DType.INT64: 64,
        DType.INT32: 32,
        DType.INT16: 16,
        DType.INT8: 8,
        DType.UINT8: 8,
        DType.BOOL: 8,
    }
)
LAUNCHABLE: tuple[DType, ...] = tuple(
    dtype for dtype in DType if dtype not in (DType.FLOAT4_E2M1, DType.FLOAT4_E2M1FN_X2)
)
"""Types that tensors of a launcher may have: one element fills whole bytes."""
_LABELS = MappingProxyType({DType.FLOAT16: "fp16", DType.FLOAT32: "fp32", DType.BFLOAT16: "bf16"})
