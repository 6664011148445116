"""Transposed convolution averaged over its rows, a bias, log-sum-exp over the channels, scaled sum."""

import torch

SIZES = {
    "small": {"batch_size": 41, "in_channels": 3, "height": 5, "width": 9, "out_channels": 5, "kernel_size": 3},
    "medium": {"batch_size": 8, "in_channels": 64, "height": 256, "width": 256, "out_channels": 128, "kernel_size": 3},
    "full": {"batch_size": 16, "in_channels": 64, "height": 512, "width": 512, "out_channels": 128, "kernel_size": 3},
    "v0": {"batch_size": 128, "in_channels": 3, "height": 32, "width": 32, "out_channels": 16, "kernel_size": 3},
}
SCALARS = {"factor": 0.1}
TAGS = ("conv_transpose", "reduction", "softmax")
MENDS = (
    "KernelBench averages whole planes, so that all samples give nearly the same and the last sum goes over one "
    "element; here rows are averaged first and columns summed last, by a tenth instead of ten, and each sample "
    "has a scale of its own."
)


class Model(torch.nn.Module):
    """factor * sum over width of logsumexp over channels of (mean over height of conv_transpose(x) + bias)."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose2d(in_channels, out_channels, kernel_size)
        self.bias = torch.nn.Parameter(torch.randn(out_channels, 1, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, 1)."""
        y = self.conv_transpose(x).mean(dim=2, keepdim=True) + self.bias
        return torch.logsumexp(y, dim=1, keepdim=True).sum(dim=(2, 3)) * SCALARS["factor"]


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [
        8.0
        * torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])
        * torch.rand(p["batch_size"], 1, 1, 1)
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"]]
