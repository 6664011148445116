"""Layers of GRU units that read a sequence in both directions, from states that are given."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, input_size, hidden_size, num_layers):
        super().__init__()
        self.gru = nn.GRU(input_size, hidden_size, num_layers, bias=True, bidirectional=True)

    def forward(self, x, h0):
        output, _ = self.gru(x, h0)
        return output


batch_size = 10
seq_len = 512
input_size = 128
hidden_size = 256
num_layers = 6


def get_inputs():
    return [torch.rand(seq_len, batch_size, input_size), torch.rand(2 * num_layers, batch_size, hidden_size)]


def get_init_inputs():
    return [input_size, hidden_size, num_layers]
