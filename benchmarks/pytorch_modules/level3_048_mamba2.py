"""Mamba-2's layer: a scan over states, chunk by chunk."""

import torch
import torch.nn.functional as F
from torch import nn


def segment_sums(x):
    length = x.size(-1)
    sums = torch.cumsum(x, dim=-1)
    differences = sums[..., :, None] - sums[..., None, :]
    mask = torch.tril(torch.ones(length, length, device=x.device, dtype=torch.bool))
    return differences.masked_fill(~mask, -torch.inf)


class Model(nn.Module):
    def __init__(self, batch_size, seq_length, n_heads, d_head, d_state, block_len):
        super().__init__()
        self.block_len = block_len
        self.A = nn.Parameter(-torch.rand(batch_size, seq_length, n_heads))
        self.B = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))
        self.C = nn.Parameter(torch.randn(batch_size, seq_length, n_heads, d_state))

    def forward(self, X):
        batch, length, heads, width = X.shape
        chunks = length // self.block_len
        X, B, C = (t.reshape(batch, chunks, self.block_len, heads, -1) for t in (X, self.B, self.C))
        A = self.A.reshape(batch, chunks, self.block_len, heads).permute(0, 3, 1, 2)
        A_cumsum = torch.cumsum(A, dim=-1)
        Y_diag = torch.einsum("bclhn,bcshn,bhcls,bcshp->bclhp", C, B, torch.exp(segment_sums(A)), X)
        decay_states = torch.exp(A_cumsum[:, :, :, -1:] - A_cumsum)
        states = torch.einsum("bclhn,bhcl,bclhp->bchpn", B, decay_states, X)
        states = torch.cat([torch.zeros_like(states[:, :1]), states], dim=1)
        decay_chunk = torch.exp(segment_sums(F.pad(A_cumsum[:, :, :, -1], (1, 0))))
        states = torch.einsum("bhzc,bchpn->bzhpn", decay_chunk, states)[:, :-1]
        Y_off = torch.einsum("bclhn,bchpn,bhcl->bclhp", C, states, torch.exp(A_cumsum))
        return (Y_diag + Y_off).reshape(batch, length, heads, width)


batch_size = 2048
seq_length = 128
n_heads = 8
d_head = 64
d_state = 16
block_len = 64


def get_inputs():
    return [torch.randn(batch_size, seq_length, n_heads, d_head)]


def get_init_inputs():
    return [batch_size, seq_length, n_heads, d_head, d_state, block_len]
