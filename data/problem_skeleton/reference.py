"""What the kernel computes: one sentence. Models that write kernels read this file, so say what is hard about it."""

import torch

# Named integers, the same names at every size. Each reaches the launcher by its name. `small` is what an emulated GPU
# and quick checks run: keep it to a million elements, and prefer extents that no tile divides. Names are free.
SIZES = {
    "small": {"rows": 131, "columns": 1003},
    "medium": {"rows": 4096, "columns": 4096},
    "full": {"rows": 16384, "columns": 8192},
}
# Other numbers that the launcher gets. Read them from here in the model, too: some judged calls use other values.
SCALARS = {"negative_slope": 0.01}
# Not needed here:
# OUTPUTS = ("values", "indices")      names of several outputs; one output is called "output"
# DTYPES = {"indices": "int32"}        tensors that keep their own type, whatever the precision of the run
# INDICES = {"indices": ("x", 1)}      an output that holds indices into an input along an axis: equal values tie
# TAGS = ("elementwise",)              operations, the main one first; they choose lessons of the knowledge base


class Model(torch.nn.Module):
    """leaky_relu(x + bias). Tensors of its `state_dict` are weights: the launcher gets them by these names."""

    def __init__(self, columns: int) -> None:
        super().__init__()
        # Neither zeros nor ones: a kernel that ignores a weight must be wrong.
        self.bias = torch.nn.Parameter(torch.randn(columns))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(rows, columns) -> (rows, columns). The names of the arguments are those of the inputs."""
        return torch.nn.functional.leaky_relu(x + self.bias, SCALARS["negative_slope"])


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Arguments of `forward`, in order. Any distribution: the judge draws from others as well."""
    p = SIZES[size]
    return [torch.randn(p["rows"], p["columns"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["columns"]]
