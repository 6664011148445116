"""How large a text may be that is assembled, and a kernel that a launch can hold: whoever wrote it chose how large."""

from __future__ import annotations

from collections.abc import Iterable

from ptxemu.ptx.errors import NotEmulatable
from ptxemu.ptx.module import Kernel
from ptxemu.ptx.tree import Function

MOST_TEXT_BYTES = 16 << 20
"""Of PTX: a program that calls two dozen algorithms of Thrust has nine million; a megabyte takes 0.6 s."""
MOST_REGISTERS = 1 << 18
"""Declared in a text; one line declares as many as it likes."""
MOST_SCOPES = 1 << 10
"""Inside each other."""
MOST_INLINED = 1 << 7
"""Calls that a line was inlined through that are remembered; its chain may be that of another line and one more."""
MOST_STATEMENTS = 1 << 19
"""Lowered for all kernels together: each kernel has the functions that it calls lowered again."""
_MOST_LOCAL_BYTES, _MOST_PARAMETER_BYTES = 512 << 10, 32764
"""CUDA's own limits for one thread's memory and for the parameters of a launch."""
_MOST_SHARED_BYTES, _MOST_REGISTER_BYTES = 1 << 30, 1 << 28


def check_statements(kernels: Iterable[tuple[Function, Iterable[Function]]]) -> None:
    """Refuse kernels, each with what it calls, that are too much to lower together. Raises NotEmulatable."""
    left = MOST_STATEMENTS
    for kernel, called in kernels:
        left -= len(kernel.body) + sum(len(one.body) for one in called)
        if left < 0:
            reason = f"more than {MOST_STATEMENTS} instructions of all kernels, with what each calls"
            raise NotEmulatable(kernel.name, kernel.line, reason)


def check_sizes(kernel: Kernel, line: int) -> None:
    """Refuse what no launch could hold, before it overflows the module's fields. `line`: where the kernel begins.

    Raises NotEmulatable.
    """
    limits = (
        ("local memory", kernel.local_bytes, _MOST_LOCAL_BYTES),
        ("shared memory", kernel.static_shared, _MOST_SHARED_BYTES),
        ("parameters", kernel.parameter_bytes, _MOST_PARAMETER_BYTES),
        ("registers", kernel.register_bytes, _MOST_REGISTER_BYTES),
    )
    for what, size, most in limits:
        if size > most:
            raise NotEmulatable(kernel.name, line, f"{size} bytes of {what} (at most {most})")
