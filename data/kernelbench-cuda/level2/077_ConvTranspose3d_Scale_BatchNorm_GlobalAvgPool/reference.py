"""Transposed convolution, scaled, batch norm with running statistics, averaged over each plane."""

import torch

SIZES = {
    "small": {
        "batch_size": 41,
        "in_channels": 2,
        "depth": 2,
        "height": 3,
        "width": 3,
        "out_channels": 5,
        "kernel_size": 5,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 128,
        "kernel_size": 5,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 128,
        "kernel_size": 5,
    },
    "v0": {
        "batch_size": 16,
        "in_channels": 64,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 32,
        "kernel_size": 3,
    },
}
SCALARS = {"eps": 1e-5, "scale_factor": 2.0}
TAGS = ("conv_transpose", "norm", "pool")
MENDS = (
    "KernelBench normalises with the statistics of the batch, which cancel the scale and the convolution's bias, "
    "and whose averages over whole planes are nearly the batch norm's bias; here running statistics are given, "
    "and each sample has a scale of its own."
)


class Model(torch.nn.Module):
    """Mean over all positions of batch_norm(scale_factor * conv_transpose(x)), by running statistics."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(in_channels, out_channels, kernel_size)
        self.batch_norm = torch.nn.BatchNorm3d(out_channels, eps=SCALARS["eps"])
        torch.nn.init.normal_(self.batch_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.batch_norm.bias, std=0.2)
        torch.nn.init.normal_(self.batch_norm.running_mean, std=0.2)
        torch.nn.init.uniform_(self.batch_norm.running_var, 0.5, 1.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, 1, 1, 1)."""
        y = self.batch_norm(self.conv_transpose(x) * SCALARS["scale_factor"])
        return y.mean(dim=(2, 3, 4), keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [
        4.0
        * torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])
        * torch.rand(p["batch_size"], 1, 1, 1, 1)
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
