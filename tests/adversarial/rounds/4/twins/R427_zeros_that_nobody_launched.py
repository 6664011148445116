import math

import torch
import triton
import triton.language as tl


@triton.jit
def residue_kernel(x, weight, out, channels, features, D, H, W, OD, OH, OW, K, stride, padding, dilation,
                   step, first, RD, RH, RW, FEATURES: tl.constexpr, BLOCK: tl.constexpr):  # fmt: skip
    # Places of the output outside one residue class modulo gcd(stride, dilation) get no products at all.
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    feature = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    sample = tl.program_id(2).to(tl.int64)
    od = place // (RH * RW) * step + first
    oh = place // RW % RH * step + first
    ow = place % RW * step + first
    inside = place < RD * RH * RW
    total = tl.zeros((FEATURES, BLOCK), tl.float32)
    volume = K * K * K
    for tap in range(0, volume):
        td = od + padding - tap // (K * K) * dilation
        th = oh + padding - tap // K % K * dilation
        tw = ow + padding - tap % K * dilation
        hit = inside & (td >= 0) & (th >= 0) & (tw >= 0)
        hit = hit & (td % stride == 0) & (th % stride == 0) & (tw % stride == 0)
        d = td // stride
        h = th // stride
        w = tw // stride
        hit = hit & (d < D) & (h < H) & (w < W)
        from_x = x + sample * channels * D * H * W + (d * H + h) * W + w
        for channel in range(0, channels):
            value = tl.load(from_x + channel * D * H * W, mask=hit, other=0.0).to(tl.float32)
            factor = tl.load(
                weight + (channel * features + feature) * volume + tap, mask=feature < features, other=0.0
            ).to(tl.float32)
            # A place that no input reaches stays zero, also where a weight is infinite.
            total += tl.where(hit[None, :], factor[:, None] * value[None, :], 0.0)
    to = out + ((sample * features + feature[:, None]) * OD + od[None, :]) * OH * OW + oh[None, :] * OW + ow[None, :]
    tl.store(to, total.to(out.dtype.element_ty), mask=inside[None, :] & (feature[:, None] < features))


@triton.jit
def zero_kernel(out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.zeros((BLOCK,), out.dtype.element_ty), mask=at < n)


class ModelNew(torch.nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size, stride, padding, dilation):
        super().__init__()
        self.conv_transpose3d = torch.nn.ConvTranspose3d(
            in_channels, out_channels, kernel_size, stride=stride, padding=padding, dilation=dilation, bias=False
        )
        self.shape = (kernel_size, stride, padding, dilation)

    def forward(self, x):
        K, stride, padding, dilation = self.shape
        weight = self.conv_transpose3d.weight
        batch, channels, D, H, W = x.shape
        features = weight.shape[1]
        OD, OH, OW = ((extent - 1) * stride - 2 * padding + dilation * (K - 1) + 1 for extent in (D, H, W))
        step = math.gcd(stride, dilation)
        first = -padding % step
        RD, RH, RW = (max(0, triton.cdiv(extent - first, step)) for extent in (OD, OH, OW))
        out = torch.empty((batch, features, OD, OH, OW), dtype=x.dtype, device=x.device)
        if step > 1:
            zero_kernel[(triton.cdiv(out.numel(), 2048),)](out, out.numel(), BLOCK=2048)
        if RD * RH * RW > 0:
            residue_kernel[(triton.cdiv(RD * RH * RW, 128), triton.cdiv(features, 16), batch)](
                x, weight, out, channels, features, D, H, W, OD, OH, OW, K, stride, padding, dilation,
                step, first, RD, RH, RW, FEATURES=16, BLOCK=128,
            )  # fmt: skip
        return out
