"""A starting kernel becomes one self-contained file that holds what it uses of the shared pieces, and nothing else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.errors import ProblemError
from kernelblaster.paths import harness_include_dir
from kernelblaster.problems.start import self_contained

HEADERS = sorted((harness_include_dir() / "kernelblaster/kernels").glob("*.cuh"))
NAMES = [header.stem for header in HEADERS]


def kernel(body: str, *headers: str) -> str:
    includes = "".join(f"#include <kernelblaster/kernels/{name}.cuh>\n" for name in headers)
    return f"// What it does.\n{includes}\nvoid launch_gpu_implementation(void* output) {{ {body} }}\n"


def test_a_kernel_without_shared_pieces_stays_as_it_is() -> None:
    source = "#include <kernelblaster/scalar.cuh>\n" + kernel("return;")
    assert self_contained(source) == source


def test_what_is_used_comes_along_with_what_that_needs_and_nothing_else() -> None:
    text = self_contained(kernel("softmax(out(output), nullptr, AxisView{1, 2, 3});", "softmax", "conv"))
    for needed in ("softmax_kernel", "block_reduce", "warp_reduce", "struct AxisView", "struct Max", "check("):
        assert needed in text
    for other in ("logsumexp", "struct Conv", "gelu", "struct Min"):
        assert other not in text
    assert text.index("warp_reduce") < text.index("block_reduce") < text.index("softmax_kernel")
    assert text.startswith("// What it does.\n#include <kernelblaster/scalar.cuh>\n")
    assert text.count("struct Sum") == 1


def test_comments_do_not_ask_for_pieces() -> None:
    assert "struct Conv" not in self_contained(kernel("return;  /* a Conv, say */  // conv()", "conv") + "\n")


def test_a_shared_piece_that_does_not_exist_is_refused_with_those_that_do() -> None:
    for name in ("lost", "../scalar"):
        with pytest.raises(ProblemError) as caught:
            self_contained(kernel("return;", name))
        assert "softmax.cuh" in caught.value.hint


@given(headers=st.lists(st.sampled_from(NAMES), unique=True, min_size=1))
def test_the_result_includes_no_shared_piece_and_stays_as_it_is(headers: list[str]) -> None:
    text = self_contained(kernel("return;", *headers))
    assert "kernelblaster/kernels" not in text
    assert self_contained(text) == text


@pytest.mark.parametrize("name", NAMES)
def test_every_function_of_a_header_can_be_asked_for_by_its_name(name: str) -> None:
    header = (harness_include_dir() / f"kernelblaster/kernels/{name}.cuh").read_text()
    functions = re.findall(r"^(?:static|__device__|__global__)[^=;{]*?\b(\w+)\(", header, re.MULTILINE)
    for function in functions:
        assert re.search(rf"\b{function}\(", self_contained(kernel(f"{function}();", name)).split("void launch_gpu")[0])
