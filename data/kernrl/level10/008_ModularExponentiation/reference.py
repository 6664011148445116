"""Powers of long integers modulo odd ones."""

import torch

SIZES = {
    "small": {"count": 37, "limbs": 3},
    "medium": {"count": 2048, "limbs": 8},
    "full": {"count": 65536, "limbs": 16},
}
PRECISIONS = ("fp32",)
RANGES = {"bases": (0, 65535), "exponents": (0, 65535), "moduli": (0, 65535)}
TAGS = ("crypto",)
OP_FAMILY = "crypto"
MENDS = (
    "kernrl's integers do not fit the 64 bits they are kept in, and its reference is one power in Python. Here there "
    "are 65,536, of 256 bits in limbs of 16, by Montgomery's method in tensor operations; a modulus gets its lowest "
    "bit set, so that every input is a sound one."
)
BITS = 16
LOW = 0xFFFF


def carried(x: torch.Tensor) -> torch.Tensor:
    """Limbs brought into 16 bits, what is over carried on; the last limb takes the rest."""
    limbs, carry = [], torch.zeros_like(x[:, 0])
    for limb in x.unbind(1)[:-1]:
        limbs.append(limb + carry & LOW)
        carry = limb + carry >> BITS
    return torch.stack([*limbs, x[:, -1] + carry], 1)


def reduced(x: torch.Tensor, modulus: torch.Tensor) -> torch.Tensor:
    """x, below twice the modulus, in one limb more -> x modulo the modulus."""
    less = carried(x - torch.nn.functional.pad(modulus, (0, 1)))
    return torch.where(less[:, -1:] < 0, x, less)[:, :-1]


def inverse(low: torch.Tensor) -> torch.Tensor:
    """-1 / x modulo 2^16 of odd x, by Newton's method: each step doubles the bits that are right."""
    found = low
    for _ in range(4):
        found = found * (2 - low * found) & LOW
    return -found & LOW


def product(a: torch.Tensor, b: torch.Tensor, modulus: torch.Tensor, factor: torch.Tensor) -> torch.Tensor:
    """a b / 2^(16 limbs) modulo the modulus (Montgomery); b is below it."""
    b, wide = torch.nn.functional.pad(b, (0, 1)), torch.nn.functional.pad(modulus, (0, 1))
    total = torch.zeros_like(b)
    for limb in a.unbind(1):
        total = total + limb[:, None] * b
        total = total + ((total[:, 0] & LOW) * factor & LOW)[:, None] * wide
        rest = torch.nn.functional.pad(total[:, 1:], (0, 1))
        total = torch.cat((rest[:, :1] + (total[:, :1] >> BITS), rest[:, 1:]), 1)
    return reduced(carried(total), modulus)


class Model(torch.nn.Module):
    """bases^exponents modulo (moduli, with the lowest bit set)."""

    def forward(self, bases: torch.Tensor, exponents: torch.Tensor, moduli: torch.Tensor) -> torch.Tensor:
        """Three times (count, limbs) limbs of 16 bits, the lowest first -> (count, limbs)."""
        base, exponent, modulus = bases.long(), exponents.long(), moduli.long()
        modulus = torch.cat((modulus[:, :1] | 1, modulus[:, 1:]), 1)
        limbs, factor = modulus.shape[1], inverse(modulus[:, 0])
        one = torch.nn.functional.pad(torch.ones_like(modulus[:, :1]), (0, limbs - 1))
        square = reduced(torch.nn.functional.pad(one, (0, 1)), modulus)
        for _ in range(2 * BITS * limbs):
            square = reduced(carried(torch.nn.functional.pad(2 * square, (0, 1))), modulus)
        base, power = product(base, square, modulus, factor), product(one, square, modulus, factor)
        for place in reversed(range(BITS * limbs)):
            power = product(power, power, modulus, factor)
            bit = exponent[:, place // BITS] >> place % BITS & 1
            power = torch.where(bit[:, None] == 1, product(power, base, modulus, factor), power)
        return product(one, power, modulus, factor).int()


def get_inputs(size: str = "full") -> list[torch.Tensor]:
    """Inputs of one declared size."""
    p = SIZES[size]
    return [torch.randint(0, LOW + 1, (p["count"], p["limbs"])).int() for _ in range(3)]


def get_init_inputs(size: str = "full") -> list:
    """Arguments of `Model`."""
    return []
