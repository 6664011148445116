"""A vision transformer: patches and a learned token through encoder layers; the token's last state is classified."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "image_size": 12,
        "patch_size": 4,
        "num_classes": 11,
        "dim": 28,
        "depth": 6,
        "heads": 4,
        "mlp_dim": 37,
        "channels": 3,
    },
    "medium": {
        "batch_size": 2,
        "image_size": 224,
        "patch_size": 16,
        "num_classes": 10,
        "dim": 512,
        "depth": 6,
        "heads": 8,
        "mlp_dim": 2048,
        "channels": 3,
    },
    "full": {
        "batch_size": 2,
        "image_size": 224,
        "patch_size": 16,
        "num_classes": 10,
        "dim": 512,
        "depth": 6,
        "heads": 8,
        "mlp_dim": 2048,
        "channels": 3,
    },
}
TAGS = ("attention", "matmul", "norm", "network")
MENDS = (
    "KernelBench's encoder takes the batch for the sequence: the learned token never meets a patch, and the output "
    "does not depend on the image. Here tokens attend to those of their own image."
)


def encoder_layer(width: int, heads: int, hidden: int) -> torch.nn.TransformerEncoderLayer:
    """Attention and two linear layers, without dropout; what torch sets to zeros and ones is drawn."""
    layer = torch.nn.TransformerEncoderLayer(width, heads, hidden, dropout=0.0, batch_first=True)
    for name, values in layer.named_parameters():
        if values.ndim == 1:
            torch.nn.init.normal_(values, mean=1.0 if "norm" in name and "weight" in name else 0.0, std=0.2)
    return layer


class Model(torch.nn.Module):
    """Linear layer over patches, learned token and positions, encoder layers, two linear layers on the first token.

    A patch is what KernelBench's reshape makes it: `channels` neighbouring squares of the list that has all squares of
    the first channel, then all of the second, and so on. Its dropout layers have probability 0 and are left out.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        num_classes: int,
        dim: int,
        depth: int,
        heads: int,
        mlp_dim: int,
        channels: int,
    ) -> None:
        super().__init__()
        self.patch_size = patch_size
        self.pos_embedding = torch.nn.Parameter(torch.randn(1, (image_size // patch_size) ** 2 + 1, dim))
        self.cls_token = torch.nn.Parameter(torch.randn(1, 1, dim))
        self.patch_to_embedding = torch.nn.Linear(channels * patch_size**2, dim)
        torch.nn.init.normal_(self.patch_to_embedding.weight, std=self.patch_to_embedding.in_features**-0.5)
        layers = torch.nn.ModuleList(encoder_layer(dim, heads, mlp_dim) for _ in range(depth))
        self.transformer = torch.nn.ModuleDict({"layers": layers})
        self.mlp_head = torch.nn.Sequential(
            torch.nn.Linear(dim, mlp_dim), torch.nn.GELU(), torch.nn.Identity(), torch.nn.Linear(mlp_dim, num_classes)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, channels, image_size, image_size) -> (batch_size, num_classes)."""
        p = self.patch_size
        squares = x.unflatten(3, (-1, p)).unflatten(2, (-1, p)).transpose(3, 4)
        patches = squares.reshape(x.shape[0], -1, self.patch_to_embedding.in_features)
        tokens = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), self.patch_to_embedding(patches)], dim=1)
        tokens = tokens + self.pos_embedding
        for layer in self.transformer["layers"]:
            tokens = layer(tokens)
        return self.mlp_head(tokens[:, 0])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["channels"], p["image_size"], p["image_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    names = ("image_size", "patch_size", "num_classes", "dim", "depth", "heads", "mlp_dim", "channels")
    return [p[name] for name in names]
