"""Causal self-attention of many heads whose weights are rectified scores in the place of a softmax."""

import math

import torch

SIZES = {
    "small": {"batch_size": 2, "seq_len": 37, "n_embd": 42, "n_head": 3},
    "medium": {"batch_size": 4, "seq_len": 512, "n_embd": 768, "n_head": 12},
    "full": {"batch_size": 16, "seq_len": 1024, "n_embd": 768, "n_head": 12},
}
TAGS = ("attention", "matmul")
MENDS = (
    "KernelBench holds an output projection without using it; here there is none, and queries and keys are larger than "
    "its default weights make them."
)


class Model(torch.nn.Module):
    """relu(q k^T / sqrt(head size)) v, over the positions up to a query's own, q k v from one linear layer."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.c_attn = torch.nn.Linear(n_embd, 3 * n_embd)
        torch.nn.init.normal_(self.c_attn.weight, std=1.0 / math.sqrt(n_embd))
        torch.nn.init.normal_(self.c_attn.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, seq_len, n_embd) -> the same shape."""
        q, k, v = (part.unflatten(2, (self.n_head, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=2))
        scores = q @ k.transpose(2, 3) / math.sqrt(k.shape[3])
        return (torch.relu(scores).tril() @ v).transpose(1, 2).flatten(2)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["seq_len"], p["n_embd"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["n_embd"], p["n_head"]]
