"""Multi-layer perceptron with two very wide hidden layers: its weights fill the memory, not its activations."""

import torch

SIZES = {
    "small": {"batch_size": 35, "input_size": 101, "layer_size1": 139, "layer_size2": 107, "output_size": 53},
    "medium": {"batch_size": 128, "input_size": 8192, "layer_size1": 8192, "layer_size2": 8192, "output_size": 8192},
    "full": {"batch_size": 128, "input_size": 16384, "layer_size1": 32768, "layer_size2": 32768, "output_size": 16384},
    "v0": {"batch_size": 1, "input_size": 1000, "layer_size1": 2000, "layer_size2": 2000, "output_size": 10},
}
TAGS = ("matmul", "network")


class Model(torch.nn.Module):
    """Linear layers with a rectifier between each two."""

    def __init__(self, input_size: int, layer_sizes: list[int], output_size: int) -> None:
        super().__init__()
        layers: list[torch.nn.Module] = []
        extent = input_size
        for layer_size in layer_sizes:
            layers += [torch.nn.Linear(extent, layer_size), torch.nn.ReLU()]
            extent = layer_size
        self.network = torch.nn.Sequential(*layers, torch.nn.Linear(extent, output_size))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, input_size) -> (batch_size, output_size)."""
        return self.network(x)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.rand(p["batch_size"], p["input_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["input_size"], [p["layer_size1"], p["layer_size2"]], p["output_size"]]
