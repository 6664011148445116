"""Layer normalisation of few, very large samples, with a learned scale and shift per element."""

import torch

# Full is 134 MB per tensor, so that medium is the same: the few, large samples are what is hard about it.
SIZES = {
    "small": {"batch_size": 9, "features": 13, "dim1": 61, "dim2": 67},
    "medium": {"batch_size": 16, "features": 64, "dim1": 256, "dim2": 256},
    "full": {"batch_size": 16, "features": 64, "dim1": 256, "dim2": 256},
}
SCALARS = {"eps": 1e-5}
TAGS = ("norm",)


class Model(torch.nn.Module):
    """Normalises each sample over (features, dim1, dim2).

    Scale and shift start apart from KernelBench's ones and zeros, which a kernel could ignore.
    """

    def __init__(self, normalized_shape: tuple[int, ...]) -> None:
        super().__init__()
        self.ln = torch.nn.LayerNorm(normalized_shape, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.ln.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.ln.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, features, dim1, dim2) -> the same shape."""
        return self.ln(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["features"], p["dim1"], p["dim2"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [(p["features"], p["dim1"], p["dim2"])]
