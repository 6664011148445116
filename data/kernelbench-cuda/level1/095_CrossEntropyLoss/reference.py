"""Cross entropy of class scores against class numbers, averaged over the batch."""

import torch

SIZES = {
    "small": {"batch_size": 523, "num_classes": 1001},
    "medium": {"batch_size": 16384, "num_classes": 4096},
    "full": {"batch_size": 32768, "num_classes": 4096},
    "v0": {"batch_size": 4096, "num_classes": 10},
}
TAGS = ("loss",)
MENDS = (
    "KernelBench's scores lie in [0, 1): the loss is log(num_classes) + 0.04 whatever the targets are. Here they "
    "spread wider."
)


class Model(torch.nn.Module):
    """Mean over the batch of log(sum(exp(predictions))) - predictions[target]."""

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """(batch_size, num_classes) scores, (batch_size,) class numbers -> scalar."""
        return torch.nn.functional.cross_entropy(predictions, targets)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size.

    Scores spread wider than KernelBench's, which lie in [0, 1): there, the loss is log(num_classes) + 0.04 whatever
    the targets are.
    """
    p = SIZES[size]
    predictions = 4 * torch.randn(p["batch_size"], p["num_classes"])
    return [predictions, torch.randint(0, p["num_classes"], (p["batch_size"],))]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
