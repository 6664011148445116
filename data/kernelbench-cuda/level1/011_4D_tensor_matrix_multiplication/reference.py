"""Product over the last axis of a four-dimensional tensor with a matrix."""

import torch

SIZES = {
    "small": {"b": 2, "i": 7, "j": 19, "l": 61, "k": 83},
    "medium": {"b": 2, "i": 256, "j": 512, "l": 256, "k": 768},
    "full": {"b": 8, "i": 256, "j": 512, "l": 256, "k": 768},
    "v0": {"b": 16, "i": 256, "j": 512, "l": 256, "k": 768},
}
TAGS = ("matmul",)


class Model(torch.nn.Module):
    """C[b, i, j, k] = sum over l of A[b, i, j, l] B[l, k]."""

    def forward(self, A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        """(b, i, j, l), (l, k) -> (b, i, j, k)."""
        return torch.einsum("bijl,lk->bijk", A, B)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["b"], p["i"], p["j"], p["l"]), torch.rand(p["l"], p["k"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
