"""A Swin MLP: tokens of shifted windows are mixed by a matrix per head, in four stages of ever wider, fewer tokens."""

import torch

SIZES = {
    "small": {
        "batch_size": 6,
        "channels": 3,
        "patch_size": 2,
        "window_size": 3,
        "head_size": 3,
        "num_heads": 2,
        "mlp_ratio": 3,
        "depth1": 2,
        "depth2": 2,
        "depth3": 3,
        "depth4": 2,
        "num_classes": 61,
    },
    "medium": {
        "batch_size": 10,
        "channels": 3,
        "patch_size": 4,
        "window_size": 7,
        "head_size": 32,
        "num_heads": 3,
        "mlp_ratio": 4,
        "depth1": 2,
        "depth2": 2,
        "depth3": 6,
        "depth4": 2,
        "num_classes": 1000,
    },
    "full": {
        "batch_size": 10,
        "channels": 3,
        "patch_size": 4,
        "window_size": 7,
        "head_size": 32,
        "num_heads": 3,
        "mlp_ratio": 4,
        "depth1": 2,
        "depth2": 2,
        "depth3": 6,
        "depth4": 2,
        "num_classes": 1000,
    },
}
TAGS = ("matmul", "norm", "conv", "network")


def norm(width: int) -> torch.nn.LayerNorm:
    """Layer normalisation whose scale and shift are drawn."""
    layer = torch.nn.LayerNorm(width)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.4)
    return layer


def mlp(width: int, hidden: int) -> torch.nn.ModuleDict:
    """Two linear layers, GELU between them."""
    return torch.nn.ModuleDict({"fc1": torch.nn.Linear(width, hidden), "fc2": torch.nn.Linear(hidden, width)})


def run_mlp(layers: torch.nn.ModuleDict, x: torch.Tensor) -> torch.Tensor:
    return layers["fc2"](torch.nn.functional.gelu(layers["fc1"](x)))


def split(x: torch.Tensor, window: int) -> torch.Tensor:
    """(batch, height, width, channels) -> (batch * windows, window * window, channels)."""
    x = x.unflatten(2, (-1, window)).unflatten(1, (-1, window))
    return x.transpose(2, 3).flatten(3, 4).flatten(0, 2)


def joined(x: torch.Tensor, window: int, across: int) -> torch.Tensor:
    """The inverse of `split`, of `across` windows per axis."""
    x = x.unflatten(1, (window, window)).unflatten(0, (-1, across, across))
    return x.transpose(2, 3).flatten(3, 4).flatten(1, 2)


def merged(x: torch.Tensor) -> torch.Tensor:
    """2 x 2 neighbours side by side: (batch, side, side, channels) -> (batch, side / 2, side / 2, 4 * channels)."""
    return torch.cat([x[:, row::2, column::2] for column in (0, 1) for row in (0, 1)], dim=3)


class Block(torch.nn.Module):
    """x + mix(norm(x)) within windows, which every second block shifts, then x + mlp(norm(x))."""

    def __init__(self, side: int, width: int, heads: int, window: int, shift: int, hidden: int) -> None:
        super().__init__()
        self.side, self.heads, self.window, self.shift = side, heads, window, shift
        self.norm1 = norm(width)
        points = heads * window**2
        self.spatial_mlp = torch.nn.Conv1d(points, points, kernel_size=1, groups=heads)
        self.norm2 = norm(width)
        self.mlp = mlp(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, side, side, width) -> the same shape."""
        y = self.norm1(x)
        before, after = (self.window - self.shift, self.shift) if self.shift else (0, 0)
        y = torch.nn.functional.pad(y, (0, 0, before, after, before, after))
        across = y.shape[1] // self.window
        y = split(y, self.window).unflatten(2, (self.heads, -1)).transpose(1, 2)
        y = self.spatial_mlp(y.flatten(1, 2)).unflatten(1, (self.heads, -1)).transpose(1, 2).flatten(2)
        y = joined(y, self.window, across)[:, before : before + self.side, before : before + self.side]
        x = x + y
        return x + run_mlp(self.mlp, self.norm2(x))


class Merging(torch.nn.Module):
    """Halves the image: normalises 2 x 2 neighbours together and narrows them to twice the width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduction = torch.nn.Linear(4 * width, 2 * width, bias=False)
        self.norm = norm(4 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.reduction(self.norm(merged(x)))


class Stage(torch.nn.Module):
    """Blocks of one width, and the merging that follows all stages but the last."""

    def __init__(self, blocks: list[Block], downsample: Merging | None) -> None:
        super().__init__()
        self.blocks = torch.nn.ModuleList(blocks)
        self.downsample = downsample

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            x = block(x)
        return x if self.downsample is None else self.downsample(x)


class Model(torch.nn.Module):
    """Normalised patches, four stages, normalisation, mean of the tokens, linear layer.

    Width and heads double from stage to stage. The last one has a single window and shifts nothing. KernelBench's
    dropped paths have probability 0 and are left out.
    """

    def __init__(
        self,
        channels: int,
        patch_size: int,
        window_size: int,
        head_size: int,
        num_heads: int,
        mlp_ratio: int,
        depths: list[int],
        num_classes: int,
    ) -> None:
        super().__init__()
        width, side = head_size * num_heads, 8 * window_size
        self.patch_embed = torch.nn.ModuleDict(
            {"proj": torch.nn.Conv2d(channels, width, kernel_size=patch_size, stride=patch_size), "norm": norm(width)}
        )
        self.layers = torch.nn.ModuleList()
        for stage, depth in enumerate(depths):
            shift = window_size // 2 if side > window_size else 0
            heads = num_heads << stage
            blocks = [
                Block(side, width, heads, window_size, shift * (block % 2), mlp_ratio * width) for block in range(depth)
            ]
            last = stage + 1 == len(depths)
            self.layers.append(Stage(blocks, None if last else Merging(width)))
            if not last:
                width, side = 2 * width, side // 2
        self.norm = norm(width)
        self.head = torch.nn.Linear(width, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, channels, image, image) -> (batch_size, num_classes); image is 8 * window_size * patch_size."""
        x = self.patch_embed["norm"](self.patch_embed["proj"](x).permute(0, 2, 3, 1))
        for stage in self.layers:
            x = stage(x)
        return self.head(self.norm(x).mean(dim=(1, 2)))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    image = 8 * p["window_size"] * p["patch_size"]
    return [torch.randn(p["batch_size"], p["channels"], image, image)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    names = ("channels", "patch_size", "window_size", "head_size", "num_heads", "mlp_ratio")
    return [*(p[name] for name in names), [p[f"depth{stage}"] for stage in (1, 2, 3, 4)], p["num_classes"]]
