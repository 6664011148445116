"""BLAKE3 of messages of 64 bytes."""

import torch

SIZES = {"small": {"messages": 1013}, "medium": {"messages": 262144}, "full": {"messages": 8388608}}
PRECISIONS = ("fp32",)
RANGES = {"data": (0, 255)}
TAGS = ("crypto",)
OP_FAMILY = "crypto"
MENDS = "kernrl compresses one block. Here it is the hash of many messages, to the last bit."
MASK = 0xFFFFFFFF
INITIAL = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
"""Which word comes where in the next round."""
FLAGS = 1 | 2 | 8
"""The block begins a chunk, ends it, and is the root."""
QUARTERS = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),
)  # fmt: skip


def rotated(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Words rotated to the right."""
    return (x >> bits | x << (32 - bits)) & MASK


class Model(torch.nn.Module):
    """BLAKE3 of a message that is one block."""

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """(messages, 64) bytes -> (messages, 32) bytes."""
        parts = data.long().reshape(-1, 16, 4).unbind(2)
        words = list((parts[0] | parts[1] << 8 | parts[2] << 16 | parts[3] << 24).unbind(1))
        v = [torch.full_like(words[0], word) for word in (*INITIAL, *INITIAL[:4], 0, 0, 64, FLAGS)]
        for _ in range(7):
            for number, (a, b, c, d) in enumerate(QUARTERS):
                for word, far, near in ((words[2 * number], 16, 12), (words[2 * number + 1], 8, 7)):
                    v[a] = (v[a] + v[b] + word) & MASK
                    v[d] = rotated(v[d] ^ v[a], far)
                    v[c] = (v[c] + v[d]) & MASK
                    v[b] = rotated(v[b] ^ v[c], near)
            words = [words[place] for place in ORDER]
        result = torch.stack([v[i] ^ v[i + 8] for i in range(8)], 1)
        return torch.stack([result >> shift & 255 for shift in (0, 8, 16, 24)], 2).flatten(1).to(torch.uint8)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    return [torch.randint(0, 256, (SIZES[size]["messages"], 64)).to(torch.uint8)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
