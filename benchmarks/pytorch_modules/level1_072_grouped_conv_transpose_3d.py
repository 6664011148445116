"""A transposed convolution of volumes: other extents along each axis, strided, padded, in groups."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, output_padding, groups):
        super().__init__()
        self.conv_transpose3d = nn.ConvTranspose3d(
            in_channels,
            out_channels,
            kernel_size,
            stride=stride,
            padding=padding,
            output_padding=output_padding,
            groups=groups,
            bias=False,
        )

    def forward(self, x):
        return self.conv_transpose3d(x)


batch_size = 8
in_channels = 32
out_channels = 32
depth = 12
height = 24
width = 48
groups = 4


def get_inputs():
    return [torch.rand(batch_size, in_channels, depth, height, width)]


def get_init_inputs():
    return [in_channels, out_channels, (3, 5, 7), (2, 2, 2), (1, 2, 3), (1, 1, 1), groups]
