"""GoogLeNet's inception module: four branches over one image, side by side in the channels of the output."""

import torch

SIZES = {
    "small": {
        "batch_size": 2,
        "in_channels": 11,
        "height": 19,
        "width": 21,
        "out_1x1": 7,
        "reduce_3x3": 5,
        "out_3x3": 9,
        "reduce_5x5": 3,
        "out_5x5": 6,
        "pool_proj": 4,
    },
    "medium": {
        "batch_size": 4,
        "in_channels": 480,
        "height": 112,
        "width": 112,
        "out_1x1": 192,
        "reduce_3x3": 96,
        "out_3x3": 208,
        "reduce_5x5": 16,
        "out_5x5": 48,
        "pool_proj": 64,
    },
    "full": {
        "batch_size": 10,
        "in_channels": 480,
        "height": 224,
        "width": 224,
        "out_1x1": 192,
        "reduce_3x3": 96,
        "out_3x3": 208,
        "reduce_5x5": 16,
        "out_5x5": 48,
        "pool_proj": 64,
    },
}
TAGS = ("conv", "pool", "network")


class Model(torch.nn.Module):
    """1x1, 1x1 then 3x3, 1x1 then 5x5, max pooling then 1x1: all with biases and without activations."""

    def __init__(
        self,
        in_channels: int,
        out_1x1: int,
        reduce_3x3: int,
        out_3x3: int,
        reduce_5x5: int,
        out_5x5: int,
        pool_proj: int,
    ) -> None:
        super().__init__()
        self.branch1x1 = torch.nn.Conv2d(in_channels, out_1x1, kernel_size=1)
        self.branch3x3 = torch.nn.Sequential(
            torch.nn.Conv2d(in_channels, reduce_3x3, kernel_size=1),
            torch.nn.Conv2d(reduce_3x3, out_3x3, kernel_size=3, padding=1),
        )
        self.branch5x5 = torch.nn.Sequential(
            torch.nn.Conv2d(in_channels, reduce_5x5, kernel_size=1),
            torch.nn.Conv2d(reduce_5x5, out_5x5, kernel_size=5, padding=2),
        )
        self.branch_pool = torch.nn.Sequential(
            torch.nn.MaxPool2d(kernel_size=3, stride=1, padding=1),
            torch.nn.Conv2d(in_channels, pool_proj, kernel_size=1),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> the same with the channels of all branches."""
        return torch.cat([self.branch1x1(x), self.branch3x3(x), self.branch5x5(x), self.branch_pool(x)], dim=1)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["in_channels"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    names = ("in_channels", "out_1x1", "reduce_3x3", "out_3x3", "reduce_5x5", "out_5x5", "pool_proj")
    return [p[name] for name in names]
