"""AES-128 of independent blocks under one key."""

import torch

SIZES = {"small": {"blocks": 1021}, "medium": {"blocks": 262144}, "full": {"blocks": 16777216}}
PRECISIONS = ("fp32",)
RANGES = {"plain": (0, 255), "key": (0, 255)}
TAGS = ("crypto",)
OP_FAMILY = "crypto"
MENDS = "kernrl encrypts one block and forgives 4 per byte. Here millions are encrypted, to the last bit."


def _box() -> list[int]:
    """The substitution of each byte: its inverse in the field of 256 elements, then an affine map."""
    powers = [1]
    while len(powers) < 255:
        last = powers[-1]
        powers.append(last ^ last << 1 ^ (0x11B if last & 128 else 0))
    inverses = {power: powers[-place % 255] for place, power in enumerate(powers)}
    turned = [
        [i << bits & 255 | i >> (8 - bits) for bits in range(5)] for i in (inverses.get(a, 0) for a in range(256))
    ]
    return [a ^ b ^ c ^ d ^ e ^ 0x63 for a, b, c, d, e in turned]


BOX = _box()
SHIFTED = [(i + 4 * (i % 4)) % 16 for i in range(16)]
"""Where each byte of a block, column after column, comes from when rows are shifted."""


def doubled(x: torch.Tensor) -> torch.Tensor:
    """Twice each byte, in the field."""
    return (x << 1 ^ (x >> 7) * 0x1B) & 255


def round_keys(key: torch.Tensor, box: torch.Tensor) -> list[torch.Tensor]:
    """The keys of the 11 rounds, 16 bytes each."""
    columns = list(key.reshape(4, 4).unbind(0))
    constant = 1
    while len(columns) < 44:
        last = columns[-1]
        if len(columns) % 4 == 0:
            last = box[last.roll(-1)]
            last = torch.cat((last[:1] ^ constant, last[1:]))
            constant = constant << 1 ^ (0x11B if constant & 128 else 0)
        columns.append(columns[-4] ^ last)
    return list(torch.cat(columns).reshape(11, 16).unbind(0))


class Model(torch.nn.Module):
    """AES-128 (FIPS 197), each block by itself."""

    def forward(self, plain: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        """(blocks, 16) and (16,) bytes -> (blocks, 16) bytes."""
        box = torch.tensor(BOX, device=plain.device)
        keys = round_keys(key.long(), box)
        state = plain.long() ^ keys[0]
        for number in range(1, 11):
            state = box[state][:, SHIFTED]
            if number < 10:
                column = state.reshape(-1, 4, 4)
                beside = column.roll(-1, 2)
                mixed = doubled(column ^ beside) ^ beside ^ column.roll(-2, 2) ^ column.roll(-3, 2)
                state = mixed.reshape(-1, 16)
            state = state ^ keys[number]
        return state.to(torch.uint8)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    blocks = SIZES[size]["blocks"]
    return [torch.randint(0, 256, (blocks, 16)).to(torch.uint8), torch.randint(0, 256, (16,)).to(torch.uint8)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
