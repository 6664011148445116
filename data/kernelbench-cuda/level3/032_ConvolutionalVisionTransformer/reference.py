"""A transformer over two tokens: a learned one, and a whole image embedded by convolution and linear layer."""

import torch

SIZES = {
    "small": {"batch_size": 3, "image_size": 12, "num_classes": 19, "embed_dim": 27, "num_heads": 3, "num_layers": 2},
    "medium": {
        "batch_size": 10,
        "image_size": 32,
        "num_classes": 1000,
        "embed_dim": 128,
        "num_heads": 4,
        "num_layers": 6,
    },
    "full": {
        "batch_size": 10,
        "image_size": 32,
        "num_classes": 1000,
        "embed_dim": 128,
        "num_heads": 4,
        "num_layers": 6,
    },
}
TAGS = ("attention", "conv", "matmul", "norm", "network")


def encoder_layer(width: int, heads: int, hidden: int) -> torch.nn.TransformerEncoderLayer:
    """Attention and two linear layers, without dropout; what torch sets to zeros and ones is drawn."""
    layer = torch.nn.TransformerEncoderLayer(width, heads, hidden, dropout=0.0, batch_first=True)
    for name, values in layer.named_parameters():
        if values.ndim == 1:
            torch.nn.init.normal_(values, mean=1.0 if "norm" in name and "weight" in name else 0.0, std=0.2)
    return layer


class Model(torch.nn.Module):
    """4x4 patches by convolution, one vector of all of them, encoder layers, a linear layer on the first token."""

    def __init__(self, num_classes: int, embed_dim: int, num_heads: int, num_layers: int, image_size: int) -> None:
        super().__init__()
        self.cls_token = torch.nn.Parameter(torch.randn(1, 1, embed_dim))
        self.conv1 = torch.nn.Conv2d(3, embed_dim, kernel_size=4, stride=4)
        self.linear_proj = torch.nn.Linear(embed_dim * (image_size // 4) ** 2, embed_dim)
        self.transformer_layers = torch.nn.ModuleList(
            encoder_layer(embed_dim, num_heads, 4 * embed_dim) for _ in range(num_layers)
        )
        self.fc_out = torch.nn.Linear(embed_dim, num_classes)
        torch.nn.init.normal_(self.linear_proj.bias, std=0.5)
        torch.nn.init.normal_(self.linear_proj.weight, std=2.0 * self.linear_proj.in_features**-0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, 3, image_size, image_size) -> (batch_size, num_classes)."""
        image = self.linear_proj(self.conv1(x).flatten(1)).unsqueeze(1)
        tokens = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), image], dim=1)
        for layer in self.transformer_layers:
            tokens = layer(tokens)
        return self.fc_out(tokens[:, 0])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], 3, p["image_size"], p["image_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p[name] for name in ("num_classes", "embed_dim", "num_heads", "num_layers", "image_size")]
