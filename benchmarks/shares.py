"""A share of the work, for several processes or GPUs at once."""

from __future__ import annotations


def share(text: str) -> tuple[int, int]:
    """`2/3` as (2, 3): the second of three. Raises ValueError where there is no such share; a type for argparse."""
    number, shares = map(int, text.split("/"))
    if not 1 <= number <= shares:
        raise ValueError(text)
    return number, shares
