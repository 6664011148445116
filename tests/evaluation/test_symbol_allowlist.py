"""What host code may ask for: enough for any kernel, and no way out by another name."""

from __future__ import annotations

import pytest

from kernelblaster.evaluation.integrity.symbol_allowlist import is_allowed


@pytest.mark.parametrize(
    "name",
    ["malloc", "printf", "__printf_chk", "sinf", "expl", "__cxa_guard_acquire", "_Znwm", "_ZSt4cout", "cudaMallocAsync",
     "__cudaPushCallConfiguration", "clock_gettime", "pthread_once", "__truncsfhf2", "qsort", "stdout"],
)  # fmt: skip
def test_what_kernels_use_is_harmless(name: str) -> None:
    assert is_allowed(name)


@pytest.mark.parametrize(
    "name",
    ["open", "__open_2", "__open64", "_IO_fopen", "dprintf", "writev", "pwrite64", "timer_create", "aio_read", "getenv",
     "program_invocation_name", "glob", "scandir", "__read", "__fork", "sendfile", "mq_notify", "getaddrinfo_a"],
)  # fmt: skip
def test_what_reaches_out_is_not_harmless_under_any_name(name: str) -> None:
    assert not is_allowed(name)
