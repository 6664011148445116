"""NetVLAD with ghost clusters: what features leave beside the centres to which a softmax assigns them."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self, cluster_size, feature_size, ghost_clusters):
        super().__init__()
        self.feature_size = feature_size
        self.cluster_size = cluster_size
        clusters = cluster_size + ghost_clusters
        scale = 1 / math.sqrt(feature_size)
        self.clusters = nn.Parameter(scale * torch.randn(feature_size, clusters))
        self.batch_norm = nn.BatchNorm1d(clusters)
        self.clusters2 = nn.Parameter(scale * torch.randn(1, feature_size, cluster_size))

    def forward(self, x):
        max_sample = x.size(1)
        flat = x.view(-1, self.feature_size)
        assignment = F.softmax(self.batch_norm(torch.matmul(flat, self.clusters)), dim=1)
        assignment = assignment[:, : self.cluster_size].view(-1, max_sample, self.cluster_size)
        a = torch.sum(assignment, dim=1, keepdim=True) * self.clusters2
        vlad = torch.matmul(assignment.transpose(1, 2), x).transpose(1, 2) - a
        vlad = F.normalize(vlad)
        return F.normalize(vlad.reshape(-1, self.cluster_size * self.feature_size))


batch_size = 2048
num_features = 100
feature_size = 512
cluster_size = 32
ghost_clusters = 16


def get_inputs():
    return [torch.rand(batch_size, num_features, feature_size)]


def get_init_inputs():
    return [cluster_size, feature_size, ghost_clusters]
