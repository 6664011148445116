from __future__ import annotations

import time

import pytest

from kernelblaster.cuda_source.launcher import (
    LAUNCHER,
    HeadRole,
    defines_launcher,
    find_declaration,
    function_heads,
    launcher_declaration,
    with_cxx_linkage,
    with_visible_launcher,
)
from kernelblaster.errors import ProblemError

HEAD = f"void {LAUNCHER}(int* output, int value)"


@pytest.mark.parametrize(
    ("driver", "declaration"),
    [
        (f"{HEAD};", f"{HEAD};"),
        (f'auto u = "https://x"; {HEAD};', f"{HEAD};"),
        (f"// void {LAUNCHER}(int);\nvoid  {LAUNCHER}(\n  int* output, // out\n  int value);\n", f"{HEAD};"),
        (f'extern "C" {HEAD};', f"{HEAD};"),
        (f"void {LAUNCHER}(int* output, int value = f(1, 2));", f"{HEAD};"),
        (
            f"void {LAUNCHER}(const std::vector<int64_t>& shape = {{1, 2}}, double a = 0.5);",
            f"void {LAUNCHER}(const std::vector<int64_t>& shape, double a);",
        ),
        (f"void {LAUNCHER}();", f"void {LAUNCHER}();"),
    ],
)
def test_the_declaration_is_taken_out_of_the_driver(driver: str, declaration: str) -> None:
    assert launcher_declaration(driver) == declaration


@pytest.mark.parametrize(
    "driver",
    ["", f"// {HEAD};", f"/* {HEAD}; */", f"int main() {{ {LAUNCHER}(1); }}", f'auto s = "{HEAD};";', f"{HEAD} {{}}"],
)
def test_a_driver_without_a_declaration_is_refused(driver: str) -> None:
    assert find_declaration(driver) is None
    with pytest.raises(ProblemError, match=LAUNCHER):
        launcher_declaration(driver)


@pytest.mark.parametrize(
    ("source", "defined"),
    [
        (f"{HEAD} {{}}", True),
        (f"{HEAD} noexcept\n{{}}", True),
        (f"{HEAD};\nint main() {{ {LAUNCHER}(a, 1); }}", False),
        (f'auto s = "{HEAD} {{}}";', False),
        (f"{LAUNCHER}", False),
    ],
)
def test_definitions_are_told_from_calls(source: str, defined: bool) -> None:
    assert defines_launcher(source) is defined
    assert any(head.role is HeadRole.DEFINITION for head in function_heads(source)) is defined


@pytest.mark.parametrize(
    "decoration", ["inline ", "static inline ", "static ", "__forceinline__ ", 'extern "C" inline ', "static\n"]
)
def test_a_decorated_launcher_becomes_visible(decoration: str) -> None:
    source = f"{decoration}{HEAD} {{}}"
    visible = with_visible_launcher(source)
    assert "inline" not in visible
    assert "static" not in visible
    assert visible.endswith(f"{HEAD} {{}}")
    assert (len(visible), visible.count("\n")) == (len(source), source.count("\n"))


def test_other_functions_keep_their_decoration() -> None:
    source = f'static inline void helper() {{}}\nextern "C" void other();\n{HEAD} {{}}'
    assert with_visible_launcher(source) == source
    assert with_cxx_linkage(source) == source


def test_c_linkage_goes() -> None:
    assert with_cxx_linkage(f'extern "C" {HEAD};').split() == f"{HEAD};".split()
    assert with_cxx_linkage(f'extern "C" {{\n{HEAD} {{}}\n}}') == f'extern "C++" {{\n{HEAD} {{}}\n}}'


def test_many_mentions_are_read_in_linear_time() -> None:
    started = time.perf_counter()
    assert not defines_launcher(f"{LAUNCHER}(" * 20_000)
    assert time.perf_counter() - started < 10.0
