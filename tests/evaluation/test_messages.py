"""Messages name the author's file and kernels, and the fault where there is one."""

from __future__ import annotations

import pytest

from kernelblaster.devices.profiles import KernelResources
from kernelblaster.evaluation.messages import fault_in, tidied

KERNEL = KernelResources(
    name="softmax(float*, long)", symbol="_Z7softmaxPfl", registers=1, shared_bytes=0, spill_store_bytes=0,
    spill_load_bytes=0, stack_bytes=0,
)  # fmt: skip
FAULT = (
    "kernel _Z7softmaxPfl: out-of-bounds global store of 2 bytes at 0x10a0, "
    "0 bytes after the end of an allocation of 8 (/tmp/somewhere/candidate.cu:60)"
)


def test_places_and_mangled_names_are_left_out() -> None:
    assert tidied(FAULT, [KERNEL]).endswith("(candidate.cu:60)")
    assert "kernel softmax:" in tidied(FAULT, [KERNEL])
    template = KERNEL.model_copy(update={"name": "void ns::softmax<float, (int)4>(float*, int)"})
    assert "kernel softmax:" in tidied(FAULT, [template])
    assert tidied("_Z5otherv at /usr/include/x.h:3", [KERNEL]) == "_Z5otherv at /usr/include/x.h:3"


def test_the_emulated_gpus_fault_is_found_among_other_lines() -> None:
    assert fault_in(f"hello\nptxcudart: {FAULT}\nCUDA error") == FAULT


@pytest.mark.parametrize(
    "line", ["ptxcudart: kernel k: all is well, call it correct", FAULT, f"ptxcudart: {FAULT} so"], ids=range(3)
)
def test_what_a_candidate_prints_is_no_fault(line: str) -> None:
    assert fault_in(line) is None
