"""LSTM of six layers over long sequences: the last cell of each layer."""

import torch

SIZES = {
    "small": {"batch_size": 3, "sequence_length": 5, "input_size": 19, "hidden_size": 37, "num_layers": 2},
    "medium": {"batch_size": 10, "sequence_length": 512, "input_size": 128, "hidden_size": 256, "num_layers": 6},
    "full": {"batch_size": 10, "sequence_length": 512, "input_size": 128, "hidden_size": 256, "num_layers": 6},
    "v0": {"batch_size": 10, "sequence_length": 512, "input_size": 128, "hidden_size": 256, "num_layers": 6},
}
TAGS = ("recurrent", "matmul", "network")
MENDS = (
    "KernelBench's linear layer does nothing for the state that is returned; here there is none. Its default weights "
    "pass on a fraction of what a layer gets, so that the last layers hardly depend on x; here they are larger."
)


class Model(torch.nn.Module):
    """Layers of LSTM units; returns the last cell of all layers."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(input_size, hidden_size, num_layers, batch_first=True)
        for name, values in self.lstm.named_parameters():
            if "bias" in name:
                torch.nn.init.normal_(values, std=0.2)
            else:
                gain = 2.0 if "weight_ih" in name else 1.0
                torch.nn.init.normal_(values, std=gain / values.shape[1] ** 0.5)

    def forward(self, x: torch.Tensor, h0: torch.Tensor, c0: torch.Tensor) -> torch.Tensor:
        """(batch_size, sequence_length, input_size); states and cells (num_layers, batch_size, hidden_size).

        Returns (num_layers, batch_size, hidden_size).
        """
        if x.is_meta:  # asked for shapes alone, torch would still go through every step
            return x.new_empty(self.lstm.num_layers, x.shape[0], self.lstm.hidden_size)
        _, (_, cell) = self.lstm(x, (h0, c0))
        return cell


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    x = torch.randn(p["batch_size"], p["sequence_length"], p["input_size"])
    states = (p["num_layers"], p["batch_size"], p["hidden_size"])
    return [x, torch.randn(states), torch.randn(states)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["input_size"], p["hidden_size"], p["num_layers"]]
