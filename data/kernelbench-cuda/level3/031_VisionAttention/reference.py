"""Self-attention of all pixels of an image, added to it and normalised."""

import torch

SIZES = {
    "small": {"batch_size": 2, "embed_dim": 28, "num_heads": 4, "height": 5, "width": 9},
    "medium": {"batch_size": 2, "embed_dim": 128, "num_heads": 4, "height": 64, "width": 64},
    "full": {"batch_size": 2, "embed_dim": 128, "num_heads": 4, "height": 128, "width": 128},
}
TAGS = ("attention", "matmul", "norm")
MENDS = (
    "KernelBench draws from [0, 1), where all pixels look alike and attention is an average. Here inputs are normal "
    "and wide."
)


class Model(torch.nn.Module):
    """norm(x + attention(x)), pixels as tokens and channels as their elements."""

    def __init__(self, embed_dim: int, num_heads: int) -> None:
        super().__init__()
        self.attn = torch.nn.MultiheadAttention(embed_dim, num_heads)
        self.norm = torch.nn.LayerNorm(embed_dim)
        for values in (self.attn.in_proj_bias, self.attn.out_proj.bias, self.norm.bias):
            torch.nn.init.normal_(values, std=0.2)
        torch.nn.init.normal_(self.norm.weight, mean=1.0, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, embed_dim, height, width) -> the same shape."""
        tokens = x.flatten(2).permute(2, 0, 1)
        attended, _ = self.attn(tokens, tokens, tokens, need_weights=False)
        return self.norm(attended + tokens).permute(1, 2, 0).reshape(x.shape)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [2.0 * torch.randn(p["batch_size"], p["embed_dim"], p["height"], p["width"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["embed_dim"], p["num_heads"]]
