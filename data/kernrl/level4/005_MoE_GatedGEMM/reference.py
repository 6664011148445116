"""Gated layers of the two experts that each token chose."""

import torch

SIZES = {
    "small": {"tokens": 71, "width": 57, "inner": 35, "experts_count": 4, "chosen": 2},
    "medium": {"tokens": 1024, "width": 1024, "inner": 896, "experts_count": 8, "chosen": 2},
    "full": {"tokens": 8192, "width": 4096, "inner": 3584, "experts_count": 8, "chosen": 2},
}
TAGS = ("experts", "matmul", "gather")
OP_FAMILY = "fused_matmul"
MENDS = (
    "kernrl's experts take 5.6 GB in 32 bits, its indices 64 bits, and its reference waits for the GPU in a loop. "
    "Here layers are a quarter as wide, and the reference goes through the experts."
)
_SHARE_OF_PARTIAL = 0.75


class Model(torch.nn.Module):
    """sum over the chosen experts of share * down(silu(gate x) * up x)."""

    def __init__(self, width: int, inner: int, experts: int) -> None:
        super().__init__()
        self.gate = torch.nn.Parameter(torch.randn(experts, inner, width) / width**0.5)
        self.up = torch.nn.Parameter(torch.randn(experts, inner, width) / width**0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, width, inner) / inner**0.5)

    def forward(self, x: torch.Tensor, experts: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        """(tokens, width) and twice (tokens, chosen) -> (tokens, width)."""
        result = torch.zeros_like(x)
        for expert, (gate, up, down) in enumerate(zip(self.gate, self.up, self.down, strict=True)):
            share = (shares * (experts == expert)).sum(1, keepdim=True)
            result = result + share * ((torch.nn.functional.silu(x @ gate.T) * (x @ up.T)) @ down.T)
        return result


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. Most tokens prefer some experts; others take any, so that each expert has work."""
    p = SIZES[size]
    preferences = 2 * torch.rand(p["experts_count"]) * (torch.rand(p["tokens"], 1) < _SHARE_OF_PARTIAL)
    experts = (torch.rand(p["tokens"], p["experts_count"]) + preferences).topk(p["chosen"]).indices.int()
    return [torch.randn(p["tokens"], p["width"]), experts, 0.2 + torch.rand(p["tokens"], p["chosen"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size][name] for name in ("width", "inner", "experts_count")]
