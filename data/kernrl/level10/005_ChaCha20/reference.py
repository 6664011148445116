"""Messages encrypted by ChaCha20."""

import torch

SIZES = {"small": {"blocks": 1019}, "medium": {"blocks": 262144}, "full": {"blocks": 4194304}}
PRECISIONS = ("fp32",)
RANGES = {
    "plain": (-2147483648, 2147483647),
    "key": (-2147483648, 2147483647),
    "nonce": (-2147483648, 2147483647),
}
TAGS = ("crypto",)
OP_FAMILY = "crypto"
MENDS = (
    "kernrl makes one block of the key stream, in words of 64 bits. Here a message of 256 MiB is encrypted, to the "
    "last bit."
)
MASK = 0xFFFFFFFF
SIGMA = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip
"""Of a double round: columns, then diagonals."""


def turned(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Words rotated to the left."""
    return (x << bits | x >> (32 - bits)) & MASK


class Model(torch.nn.Module):
    """ChaCha20 (RFC 8439): block i of the message is combined with that of the key stream whose counter is i."""

    def forward(self, plain: torch.Tensor, key: torch.Tensor, nonce: torch.Tensor) -> torch.Tensor:
        """(blocks, 16), (8,) and (3,) words -> (blocks, 16) words."""
        count = torch.arange(plain.shape[0], device=plain.device)
        fixed = [*(torch.full_like(count, word) for word in SIGMA), *(word.expand_as(count) for word in key.long())]
        start = [word & MASK for word in (*fixed, count, *(word.expand_as(count) for word in nonce.long()))]
        x = list(start)
        for _ in range(10):
            for a, b, c, d in QUARTERS:
                for to, by, into, bits in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                    x[to] = (x[to] + x[by]) & MASK
                    x[into] = turned(x[into] ^ x[to], bits)
        stream = torch.stack([old + new for old, new in zip(start, x, strict=True)], 1)
        return plain ^ stream.int()


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    shapes = ((SIZES[size]["blocks"], 16), (8,), (3,))
    return [torch.randint(-(2**31), 2**31, shape).int() for shape in shapes]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
