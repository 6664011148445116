"""Keys from passwords by PBKDF2 with HMAC-SHA-256."""

import torch

SIZES = {
    "small": {"passwords_count": 131, "rounds": 3},
    "medium": {"passwords_count": 4096, "rounds": 16},
    "full": {"passwords_count": 65536, "rounds": 64},
}
PRECISIONS = ("fp32",)
RANGES = {"passwords": (0, 255), "salts": (0, 255)}
TAGS = ("crypto",)
OP_FAMILY = "crypto"
MENDS = (
    "kernrl's toy HMAC changes its own input in place, and its reference is a Python loop over 1,000 rounds of one "
    "password. Here it is RFC 8018's function, over many passwords."
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


def hmac_states(passwords: torch.Tensor) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """States of the inner and the outer hash after the block that the password, of up to 64 bytes, fills."""
    filled = torch.nn.functional.pad(passwords.long(), (0, 64 - passwords.shape[1]))
    inner, outer = (words_of(filled ^ byte) for byte in (0x36, 0x5C))
    return compressed(begun(inner[0]), inner), compressed(begun(outer[0]), outer)


class Model(torch.nn.Module):
    """PBKDF2-HMAC-SHA-256 (RFC 8018), the first 32 bytes: exclusive or of `rounds` HMACs, each of the one before it."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.rounds = rounds

    def forward(self, passwords: torch.Tensor, salts: torch.Tensor) -> torch.Tensor:
        """(passwords, 32) and (passwords, 16) bytes -> (passwords, 32) bytes."""
        inner, outer = hmac_states(passwords)
        message = [*words_of(salts), torch.ones_like(inner[0])]
        key = [torch.zeros_like(inner[0])] * 8
        for _ in range(self.rounds):
            hashed = compressed(inner, ending(message, 64 + 4 * len(message), inner[0]))
            message = compressed(outer, ending(hashed, 96, inner[0]))
            key = [old ^ new for old, new in zip(key, message, strict=True)]
        return bytes_of(key)


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    count = SIZES[size]["passwords_count"]
    return [torch.randint(0, 256, (count, extent)).to(torch.uint8) for extent in (32, 16)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return [SIZES[size]["rounds"]]
