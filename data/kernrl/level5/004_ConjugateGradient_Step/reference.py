"""One step of the conjugate gradient method."""

import torch

SIZES = {"small": {"n": 263}, "medium": {"n": 4096}, "full": {"n": 16384}}
PRECISIONS = ("fp32",)
KEPT = ("A",)
TAGS = ("matmul", "reduction")
OP_FAMILY = "matvec"
MENDS = (
    "kernrl gives r.r as an input, which may contradict r, returns four tensors, and takes a matrix that need not be "
    "positive definite. Here r.r is computed, the three vectors come as one tensor, and A is symmetric, diagonally "
    "heavy."
)


class Model(torch.nn.Module):
    """q = A p, a = r.r / p.q, x + a p, r - a q, and p' = r' + (r'.r' / r.r) p."""

    def forward(self, A: torch.Tensor, x: torch.Tensor, r: torch.Tensor, p: torch.Tensor) -> torch.Tensor:
        """(n, n) and three times (n,) -> (3, n): the new x, r and p."""
        q = A @ p
        before = torch.dot(r, r)
        step = before / torch.dot(p, q)
        residual = r - step * q
        return torch.stack((x + step * p, residual, residual + torch.dot(residual, residual) / before * p))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size. The eigenvalues of A lie between 1 and 3."""
    n = SIZES[size]["n"]
    noise = torch.randn(n, n)
    A = (noise + noise.T) / (4 * n**0.5) + 2 * torch.eye(n)
    return [A, torch.randn(n), torch.randn(n), torch.randn(n)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
