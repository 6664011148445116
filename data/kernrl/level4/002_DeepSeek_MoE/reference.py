"""Gated layers of the experts that each token chose, and of one that all tokens share."""

import torch

SIZES = {
    "small": {"tokens": 61, "width": 53, "inner": 29, "experts_count": 5, "chosen": 2},
    "medium": {"tokens": 512, "width": 1024, "inner": 704, "experts_count": 32, "chosen": 4},
    "full": {"tokens": 4096, "width": 2048, "inner": 1408, "experts_count": 64, "chosen": 8},
}
SCALARS = {"scale": 2.5}
TAGS = ("experts", "matmul", "gather")
OP_FAMILY = "fused_matmul"
MENDS = (
    "kernrl's reference gathers 756 GB of weights, and its router's choices flip by one rounding. Here the chosen "
    "experts and their shares are inputs, and the reference goes through the experts."
)
_SHARE_OF_PARTIAL = 0.75


class Model(torch.nn.Module):
    """shared(x) + scale * sum over the chosen experts of share * expert(x); each is down(silu(gate x) * up x)."""

    def __init__(self, width: int, inner: int, experts: int) -> None:
        super().__init__()
        self.gate = torch.nn.Parameter(torch.randn(experts, inner, width) / width**0.5)
        self.up = torch.nn.Parameter(torch.randn(experts, inner, width) / width**0.5)
        self.down = torch.nn.Parameter(torch.randn(experts, width, inner) / inner**0.5)
        self.shared_gate = torch.nn.Parameter(torch.randn(inner, width) / width**0.5)
        self.shared_up = torch.nn.Parameter(torch.randn(inner, width) / width**0.5)
        self.shared_down = torch.nn.Parameter(torch.randn(width, inner) / inner**0.5)

    def forward(self, x: torch.Tensor, experts: torch.Tensor, shares: torch.Tensor) -> torch.Tensor:
        """(tokens, width) and twice (tokens, chosen) -> (tokens, width)."""
        silu = torch.nn.functional.silu
        result = (silu(x @ self.shared_gate.T) * (x @ self.shared_up.T)) @ self.shared_down.T
        for expert, (gate, up, down) in enumerate(zip(self.gate, self.up, self.down, strict=True)):
            share = (shares * (experts == expert)).sum(1, keepdim=True)
            result = result + SCALARS["scale"] * share * ((silu(x @ gate.T) * (x @ up.T)) @ down.T)
        return result


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. Most tokens prefer some experts; others take any, so that each expert has work."""
    p = SIZES[size]
    preferences = 2 * torch.rand(p["experts_count"]) * (torch.rand(p["tokens"], 1) < _SHARE_OF_PARTIAL)
    experts = (torch.rand(p["tokens"], p["experts_count"]) + preferences).topk(p["chosen"]).indices.int()
    return [torch.randn(p["tokens"], p["width"]), experts, torch.rand(p["tokens"], p["chosen"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size][name] for name in ("width", "inner", "experts_count")]
