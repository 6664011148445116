"""Attention with a memory of fixed size that each token corrects, and whose channels decay by themselves."""

import torch

SIZES = {
    "small": {"batch": 2, "length": 35, "heads": 3, "key_size": 21, "value_size": 19},
    "medium": {"batch": 2, "length": 512, "heads": 16, "key_size": 128, "value_size": 128},
    "full": {"batch": 8, "length": 2048, "heads": 16, "key_size": 128, "value_size": 128},
}
SCALARS = {"epsilon": 1e-4}
PRECISIONS = ("fp32",)
TAGS = ("recurrent", "attention")
OP_FAMILY = "attention"
MENDS = (
    "kernrl needs a package that is not there. Here is the recurrence itself, by definition, of inputs any values of "
    "which are sound: vectors are normalised, rates and decays lie between 0 and 1."
)


def unit(x: torch.Tensor) -> torch.Tensor:
    """Vectors of length 1, but for an epsilon."""
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + SCALARS["epsilon"])


def delta_rule(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rates: torch.Tensor, decays: torch.Tensor
) -> torch.Tensor:
    """The recurrence of `Model`, token by token."""
    memory = torch.zeros(v.shape[0], *v.shape[2:], k.shape[-1], dtype=v.dtype, device=v.device)
    results = []
    for t in range(v.shape[1]):
        memory = memory * decays[:, t, :, None]
        change = rates[:, t, :, None] * (v[:, t] - (memory * k[:, t, :, None]).sum(-1))
        memory = memory + change[..., None] * k[:, t, :, None]
        results.append((memory * q[:, t, :, None]).sum(-1))
    return torch.stack(results, 1)


class Model(torch.nn.Module):
    """S = decay S, then S = S + rate (v - S k) k^T, and the result is S q; q and k have length 1."""

    def forward(
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, rates: torch.Tensor, decays: torch.Tensor
    ) -> torch.Tensor:
        """q, k, decays (batch, length, heads, key_size), v (.., value_size), rates (batch, length, heads) -> as v."""
        return delta_rule(unit(q), unit(k), v, rates.sigmoid(), decays.sigmoid())


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    shape = (p["batch"], p["length"], p["heads"])
    vectors = [torch.randn(*shape, p[name]) for name in ("key_size", "key_size", "value_size")]
    return [*vectors, torch.randn(shape), 2 + torch.randn(*shape, p["key_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
