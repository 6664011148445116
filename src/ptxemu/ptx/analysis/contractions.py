"""Which multiplications and additions ptxas makes one fused operation, which rounds once.

A multiplication without a rounding modifier is fused into the additions and subtractions that use it, when these have
no rounding modifier either and the same type and flushing, when there is no other use of it, and when all are in one
basic block; signs may change on the way. Where both terms of a sum could be fused, the product with fewer uses is, or
the first; the other is then computed by itself for all its uses. The rules are read off the machine code that ptxas
13.0 makes for sm_90. What it does across rounds of a loop that it unrolls is not followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ptxemu.ptx.analysis.dataflow import flow
from ptxemu.ptx.tree import Label, Operand, Statement

_KINDS = frozenset(["f32", "f64", "f16", "f16x2", "bf16", "bf16x2"])
_JUMPS = frozenset(["bra", "brx", "call", "ret", "exit"])


@dataclass(frozen=True, slots=True)
class Contraction:
    """What a sum becomes: +-a * b +- c."""

    a: Operand
    b: Operand
    c: Operand
    negated_product: bool
    negated_addend: bool

    @property
    def stem(self) -> str:
        """Name of the operation, without its type."""
        return f"f{'n' if self.negated_product else ''}m{'s' if self.negated_addend else 'a'}_rn"


@dataclass(slots=True)
class _Product:
    """A multiplication that may be fused."""

    index: int
    statement: Statement
    uses: list[tuple[int, int, bool]] = field(default_factory=list)
    """Of each sum that uses it: index, which of its terms, whether that has another sign."""


def contractions(body: Sequence[Statement | Label]) -> dict[int, Contraction]:
    """Index of an addition or subtraction in the body -> what it is fused to."""
    blocks = _blocks(body)
    readers, writers = _readers(body), _writers(body)
    products: dict[int, _Product] = {}
    for index, item in enumerate(body):
        if isinstance(item, Statement) and _is_plain(item, "mul") and item.guard is None:
            product = _Product(index, item)
            if _collect(body, product, str(item.operands[0]), readers, writers, blocks, negated=False):
                products[index] = product
    _settle(products)
    found: dict[int, Contraction] = {}
    for product in products.values():
        for index, place, negated in product.uses:
            if _kept(product, index, writers):
                found[index] = _fused(body[index], product, place, negated)
    return found


def _is_plain(item: Statement, *heads: str) -> bool:
    """Whether it computes floats and may be fused: no rounding, no saturation."""
    if item.parts[0] not in heads or item.parts[-1] not in _KINDS:
        return False
    return len(item.parts) == 2 or item.parts[1:] == ("ftz", "f32")


def _collect(
    body: Sequence[Statement | Label],
    product: _Product,
    name: str,
    readers: dict[str, list[int]],
    writers: dict[str, list[int]],
    blocks: list[int],
    *,
    negated: bool,
) -> bool:
    """Add the sums that use a register to a product's; False when anything else does, or when there is none."""
    if len(writers.get(name, ())) != 1 or not readers.get(name):
        return False
    for index in readers[name]:
        item = body[index]
        if not isinstance(item, Statement) or blocks[index] != blocks[product.index] or index < product.index:
            return False
        if _is_plain(item, "add", "sub") and item.parts[1:] == product.statement.parts[1:]:
            terms = item.operands[1:]
            if terms.count(name) != 1 or item.guard == name:
                return False
            place = terms.index(name)
            product.uses.append((index, place, negated != (place == 1 and item.parts[0] == "sub")))
        elif _passes_on(item, product.statement.parts[-1]) and isinstance(item.operands[0], str):
            other = negated != (item.parts[0] == "neg")
            if not _collect(body, product, item.operands[0], readers, writers, blocks, negated=other):
                return False
        else:
            return False
    return True


def _passes_on(item: Statement, kind: str) -> bool:
    """Whether it hands a register on, with or without another sign."""
    if item.guard is not None or len(item.operands) != 2:
        return False
    return item.parts[0] == "mov" or (item.parts[0] == "neg" and item.parts[-1] == kind)


def _settle(products: dict[int, _Product]) -> None:
    """Where two products meet in a sum, give one of them up."""
    terms: dict[int, list[tuple[int, _Product]]] = {}
    for product in products.values():
        for index, place, _ in product.uses:
            terms.setdefault(index, []).append((place, product))
    for index in sorted(terms):
        left = [(len(one.uses), place, one) for place, one in terms[index] if one.index in products]
        for _, _, loser in sorted(left, key=lambda term: term[:2])[1:]:
            del products[loser.index]


def _kept(product: _Product, index: int, writers: dict[str, list[int]]) -> bool:
    """Whether the factors still hold at a sum what they held at the multiplication."""
    return not any(
        product.index <= written < index
        for factor in product.statement.operands[1:]
        if isinstance(factor, str)
        for written in writers.get(factor, ())
    )


def _fused(item: Statement | Label, product: _Product, place: int, negated: bool) -> Contraction:
    if not isinstance(item, Statement):
        raise TypeError("a label is no sum")
    _, a, b = product.statement.operands
    minus = item.parts[0] == "sub" and place == 0
    return Contraction(a, b, item.operands[2 - place], negated, minus)


def _blocks(body: Sequence[Statement | Label]) -> list[int]:
    """The basic block of each item: they end at labels and at whatever may jump."""
    numbers, number = [], 0
    for item in body:
        if isinstance(item, Label):
            number += 1
        numbers.append(number)
        if isinstance(item, Statement) and item.parts[0] in _JUMPS:
            number += 1
    return numbers


def _readers(body: Sequence[Statement | Label]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, name in _names(body, written=False):
        found.setdefault(name, []).append(index)
    return found


def _writers(body: Sequence[Statement | Label]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for index, name in _names(body, written=True):
        found.setdefault(name, []).append(index)
    return found


def _names(body: Sequence[Statement | Label], *, written: bool) -> Iterator[tuple[int, str]]:
    for index, item in enumerate(body):
        if isinstance(item, Statement):
            one = flow(item)
            yield from ((index, name) for name in (one.results if written else one.sources))
