"""Product of a sparse matrix in compressed rows with a vector."""

import torch

SIZES = {
    "small": {"rows": 1003, "columns": 701, "mean_length": 7},
    "medium": {"rows": 131072, "columns": 131072, "mean_length": 30},
    "full": {"rows": 1048576, "columns": 1048576, "mean_length": 30},
}
TAGS = ("sparse", "reduction")
OP_FAMILY = "sparse"
MENDS = (
    "kernrl's reference is a Python loop over 10,000 rows, beside which any kernel is a thousand times as fast, and "
    "its matrix changes shape with the seed. Here rows have lengths of a fixed pattern in a random order, indices of "
    "32 bits, and the reference is two tensor operations."
)
_STEP = 37


class Model(torch.nn.Module):
    """y[r] = sum of values[e] x[columns_of[e]] over the entries e of row r, [row_starts[r], row_starts[r + 1])."""

    def forward(
        self, values: torch.Tensor, columns_of: torch.Tensor, row_starts: torch.Tensor, x: torch.Tensor
    ) -> torch.Tensor:
        """(entries,), (entries,), (rows + 1,) and (columns,) -> (rows,)."""
        rows = row_starts.numel() - 1
        entries = torch.arange(values.numel(), device=values.device)
        row_of = torch.searchsorted(row_starts.long(), entries, right=True) - 1
        products = values * x[columns_of.long()]
        return torch.zeros(rows, dtype=x.dtype, device=x.device).index_add(0, row_of.clamp(0, rows - 1), products)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. Row lengths are 0 to 2 mean_length, each as often as the next."""
    p = SIZES[size]
    kinds = 2 * p["mean_length"] + 1
    lengths = torch.arange(p["rows"]) * _STEP % kinds
    whole, rest = divmod(p["rows"], kinds)
    entries = whole * kinds * p["mean_length"] + sum(row * _STEP % kinds for row in range(rest))
    ends = lengths[torch.randperm(p["rows"])].cumsum(0)
    return [
        torch.randn(entries),
        torch.randint(0, p["columns"], (entries,)).int(),
        torch.cat((torch.zeros(1, dtype=torch.int64), ends)).int(),
        torch.randn(p["columns"]),
    ]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
