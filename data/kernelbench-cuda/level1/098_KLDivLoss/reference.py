"""Kullback-Leibler divergence between rows of probabilities, averaged over rows."""

import torch

SIZES = {
    "small": {"batch_size": 37, "dim": 1801},
    "medium": {"batch_size": 8192, "dim": 16384},
    "full": {"batch_size": 16384, "dim": 16384},
    "v0": {"batch_size": 128, "dim": 4096},
}
TAGS = ("loss",)
MENDS = (
    "KernelBench's inputs give a divergence of 0.082 in every draw: a constant would pass. Here predictions have "
    "another spread in each draw."
)


class Model(torch.nn.Module):
    """Sum of targets (log(targets) - log(predictions)), divided by the number of rows."""

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """(batch_size, dim), (batch_size, dim), rows of both sum to 1 -> scalar."""
        return torch.nn.functional.kl_div(torch.log(predictions), targets, reduction="batchmean")


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size: probabilities, at full size about 6e-5, subnormal in fp16 in part."""
    p = SIZES[size]
    shape = (p["batch_size"], p["dim"])
    spread = 1 + 2 * torch.rand(())
    return [(spread * torch.rand(shape)).softmax(dim=-1), torch.rand(shape).softmax(dim=-1)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
