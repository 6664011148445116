"""Product of two matrices of 8-bit floating-point numbers with scales."""

import torch

SIZES = {
    "small": {"rows": 67, "columns": 131, "inner": 203},
    "medium": {"rows": 2048, "columns": 2048, "inner": 2048},
    "full": {"rows": 16384, "columns": 4096, "inner": 4096},
}
PRECISIONS = ("fp16", "bf16")
DTYPES = {"a": "float8_e4m3fn", "b": "float8_e4m3fn", "a_scales": "float32", "b_scales": "float32"}
TAGS = ("matmul", "quantized")
OP_FAMILY = "matmul"
MENDS = (
    "kernrl quantises in every call, where one rounding moves a code by a whole step. Here codes and scales are inputs."
)


class Model(torch.nn.Module):
    """a b^T, times a scale per row of a and of b."""

    def forward(self, a: torch.Tensor, b: torch.Tensor, a_scales: torch.Tensor, b_scales: torch.Tensor) -> torch.Tensor:
        """(rows, inner), (columns, inner), (rows,) and (columns,) -> (rows, columns)."""
        return (a @ b.T) * a_scales[:, None] * b_scales


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    scales = [(0.5 + torch.rand(extent)) / p["inner"] ** 0.25 for extent in (p["rows"], p["columns"])]
    return [torch.randn(p["rows"], p["inner"]), torch.randn(p["columns"], p["inner"]), *scales]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
