"""Multi-layer perceptron with many hidden layers of one narrow width: a chain of small products."""

import torch

SIZES = {
    "small": {"batch_size": 13, "input_size": 101, "layer_size": 67, "layers": 4, "output_size": 53},
    "medium": {"batch_size": 1024, "input_size": 8192, "layer_size": 1024, "layers": 16, "output_size": 8192},
    "full": {"batch_size": 1024, "input_size": 8192, "layer_size": 1024, "layers": 16, "output_size": 8192},
    "v0": {"batch_size": 1, "input_size": 1000, "layer_size": 50, "layers": 8, "output_size": 10},
}
TAGS = ("matmul", "network")
MENDS = (
    "KernelBench's default weights shrink what comes in by half in each of 17 layers, so that the biases of the last "
    "ones decide the output. Here weights keep the size of what passes through."
)


class Model(torch.nn.Module):
    """Linear layers with a rectifier between each two; weights are as large as rectifiers ask for."""

    def __init__(self, input_size: int, layer_sizes: list[int], output_size: int) -> None:
        super().__init__()
        extents = [input_size, *layer_sizes, output_size]
        layers: list[torch.nn.Module] = []
        for before, after in zip(extents[:-1], extents[1:], strict=True):
            layer = torch.nn.Linear(before, after)
            torch.nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            torch.nn.init.normal_(layer.bias, std=0.2)
            layers += [layer, torch.nn.ReLU()]
        self.network = torch.nn.Sequential(*layers[:-1])

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
    return [p["input_size"], [p["layer_size"]] * p["layers"], p["output_size"]]
