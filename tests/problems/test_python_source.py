"""Python text is parsed in any number of threads."""

from __future__ import annotations

import ast
from concurrent.futures import ThreadPoolExecutor

from kernelblaster.problems.python_source import parse_python


def test_threads_parse_at_the_same_time():
    text = "\n".join(
        f"def f{number}(x):\n    return [y + {number} for y in x if (y, (x, {{y: x}}))]" for number in range(300)
    )
    expected = ast.dump(ast.parse(text))
    with ThreadPoolExecutor(8) as pool:
        assert {ast.dump(tree) for tree in pool.map(parse_python, [text] * 24)} == {expected}
