"""Charges of particles deposited on a periodic grid, each on the four points around it."""

import torch

SIZES = {
    "small": {"particles": 5003, "grid": 37},
    "medium": {"particles": 262144, "grid": 256},
    "full": {"particles": 8388608, "grid": 1024},
}
PRECISIONS = ("fp32",)
TAGS = ("gather",)
OP_FAMILY = "gather"
MENDS = (
    "kernrl's reference is a Python loop over 100,000 particles. Here it is four scattered sums over 8 million, and "
    "the grid is periodic, so that every position is a sound one."
)


class Model(torch.nn.Module):
    """Each particle's charge is shared among the corners of its cell, linearly in both coordinates."""

    def __init__(self, grid: int) -> None:
        super().__init__()
        self.grid = grid

    def forward(self, positions: torch.Tensor, charges: torch.Tensor) -> torch.Tensor:
        """(particles, 2) positions in cells and (particles,) -> (grid, grid); the last coordinate is the column."""
        corner = positions.floor()
        far = positions - corner
        cell = corner.long()
        result = torch.zeros(self.grid * self.grid, dtype=charges.dtype, device=charges.device)
        for down in (0, 1):
            for right in (0, 1):
                rows, columns = (cell[:, 0] + down) % self.grid, (cell[:, 1] + right) % self.grid
                share = (far[:, 0] if down else 1 - far[:, 0]) * (far[:, 1] if right else 1 - far[:, 1])
                result = result.index_add(0, rows * self.grid + columns, charges * share)
        return result.reshape(self.grid, self.grid)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [p["grid"] * torch.rand(p["particles"], 2), torch.randn(p["particles"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["grid"]]
