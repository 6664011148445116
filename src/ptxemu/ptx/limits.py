"""How large a kernel may be that a launch can hold."""

from __future__ import annotations

from ptxemu.ptx.errors import NotEmulatable
from ptxemu.ptx.module import Kernel

_MOST_LOCAL_BYTES, _MOST_PARAMETER_BYTES = 512 << 10, 32764
"""CUDA's own limits for one thread's memory and for the parameters of a launch."""
_MOST_SHARED_BYTES, _MOST_REGISTER_BYTES = 1 << 30, 1 << 28


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
