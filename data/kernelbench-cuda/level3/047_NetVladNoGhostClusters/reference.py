"""NetVLAD: softly assigned features, their residuals to centres summed and normalised."""

import torch

SIZES = {
    "small": {"batch_size": 5, "points": 19, "feature_size": 37, "cluster_size": 11},
    "medium": {"batch_size": 256, "points": 100, "feature_size": 512, "cluster_size": 32},
    "full": {"batch_size": 2048, "points": 100, "feature_size": 512, "cluster_size": 32},
    "v0": {"batch_size": 32, "points": 100, "feature_size": 512, "cluster_size": 32},
}
TAGS = ("softmax", "matmul", "norm", "network")
MENDS = (
    "KernelBench draws from [0, 1), where features hardly differ and their mean passes for the output. Here inputs "
    "are normal."
)


class Model(torch.nn.Module):
    """Sums over a sample's features of softmax weight times (feature - centre), normalised per cluster, then together.
    """

    def __init__(self, cluster_size: int, feature_size: int) -> None:
        super().__init__()
        scale = feature_size**-0.5
        self.cluster_size = cluster_size
        self.clusters = torch.nn.Parameter(scale * torch.randn(feature_size, cluster_size))
        self.batch_norm = torch.nn.BatchNorm1d(cluster_size, track_running_stats=False)
        self.clusters2 = torch.nn.Parameter(scale * torch.randn(1, feature_size, cluster_size))
        torch.nn.init.normal_(self.batch_norm.weight, mean=1.0, std=0.2)
        torch.nn.init.normal_(self.batch_norm.bias, std=0.2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(batch_size, points, feature_size) -> (batch_size, feature_size * cluster_size)."""
        scores = self.batch_norm(x.flatten(0, 1) @ self.clusters)
        assigned = torch.softmax(scores, dim=1).unflatten(0, x.shape[:2])
        residuals = x.transpose(1, 2) @ assigned - assigned.sum(dim=1, keepdim=True) * self.clusters2
        return torch.nn.functional.normalize(torch.nn.functional.normalize(residuals, dim=1).flatten(1))


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randn(p["batch_size"], p["points"], p["feature_size"])]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    p = SIZES[size]
    return [p["cluster_size"], p["feature_size"]]
