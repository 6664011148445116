"""U-Net whose activations are softmax along rows: four levels down, four up, each beside what came down."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "in_channels": 2,
        "out_channels": 5,
        "features": 3,
        "bottom_height": 2,
        "bottom_width": 3,
    },
    "medium": {
        "batch_size": 8,
        "in_channels": 8,
        "out_channels": 4,
        "features": 64,
        "bottom_height": 2,
        "bottom_width": 16,
    },
    "full": {
        "batch_size": 8,
        "in_channels": 8,
        "out_channels": 4,
        "features": 64,
        "bottom_height": 4,
        "bottom_width": 32,
    },
}
TAGS = ("conv", "softmax", "norm", "pool", "conv_transpose", "network")
MENDS = (
    "Softmax along rows takes away what a channel adds to all pixels, so that biases of KernelBench's 3x3 convolutions "
    "and shifts of its normalisations do nothing; here there are none. Its default weights pass on values of about "
    "1 / 512, whose variance is below the normalisations' epsilon, and leave outputs that are nearly biases; here "
    "weights grow with the width of what they are applied to."
)
LEVELS = 4
SPREAD = 0.2
"""Of what a softmax is given, about: at 1 single pixels take whole rows, and which ones hangs on the last bit."""


class Norm(torch.nn.Module):
    """Batch normalisation with the statistics of the batch; its scale is drawn, and there is no shift."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(SPREAD * (1.0 + 0.2 * torch.randn(channels)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(x, None, None, self.weight, training=True, eps=1e-5)


def draw(weight: torch.Tensor, channels: int, spread: float, sources: int) -> None:
    """Weights that give results a spread, from `sources` tensors of `channels` in all; what their channels share cancels.

    Without that the padding, where there is nothing to share, would outweigh all else.
    """
    torch.nn.init.normal_(weight, std=spread)
    parts = weight.data.unflatten(channels, (sources, -1))
    parts -= parts.mean(dim=channels + 1, keepdim=True)


def activated(before: int, channels: int, gain: float, sources: int = 1) -> torch.nn.Sequential:
    """Convolution, normalisation, softmax along rows; weights multiply the spread of what comes by `gain`."""
    conv = torch.nn.Conv2d(before, channels, kernel_size=3, padding=1, bias=False)
    draw(conv.weight, 1, gain * (9 * before) ** -0.5, sources)
    return torch.nn.Sequential(conv, Norm(channels), torch.nn.Softmax(dim=-1))


def double(before: int, channels: int, gain: float, width: int, sources: int = 1) -> torch.nn.Sequential:
    """Two of these; the second one is given rows of `width` values that sum to 1."""
    first = activated(before, channels, gain, sources)
    return torch.nn.Sequential(first, activated(channels, channels, width / SPREAD))


def raised(channels: int, width: int) -> torch.nn.ConvTranspose2d:
    """Twice the height and width, half the channels; results and biases are spread as rows of `width` values are."""
    layer = torch.nn.ConvTranspose2d(channels, channels // 2, kernel_size=2, stride=2)
    draw(layer.weight, 0, 0.5 * channels**-0.5, 1)
    torch.nn.init.normal_(layer.bias, std=SPREAD / width)
    return layer


class Model(torch.nn.Module):
    """Double convolutions and pooling down, transposed and double convolutions up, a 1x1 convolution.

    The image is 16 times as high and wide as what the bottom sees; `width` is the image's.
    """

    def __init__(self, in_channels: int, out_channels: int, features: int, width: int) -> None:
        super().__init__()
        widths = [width >> level for level in range(LEVELS + 1)]
        channels = [features << level for level in range(LEVELS + 1)]
        self.down = torch.nn.ModuleList(
            double(in_channels if level == 0 else channels[level - 1], channels[level], gain, widths[level])
            for level, gain in enumerate([1.0, *(width / SPREAD for width in widths[:-1])])
        )
        self.up = torch.nn.ModuleList(
            torch.nn.ModuleList(
                [
                    raised(channels[level + 1], widths[level]),
                    double(channels[level + 1], channels[level], widths[level] / SPREAD, widths[level], 2),
                ]
            )
            for level in reversed(range(LEVELS))
        )
        self.last = torch.nn.Conv2d(features, out_channels, kernel_size=1)
        draw(self.last.weight, 1, width / SPREAD * features**-0.5, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, in_channels, height, width) -> (batch_size, out_channels, height, width)."""
        beside = []
        for level, convs in enumerate(self.down):
            x = convs(x if level == 0 else torch.max_pool2d(x, kernel_size=2))
            beside.append(x)
        beside.pop()
        for transposed, convs in self.up:
            x = convs(torch.cat([transposed(x), beside.pop()], dim=1))
        return self.last(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["in_channels"], 16 * p["bottom_height"], 16 * p["bottom_width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["in_channels"], p["out_channels"], p["features"], 16 * p["bottom_width"]]
