"""LSTM of six layers over long sequences; a linear layer reads its last step."""

import torch

SIZES = {
    "small": {
        "batch_size": 3,
        "sequence_length": 5,
        "input_size": 19,
        "hidden_size": 37,
        "num_layers": 2,
        "output_size": 43,
    },
    "medium": {
        "batch_size": 10,
        "sequence_length": 512,
        "input_size": 128,
        "hidden_size": 256,
        "num_layers": 6,
        "output_size": 10,
    },
    "full": {
        "batch_size": 10,
        "sequence_length": 512,
        "input_size": 128,
        "hidden_size": 256,
        "num_layers": 6,
        "output_size": 10,
    },
}
TAGS = ("recurrent", "matmul", "network")
MENDS = (
    "KernelBench draws the initial state anew in each call, so that the output is random; here it is zero. Its "
    "default weights pass on a fraction of what a layer gets, so that the last layers hardly depend on x; here they "
    "are larger."
)


class Model(torch.nn.Module):
    """Layers of LSTM units; returns the last step of the last layer, through a linear layer."""

    def __init__(self, input_size: int, hidden_size: int, num_layers: int, output_size: int) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(input_size, hidden_size, num_layers, batch_first=True)
        for name, values in self.lstm.named_parameters():
            if "bias" in name:
                torch.nn.init.normal_(values, std=0.2)
            else:
                gain = 2.0 if "weight_ih" in name else 1.0
                torch.nn.init.normal_(values, std=gain / values.shape[1] ** 0.5)
        self.fc = torch.nn.Linear(hidden_size, output_size)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, sequence_length, input_size) -> (batch_size, output_size)."""
        if x.is_meta:  # asked for shapes alone, torch would still go through every step
            return x.new_empty(x.shape[0], self.fc.out_features)
        y, _ = self.lstm(x)
        return self.fc(y[:, -1])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["sequence_length"], p["input_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["input_size"], p["hidden_size"], p["num_layers"], p["output_size"]]
