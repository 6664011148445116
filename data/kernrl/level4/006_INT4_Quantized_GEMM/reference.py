"""Product with a matrix of 4-bit codes, which share a scale in groups."""

import torch

SIZES = {
    "small": {"rows": 37, "columns": 131, "groups": 11, "group": 16},
    "medium": {"rows": 1024, "columns": 2048, "groups": 16, "group": 128},
    "full": {"rows": 8192, "columns": 11008, "groups": 32, "group": 128},
}
RANGES = {"codes": (0, 255)}
TAGS = ("matmul", "quantized")
OP_FAMILY = "matmul"
MENDS = (
    "kernrl draws codes and scales anew in every model, so that the reference fails against itself. Here they are "
    "inputs, two codes to a byte."
)


class Model(torch.nn.Module):
    """x w^T, where w is (code - 8) times the scale of its group; the lower half of a byte comes first."""

    def forward(self, x: torch.Tensor, codes: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        """(rows, groups group), (columns, groups group / 2) bytes and (columns, groups) -> (rows, columns)."""
        whole = torch.stack((codes & 15, codes >> 4), -1).flatten(1).to(x.dtype) - 8
        return x @ (whole.unflatten(1, (scales.shape[1], -1)) * scales[..., None]).flatten(1).T


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    inner = p["groups"] * p["group"]
    return [
        torch.randn(p["rows"], inner),
        torch.randint(0, 256, (p["columns"], inner // 2)).to(torch.uint8),
        (0.5 + torch.rand(p["columns"], p["groups"])) / (5 * inner**0.5),
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
