"""KernelBench-CUDA directories written by others, read as text.

Their `driver.cpp` draws inputs with libtorch, calls `launch_gpu_implementation`, compares with a wide tolerance and
prints `passed` or `failed`. It judges itself inside the candidate's process, so a pass is weak evidence: such problems
are `weakly_verified`. They declare no sizes and no tensors.

Their sources were written against a looser build; `driver_source`, `candidate_source` and `launcher_header` make up the
difference. Building and running them is the device's.
"""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path

from kernelblaster.cuda_source.launcher import launcher_declaration, with_cxx_linkage, with_visible_launcher
from kernelblaster.cuda_source.lexer import directives
from kernelblaster.errors import ProblemError, UsageError
from kernelblaster.problems.problem import Problem, ProblemId

HEADER = "cuda_model.cuh"
"""The header that some of these sources include and none of them ships."""
INIT_FILES = ("init.cu", "final_cuda.cu")
"""Names under which the starting kernel is looked for, in this order."""

_HARNESS_HEADER = "<kernelblaster/driver.hpp>"
_TORCH_HEADER = re.compile(r'[<"](?:torch|ATen|c10)/')
_COMMONLY_MISSING = ("cfloat", "cmath", "cstdint", "cstdio", "vector")
_WORD = re.compile(r"[A-Za-z_]+")


class WeakVerdict(StrEnum):
    """What a driver that judges itself said. Never the same as `correct`."""

    PASSED = "weakly_passed"
    FAILED = "failed"
    UNCLEAR = "unclear"
    """It said nothing, or both."""


def is_self_checking(directory: Path) -> bool:
    """Whether a directory's driver is a libtorch program that judges itself."""
    driver = directory / "driver.cpp"
    if not driver.is_file() or (directory / "reference.py").exists():
        return False
    text = driver.read_text(encoding="utf-8", errors="replace")
    included = _included(text)
    return any(map(_TORCH_HEADER.match, included)) and _HARNESS_HEADER not in included


def load_self_checking(directory: Path, identity: ProblemId, name: str) -> Problem:
    """Load a self-checking directory as a weakly verified problem without sizes. Raises ProblemError."""
    present = [file for file in INIT_FILES if (directory / file).is_file()]
    if not present:
        raise ProblemError(f"{directory} has no kernel", hint=f"put one there as {' or '.join(INIT_FILES)}")
    launcher_declaration((directory / "driver.cpp").read_text(encoding="utf-8", errors="replace"))
    return Problem(
        id=identity, name=name, directory=directory, workloads={}, weakly_verified=True, init_file=present[0]
    )


def needs_a_gpu(problem: Problem) -> UsageError:
    """The error of who asks the emulated device for a self-checking problem."""
    return UsageError(
        f"{problem.slug} has no reference.py: its libtorch driver judges itself, which takes an NVIDIA GPU",
        hint="run it where there is one, or write a reference.py and a driver.cpp on <kernelblaster/driver.hpp>",
    )


def idle_launcher(declaration: str) -> str:
    """A kernel source whose launcher does nothing: a driver that passes it would pass much."""
    return f"{declaration.removesuffix(';')} {{}}\n"


def launcher_header(declaration: str) -> str:
    """What `cuda_model.cuh` held, as far as is known: the launcher's declaration and what that needs."""
    includes = "".join(f"#include <{name}>\n" for name in ("cstdint", "vector"))
    return f"#include <cuda_runtime.h>\n{includes}\n{declaration}\n"


def driver_source(driver: str) -> str:
    """A driver that asks for the launcher by C++ linkage and needs no header but its own declaration."""
    return with_cxx_linkage(_without_model_header(driver))


def candidate_source(source: str) -> str:
    """A kernel source in which the launcher is an ordinary function, and what is commonly forgotten is included.

    `extern "C"`, `inline` or `static` before the launcher's definition would give it another symbol, or none. Line
    numbers in messages stay those of `source`.
    """
    plain = with_visible_launcher(with_cxx_linkage(_without_model_header(source)))
    includes = "".join(f"#include <{name}>\n" for name in _COMMONLY_MISSING)
    return f"{includes}#line 1\n{plain}"


def read_output(output: str, returncode: int) -> WeakVerdict:
    """What the output of a driver amounts to.

    It passed when it ended with status 0, the whole word `passed` stands alone on a line, and the word `failed` (any
    case) stands nowhere. `not passed`, `passed 3 of 4` and a crash after the word do not count.
    """
    words = {token.lower() for token in _WORD.findall(output)}
    if returncode != 0 or "failed" in words:
        return WeakVerdict.FAILED
    if any(line.strip().lower() == "passed" for line in output.splitlines()):
        return WeakVerdict.PASSED
    return WeakVerdict.UNCLEAR


def _included(source: str) -> list[str]:
    return [directive.operand for directive in directives(source) if directive.name == "include"]


def _without_model_header(source: str) -> str:
    """A source that does not include `HEADER`; lines stay."""
    pieces, position = [], 0
    for directive in directives(source):
        if directive.name == "include" and directive.operand in (f'"{HEADER}"', f"<{HEADER}>"):
            pieces.append(source[position : directive.start])
            position = directive.end
    return "".join([*pieces, source[position:]])
