"""A plain recurrent network over a whole sequence: step after step, an output of each."""

import torch

SIZES = {
    "small": {"sequence_length": 5, "batch_size": 3, "input_size": 29, "hidden_size": 37, "output_size": 43},
    "medium": {"sequence_length": 256, "batch_size": 8, "input_size": 1024, "hidden_size": 256, "output_size": 128},
    "full": {"sequence_length": 256, "batch_size": 8, "input_size": 1024, "hidden_size": 256, "output_size": 128},
    # One step there.
    "v0": {"sequence_length": 1, "batch_size": 8, "input_size": 1024, "hidden_size": 256, "output_size": 128},
}
TAGS = ("recurrent", "matmul", "network")
MENDS = (
    "KernelBench draws from [0, 1), and its default weights forget a state within two steps. Here inputs are normal, "
    "and weights larger."
)


class Model(torch.nn.Module):
    """tanh of a linear layer over input and state, then a linear layer; returns the outputs of all steps."""

    def __init__(self, input_size: int, hidden_size: int, output_size: int) -> None:
        super().__init__()
        self.i2h = torch.nn.Linear(input_size + hidden_size, hidden_size)
        self.h2o = torch.nn.Linear(hidden_size, output_size)
        torch.nn.init.normal_(self.i2h.weight, std=self.i2h.in_features**-0.5)

    def forward(self, x: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
        """(sequence_length, batch_size, input_size) and (batch_size, hidden_size) -> an output of each step."""
        hidden, outputs = h0, []
        for step in x:
            hidden = torch.tanh(self.i2h(torch.cat([step, hidden], dim=1)))
            outputs.append(self.h2o(hidden))
        return torch.stack(outputs)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    x = torch.randn(p["sequence_length"], p["batch_size"], p["input_size"])
    return [x, torch.randn(p["batch_size"], p["hidden_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["input_size"], p["hidden_size"], p["output_size"]]
