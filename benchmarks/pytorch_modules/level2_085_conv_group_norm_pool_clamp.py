"""Convolution, group normalisation, a factor per channel, maxima of windows, clamp."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(
        self, in_channels, out_channels, kernel_size, num_groups, scale_shape, pool_size, clamp_min, clamp_max
    ):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.group_norm = nn.GroupNorm(num_groups, out_channels)
        self.scale = nn.Parameter(torch.ones(scale_shape))
        self.maxpool = nn.MaxPool2d(kernel_size=pool_size)
        self.clamp_min = clamp_min
        self.clamp_max = clamp_max

    def forward(self, x):
        x = self.group_norm(self.conv(x)) * self.scale
        return torch.clamp(self.maxpool(x), self.clamp_min, self.clamp_max)


batch_size = 128
in_channels = 8
out_channels = 64
height, width = 128, 128
kernel_size = 3
num_groups = 16
pool_size = 4
clamp_min = 0.0
clamp_max = 1.0


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    scale_shape = (out_channels, 1, 1)
    return [in_channels, out_channels, kernel_size, num_groups, scale_shape, pool_size, clamp_min, clamp_max]
