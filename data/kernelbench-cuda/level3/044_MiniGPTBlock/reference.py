"""minGPT's transformer block: causal attention and a wide linear pair, each normalised before and added after."""

import math

import torch

SIZES = {
    "small": {"batch_size": 2, "seq_len": 19, "n_embd": 30, "n_head": 3},
    "medium": {"batch_size": 16, "seq_len": 512, "n_embd": 768, "n_head": 8},
    "full": {"batch_size": 128, "seq_len": 512, "n_embd": 768, "n_head": 8},
}
TAGS = ("attention", "matmul", "norm", "network")
MENDS = (
    "KernelBench draws from [0, 1), and its default weights add little to what they are added to. Here inputs are "
    "normal, and queries and keys larger."
)


def layer_norm(width: int) -> torch.nn.LayerNorm:
    """Layer normalisation whose scale and shift are drawn."""
    layer = torch.nn.LayerNorm(width)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


class Attention(torch.nn.Module):
    """Causal attention of many heads between two linear layers."""

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.n_head = n_head
        self.c_attn = torch.nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = torch.nn.Linear(n_embd, n_embd)
        torch.nn.init.normal_(self.c_attn.weight, std=1.5 / math.sqrt(n_embd))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, seq_len, n_embd) -> the same shape."""
        q, k, v = (part.unflatten(2, (self.n_head, -1)).transpose(1, 2) for part in self.c_attn(x).chunk(3, dim=2))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.c_proj(y.transpose(1, 2).flatten(2))


class Model(torch.nn.Module):
    """x + attention(norm(x)), then the same with two linear layers and GELU's approximation by tanh.

    KernelBench's dropout layers have probability 0 and are left out.
    """

    def __init__(self, n_embd: int, n_head: int) -> None:
        super().__init__()
        self.ln_1 = layer_norm(n_embd)
        self.attn = Attention(n_embd, n_head)
        self.ln_2 = layer_norm(n_embd)
        self.mlp = torch.nn.ModuleDict(
            {"c_fc": torch.nn.Linear(n_embd, 4 * n_embd), "c_proj": torch.nn.Linear(4 * n_embd, n_embd)}
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, seq_len, n_embd) -> the same shape."""
        x = x + self.attn(self.ln_1(x))
        wide = torch.nn.functional.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh")
        return x + self.mlp["c_proj"](wide)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["seq_len"], p["n_embd"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["n_embd"], p["n_head"]]
