"""References of hashes, ciphers and long integers give what other implementations do, and published vectors."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from types import ModuleType

import pytest
import torch

from kernelblaster.paths import data_dir
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.reference import load_reference

LEVEL = data_dir() / "kernrl" / "level10"


def module(number: int) -> ModuleType:
    [directory] = LEVEL.glob(f"{number:03d}_*")
    return load_reference(load_problem(directory)).module


def random_bytes(*shape: int) -> torch.Tensor:
    return torch.randint(0, 256, shape, generator=torch.Generator().manual_seed(1)).to(torch.uint8)


def rows(tensor: torch.Tensor) -> list[bytes]:
    return [bytes(row.tolist()) for row in tensor]


@pytest.mark.parametrize(("number", "length"), [(1, 64), (2, 192)])
def test_sha256_is_that_of_the_standard_library(number: int, length: int) -> None:
    data = random_bytes(5, length)
    assert rows(module(number).Model()(data)) == [hashlib.sha256(row).digest() for row in rows(data)]


def test_a_root_is_the_digest_of_digests() -> None:
    leaves = random_bytes(2, 4, 32)

    def root(level: list[bytes]) -> bytes:
        if len(level) == 1:
            return level[0]
        pairs = zip(level[::2], level[1::2], strict=True)
        return root([hashlib.sha256(left + right).digest() for left, right in pairs])

    assert rows(module(3).Model()(leaves)) == [root(rows(tree)) for tree in leaves]


def test_pbkdf2_is_that_of_the_standard_library() -> None:
    passwords, salts = random_bytes(3, 32), random_bytes(3, 16)
    expected = [hashlib.pbkdf2_hmac("sha256", *pair, 4) for pair in zip(rows(passwords), rows(salts), strict=True)]
    assert rows(module(6).Model(4)(passwords, salts)) == expected


def test_aes_and_chacha_give_their_standards_examples() -> None:
    plain, key = (
        torch.tensor([*bytes.fromhex(text)]) for text in ("00112233445566778899aabbccddeeff", bytes(range(16)).hex())
    )
    [encrypted] = rows(module(4).Model()(plain[None].to(torch.uint8), key.to(torch.uint8)))
    assert encrypted.hex() == "69c4e0d86a7b0430d8cdb78070b4c55a"
    words = torch.tensor([int.from_bytes(bytes(range(32))[i : i + 4], "little") for i in range(0, 32, 4)]).int()
    nonce = torch.tensor([0x09000000, 0x4A000000, 0]).int()
    stream = module(5).Model()(torch.zeros(2, 16, dtype=torch.int32), words, nonce)
    assert [int(word) & 0xFFFFFFFF for word in stream[1, :4]] == [0xE4E7F110, 0x15593BD1, 0x1FDD0F50, 0xC47120A3]


def test_blake3_gives_a_known_digest() -> None:
    empty_block: Callable[[torch.Tensor], torch.Tensor] = module(7).Model()
    data = torch.arange(64).remainder(251).to(torch.uint8)[None]
    assert rows(empty_block(data))[0].hex() == "4eed7141ea4a5cd4b788606bd23f46e212af9cacebacdc7d1f4c6dc7f2511b98"


def test_powers_are_those_of_python() -> None:
    limbs = 3
    bases, exponents, moduli = random_bytes(3, 9, 2 * limbs).view(torch.uint16).int()
    moduli[0], moduli[1] = 0, torch.tensor([3, 0, 0])

    def numbers(tensor: torch.Tensor) -> list[int]:
        return [sum(int(limb) << 16 * place for place, limb in enumerate(row)) for row in tensor]

    expected = [
        pow(*each) for each in zip(numbers(bases), numbers(exponents), [m | 1 for m in numbers(moduli)], strict=True)
    ]
    assert numbers(module(8).Model()(bases, exponents, moduli)) == expected
