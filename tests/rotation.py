"""Which of very many problems a default run takes: other ones each day. With --all every test takes all of them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest

from kernelblaster.problems.problem import Problem


def rotating(problems: Sequence[Problem], count: int) -> list[Any]:
    """Parameters of a test: `count` problems of the day, drawn by the date, and the others marked slow."""
    today = random.Random(date.today().toordinal()).sample(range(len(problems)), min(count, len(problems)))
    return [
        pytest.param(problem, id=str(problem.id), marks=[] if place in today else [pytest.mark.slow])
        for place, problem in enumerate(problems)
    ]
