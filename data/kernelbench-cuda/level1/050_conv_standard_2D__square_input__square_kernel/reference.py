"""First convolution of AlexNet: large windows, a stride of 4, three input channels."""

import torch

# The full problem takes 226 MB in fp16, so that medium is the same.
SIZES = {
    "small": {"batch_size": 2, "height": 43, "width": 47, "out_channels": 7},
    "medium": {"batch_size": 256, "height": 224, "width": 224, "out_channels": 96},
    "full": {"batch_size": 256, "height": 224, "width": 224, "out_channels": 96},
}
TAGS = ("conv",)


class Model(torch.nn.Module):
    """Convolution with 11 x 11 windows, a stride of 4 and a padding of 2."""

    def __init__(self, out_channels: int) -> None:
        super().__init__()
        self.conv1 = torch.nn.Conv2d(3, out_channels, kernel_size=11, stride=4, padding=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, height, width) -> (batch_size, out_channels, output height, output width)."""
        return self.conv1(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], 3, p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["out_channels"]]
