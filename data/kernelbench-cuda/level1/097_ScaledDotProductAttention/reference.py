"""Scaled dot-product attention of many heads, without a mask."""

import torch

SIZES = {
    "small": {"batch_size": 2, "heads": 3, "seq_len": 41, "head_size": 53},
    "medium": {"batch_size": 4, "heads": 32, "seq_len": 512, "head_size": 1024},
    "full": {"batch_size": 32, "heads": 32, "seq_len": 512, "head_size": 1024},
}
TAGS = ("attention", "matmul", "softmax")
MENDS = (
    "KernelBench draws from [0, 1), where all scores of a query are nearly equal, and the mean of the values "
    "nearly right. Here inputs are normal."
)


class Model(torch.nn.Module):
    """softmax(Q K^T / sqrt(head_size)) V for each sample and head."""

    def forward(self, Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor) -> torch.Tensor:
        """(batch_size, heads, seq_len, head_size) three times -> the same shape."""
        return torch.nn.functional.scaled_dot_product_attention(Q, K, V)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["batch_size"], p["heads"], p["seq_len"], p["head_size"])
    return [torch.randn(shape) for _ in range(3)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
