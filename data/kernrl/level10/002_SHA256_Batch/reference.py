"""SHA-256 of messages of several blocks."""

import torch

SIZES = {
    "small": {"messages": 261, "blocks": 3},
    "medium": {"messages": 65536, "blocks": 4},
    "full": {"messages": 1048576, "blocks": 16},
}
PRECISIONS = ("fp32",)
RANGES = {"data": (0, 255)}
TAGS = ("crypto",)
OP_FAMILY = "crypto"
MENDS = (
    "kernrl's reference loops over 1,024 messages in Python, and leaves out the padding. Here messages of 1 KiB are "
    "hashed, to the last bit, by a reference of tensor operations."
)
MASK = 0xFFFFFFFF
INITIAL = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)


def _round_constants() -> list[int]:
    """The first 32 bits of the fractions of the cube roots of the first 64 primes."""
    primes = [n for n in range(2, 312) if all(n % d for d in range(2, n))]
    constants = []
    for prime in primes:
        root = round((prime << 96) ** (1 / 3))
        while root**3 > prime << 96:
            root -= 1
        while (root + 1) ** 3 <= prime << 96:
            root += 1
        constants.append(root & MASK)
    return constants


ROUNDS = _round_constants()


def rotated(x: torch.Tensor, bits: int) -> torch.Tensor:
    """Words rotated to the right."""
    return ((x >> bits) | (x << (32 - bits))) & MASK


def compressed(state: list[torch.Tensor], words: list[torch.Tensor]) -> list[torch.Tensor]:
    """The state, 8 words, after one block of 16 words."""
    w = list(words)
    for i in range(16, 64):
        low = rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ (w[i - 15] >> 3)
        high = rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ (w[i - 2] >> 10)
        w.append((w[i - 16] + low + w[i - 7] + high) & MASK)
    a, b, c, d, e, f, g, h = state
    for constant, word in zip(ROUNDS, w, strict=True):
        first = h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & f) ^ (~e & g)) + constant + word
        second = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))
        a, b, c, d, e, f, g, h = (first + second) & MASK, a, b, c, (d + first) & MASK, e, f, g
    return [(old + new) & MASK for old, new in zip(state, (a, b, c, d, e, f, g, h), strict=True)]


def words_of(data: torch.Tensor) -> list[torch.Tensor]:
    """(n, bytes) as a list of big-endian words, (n,) each."""
    parts = data.long().reshape(data.shape[0], -1, 4).unbind(2)
    return list((parts[0] << 24 | parts[1] << 16 | parts[2] << 8 | parts[3]).unbind(1))


def bytes_of(words: list[torch.Tensor]) -> torch.Tensor:
    """The bytes of big-endian words, (n, bytes)."""
    whole = torch.stack(words, 1)
    return torch.stack([whole >> shift & 255 for shift in (24, 16, 8, 0)], 2).flatten(1).to(torch.uint8)


def ending(held: list[torch.Tensor], length: int, like: torch.Tensor) -> list[torch.Tensor]:
    """The last block of a message of `length` bytes, of which `held` words are left."""
    fixed = [0x80000000, *[0] * (14 - len(held)), 8 * length]
    return [*held, *(torch.full_like(like, word) for word in fixed)]


def begun(like: torch.Tensor) -> list[torch.Tensor]:
    """The state before the first block."""
    return [torch.full_like(like, word) for word in INITIAL]


def digest(message: torch.Tensor) -> torch.Tensor:
    """(n, bytes), whole blocks of 64 bytes -> (n, 32)."""
    words = words_of(message)
    state = begun(words[0])
    for start in range(0, len(words), 16):
        state = compressed(state, words[start : start + 16])
    return bytes_of(compressed(state, ending([], message.shape[1], words[0])))


class Model(torch.nn.Module):
    """SHA-256 (FIPS 180-4)."""

    def forward(self, data: torch.Tensor) -> torch.Tensor:
        """(messages, 64 blocks) bytes -> (messages, 32) bytes."""
        return digest(data)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randint(0, 256, (p["messages"], 64 * p["blocks"])).to(torch.uint8)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
