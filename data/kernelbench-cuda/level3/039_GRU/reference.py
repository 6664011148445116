"""GRU of six layers over long sequences: all steps of the last layer."""

import torch

SIZES = {
    "small": {"batch_size": 3, "sequence_length": 5, "input_size": 19, "hidden_size": 37, "num_layers": 2},
    "medium": {"batch_size": 10, "sequence_length": 512, "input_size": 128, "hidden_size": 256, "num_layers": 6},
    "full": {"batch_size": 10, "sequence_length": 512, "input_size": 128, "hidden_size": 256, "num_layers": 6},
    "v0": {"batch_size": 10, "sequence_length": 512, "input_size": 128, "hidden_size": 256, "num_layers": 6},
}
TAGS = ("recurrent", "matmul", "network")
MENDS = (
    "KernelBench's default weights pass on a fraction of what a layer gets, so that the last layers hardly depend on "
    "x. Here they are larger."
)


class Model(torch.nn.Module):
    """Layers of GRU units; returns all steps of the last layer."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        self.gru = torch.nn.GRU(input_size, hidden_size, num_layers)
        for name, values in self.gru.named_parameters():
            if "bias" in name:
                torch.nn.init.normal_(values, std=0.2)
            else:
                torch.nn.init.normal_(values, std=values.shape[1] ** -0.5)

    def forward(self, x: torch.Tensor, h0: torch.Tensor) -> torch.Tensor:
        """(sequence_length, batch_size, input_size); states (num_layers, batch_size, hidden_size).

        Returns (sequence_length, batch_size, hidden_size).
        """
        if x.is_meta:  # asked for shapes alone, torch would still go through every step
            return x.new_empty(*x.shape[:2], self.gru.hidden_size)
        y, _ = self.gru(x, h0)
        return y


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    x = torch.randn(p["sequence_length"], p["batch_size"], p["input_size"])
    states = (p["num_layers"], p["batch_size"], p["hidden_size"])
    return [x, torch.randn(states)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["input_size"], p["hidden_size"], p["num_layers"]]
