"""One step of a plain recurrent network with a large state: two products, a tanh between them."""

import torch

SIZES = {
    "small": {"batch_size": 19, "input_size": 53, "hidden_size": 67, "output_size": 59},
    "medium": {"batch_size": 256, "input_size": 8192, "hidden_size": 8192, "output_size": 8192},
    "full": {"batch_size": 256, "input_size": 16384, "hidden_size": 16384, "output_size": 8192},
    "v0": {"batch_size": 8, "input_size": 1024, "hidden_size": 256, "output_size": 128},
}
TAGS = ("recurrent", "matmul")
MENDS = (
    "KernelBench draws from [0, 1), and its default weights keep tanh where it is linear. Here inputs are normal, and "
    "weights larger."
)


class Model(torch.nn.Module):
    """tanh of a linear layer over input and state, then a linear layer; returns the output."""

    def __init__(self, input_size: int, hidden_size: int, output_size: int) -> None:
        super().__init__()
        self.i2h = torch.nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = torch.nn.Linear(hidden_size, output_size)
        torch.nn.init.normal_(self.i2h.weight, std=self.i2h.in_features**-0.5)

    def forward(self, x: torch.Tensor, initial_hidden: torch.Tensor) -> torch.Tensor:
        """(batch_size, input_size) and (batch_size, hidden_size) -> (batch_size, output_size)."""
        hidden = torch.tanh(self.i2h(torch.cat([x, initial_hidden], dim=1)))
        return self.h2o(hidden)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["input_size"]), torch.randn(p["batch_size"], p["hidden_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["input_size"], p["hidden_size"], p["output_size"]]
