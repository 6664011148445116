"""Swin Transformer V2: cosine attention within shifted windows, in four stages of ever wider, fewer tokens."""

import math

import torch

SIZES = {
    "small": {
        "batch_size": 4,
        "channels": 3,
        "patch_size": 2,
        "window_size": 3,
        "head_size": 5,
        "num_heads": 2,
        "mlp_ratio": 3,
        "cpb_hidden": 7,
        "depth1": 2,
        "depth2": 2,
        "depth3": 3,
        "depth4": 2,
        "num_classes": 23,
    },
    "medium": {
        "batch_size": 10,
        "channels": 3,
        "patch_size": 4,
        "window_size": 7,
        "head_size": 32,
        "num_heads": 3,
        "mlp_ratio": 4,
        "cpb_hidden": 512,
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
        "cpb_hidden": 512,
        "depth1": 2,
        "depth2": 2,
        "depth3": 6,
        "depth4": 2,
        "num_classes": 1000,
    },
}
TAGS = ("attention", "matmul", "norm", "network")


def norm(width: int) -> torch.nn.LayerNorm:
    """Layer normalisation whose scale and shift are drawn."""
    layer = torch.nn.LayerNorm(width)
    torch.nn.init.normal_(layer.weight, mean=1.0, std=0.2)
    torch.nn.init.normal_(layer.bias, std=0.2)
    return layer


def mlp(width: int, hidden: int) -> torch.nn.ModuleDict:
    """Two linear layers, GELU between them; their biases are drawn wide enough to be seen at the end."""
    layers = torch.nn.ModuleDict({"fc1": torch.nn.Linear(width, hidden), "fc2": torch.nn.Linear(hidden, width)})
    for layer in layers.values():
        torch.nn.init.normal_(layer.bias, std=0.3)
    return layers


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


def regions(side: int, window: int, shift: int) -> torch.Tensor:
    """(side, side): numbers of what belongs together in an image whose last `shift` rows and columns were its first."""
    place = torch.arange(side)
    one = (place >= side - window).long() + (place >= side - shift).long()
    return 3 * one[:, None] + one


def attention_mask(side: int, window: int, shift: int) -> torch.Tensor:
    """(windows, points, points): -100 between pixels of a window that are no neighbours in the image, otherwise 0."""
    number = split(regions(side, window, shift)[None, :, :, None], window)[..., 0]
    return torch.where(number[:, :, None] == number[:, None, :], 0.0, -100.0)


def offsets(window: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Offsets between points of a window, and which of them lies between two points.

    The first is ((2 * window - 1) ** 2, 2), on a scale of logarithms: 8 for the largest, before sign(v) log8(|v| + 1).
    """
    axis = torch.arange(1 - window, window) * (8.0 / (window - 1))
    axis = axis.sign() * torch.log2(axis.abs() + 1.0) / 3.0
    table = torch.cartesian_prod(axis, axis)
    point = torch.arange(window**2)
    down = (point // window)[:, None] - point // window + window - 1
    right = (point % window)[:, None] - point % window + window - 1
    return table, down * (2 * window - 1) + right


class Attention(torch.nn.Module):
    """Cosine attention within windows: each head has a scale, and a bias per offset from a small network."""

    def __init__(self, width: int, heads: int, window: int, cpb_hidden: int) -> None:
        super().__init__()
        self.heads = heads
        scales = math.log(8.0) + torch.linspace(-1.2, 0.8, heads) + 0.1 * torch.randn(heads)
        self.logit_scale = torch.nn.Parameter(scales.view(heads, 1, 1))
        self.q_bias = torch.nn.Parameter(3.0 * torch.randn(width))
        self.v_bias = torch.nn.Parameter(0.2 * torch.randn(width))
        self.cpb_mlp = torch.nn.Sequential(
            torch.nn.Linear(2, cpb_hidden), torch.nn.ReLU(), torch.nn.Linear(cpb_hidden, heads, bias=False)
        )
        self.qkv = torch.nn.Linear(width, 3 * width, bias=False)
        self.proj = torch.nn.Linear(width, width)
        torch.nn.init.normal_(self.cpb_mlp[0].bias)
        torch.nn.init.normal_(self.cpb_mlp[2].weight, std=2.5 * cpb_hidden**-0.5)
        table, between = offsets(window)
        self.register_buffer("table", table, persistent=False)
        self.register_buffer("between", between, persistent=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        """(batch * windows, points, width) -> the same shape."""
        bias = torch.cat([self.q_bias, torch.zeros_like(self.v_bias), self.v_bias])
        q, k, v = (
            part.unflatten(2, (self.heads, -1)).transpose(1, 2)
            for part in torch.nn.functional.linear(x, self.qkv.weight, bias).chunk(3, dim=2)
        )
        q, k = torch.nn.functional.normalize(q, dim=3), torch.nn.functional.normalize(k, dim=3)
        biases = 16.0 * torch.sigmoid(self.cpb_mlp(self.table))
        scores = q @ k.transpose(2, 3) * self.logit_scale.clamp(max=math.log(8.0)).exp()
        scores = scores + biases[self.between].permute(2, 0, 1)
        if mask is not None:
            scores = (scores.unflatten(0, (-1, mask.shape[0])) + mask[:, None]).flatten(0, 1)
        return self.proj((torch.softmax(scores, dim=3) @ v).transpose(1, 2).flatten(2))


class Block(torch.nn.Module):
    """x + norm(attention(x)) within windows, which every second block shifts, then x + norm(mlp(x))."""

    def __init__(
        self, side: int, width: int, heads: int, window: int, shift: int, hidden: int, cpb_hidden: int
    ) -> None:
        super().__init__()
        self.side, self.window, self.shift = side, window, shift
        self.register_buffer("mask", attention_mask(side, window, shift) if shift else None, persistent=False)
        self.norm1 = norm(width)
        self.attn = Attention(width, heads, window, cpb_hidden)
        self.norm2 = norm(width)
        self.mlp = mlp(width, hidden)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch, side, side, width) -> the same shape."""
        y = self.attn(split(torch.roll(x, (-self.shift, -self.shift), (1, 2)), self.window), self.mask)
        y = torch.roll(joined(y, self.window, self.side // self.window), (self.shift, self.shift), (1, 2))
        x = x + self.norm1(y)
        return x + self.norm2(run_mlp(self.mlp, x))


class Merging(torch.nn.Module):
    """Halves the image: narrows 2 x 2 neighbours to twice the width and normalises that."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduction = torch.nn.Linear(4 * width, 2 * width, bias=False)
        self.norm = norm(2 * width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(self.reduction(merged(x)))


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
        cpb_hidden: int,
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
                Block(side, width, heads, window_size, shift * (block % 2), mlp_ratio * width, cpb_hidden)
                for block in range(depth)
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
    names = ("channels", "patch_size", "window_size", "head_size", "num_heads", "mlp_ratio", "cpb_hidden")
    return [*(p[name] for name in names), [p[f"depth{stage}"] for stage in (1, 2, 3, 4)], p["num_classes"]]
