"""Transposed convolution, batch norm, each plane's mean subtracted."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 3,
        "depth": 3,
        "height": 4,
        "width": 19,
        "out_channels": 5,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "medium": {
        "batch_size": 4,
        "in_channels": 16,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 32,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
    "full": {
        "batch_size": 16,
        "in_channels": 16,
        "depth": 16,
        "height": 32,
        "width": 32,
        "out_channels": 32,
        "kernel_size": 3,
        "stride": 2,
        "padding": 1,
    },
}
SCALARS = {"eps": 1e-5}
TAGS = ("conv_transpose", "norm", "reduction")
MENDS = (
    "KernelBench's convolution and batch norm have biases, which subtracting the means cancels; here they have none."
)


class Model(torch.nn.Module):
    """y minus its mean over depth, height and width; y = batch_norm(conv_transpose(x)), by the batch's statistics."""

    def __init__(self, in_channels: int, out_channels: int, kernel_size: int, stride: int, padding: int) -> None:
        super().__init__()
        self.conv_transpose = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride, padding, bias=False
        )
        self.batch_norm = torch.nn.BatchNorm3d(out_channels, eps=SCALARS["eps"], track_running_stats=False)
        torch.nn.init.normal_(self.batch_norm.weight, mean=1.0, std=0.2)
        self.batch_norm.bias = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, in_channels, depth, height, width) -> (batch, out_channels, out depth, out height, out width)."""
        y = self.batch_norm(self.conv_transpose(x))
        return y - y.mean(dim=(2, 3, 4), keepdim=True)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["depth"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["kernel_size"], p["stride"], p["padding"]]
