"""The lower triangle of the product of two lower triangular matrices."""

import torch
from torch import nn


class Model(nn.Module):
    def forward(self, A, B):
        return torch.tril(torch.matmul(A, B))


M = 4096


def get_inputs():
    return [torch.tril(torch.rand(M, M)), torch.tril(torch.rand(M, M))]


def get_init_inputs():
    return []
