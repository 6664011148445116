"""Gravitational accelerations of bodies on each other, all pairs."""

import torch

SIZES = {"small": {"bodies": 523}, "medium": {"bodies": 4096}, "full": {"bodies": 32768}}
SCALARS = {"softening": 0.1}
PRECISIONS = ("fp32",)
TAGS = ("pairwise",)
OP_FAMILY = "pairwise"
MENDS = (
    "kernrl softens by 0.01, so that a few close pairs decide every error; here by 0.1, and over eight times the "
    "bodies."
)
_ROWS = 512


class Model(torch.nn.Module):
    """a_i = sum_j m_j (r_j - r_i) / (|r_j - r_i|^2 + softening^2)^1.5."""

    def forward(self, positions: torch.Tensor, masses: torch.Tensor) -> torch.Tensor:
        """(bodies, 3) positions and (bodies,) masses -> (bodies, 3) accelerations."""
        parts = []
        for some in positions.split(_ROWS):
            apart = positions[None] - some[:, None]
            squared = apart.square().sum(-1) + SCALARS["softening"] ** 2
            parts.append((apart * (masses / (squared * squared.sqrt()))[..., None]).sum(1))
        return torch.cat(parts)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    bodies = SIZES[size]["bodies"]
    return [torch.randn(bodies, 3), 0.5 + torch.rand(bodies)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
