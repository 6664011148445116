from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.devices.build.source_policy import check_source, forgive, forgotten_headers, without_comments
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind


@pytest.mark.parametrize(
    "source",
    [
        "#include </etc/passwd>",
        '#include "/tmp/other.cu"',
        '#include "../driver.o"',
        '#include "a/../../b.h"',
        "#include <~/key>",
        "  #  include   </etc/passwd>",
        "#inc\\\nlude </etc/passwd>",
        "%:include </etc/passwd>",
        '#define H "/etc/passwd"\n#include H',
        "/* x */ #include </etc/passwd>",
        "#include /* hidden */ </etc/passwd>",
        '#embed "/etc/passwd"',
        "#include_next <cuda_runtime.h>",
        'asm(".incbin \\"/etc/passwd\\"");',
        'asm(".inc" "bin \\"/etc/passwd\\"");',
        'asm(".\\x69ncbin \\"/etc/passwd\\"");',
        'const char* job = "/proc/self/cmdline";',
        'const char* q = "\\"/*"; \n#include </etc/passwd>\n//*/',
    ],
)
def test_reaching_for_files_is_refused(source: str) -> None:
    with pytest.raises(BuildFailure) as failure:
        check_source(source)
    assert failure.value.kind is BuildFailureKind.POLICY


@pytest.mark.parametrize(
    "source",
    [
        "#include <kernelblaster/scalar.cuh>\n#include <cuda_fp16.h>\n#include <cub/cub.cuh>",
        '#include "cooperative_groups.h"  // for grid sync',
        "// #include </etc/passwd>",
        "/*\n#include </etc/passwd>\n*/",
        'const char* text = "#include </etc/passwd>";',
        "#if 0\n#error include\n#endif",
        'R"(\n // not a comment)"; #define a 1',
    ],
)
def test_ordinary_sources_pass(source: str) -> None:
    check_source(source)


def test_the_refused_line_is_named() -> None:
    with pytest.raises(BuildFailure) as failure:
        check_source("int a;\n/* two\nlines */\n#include </x>\n")
    assert failure.value.log.startswith("line 4:")


@given(st.text(alphabet="/*\"\\\n#a '", max_size=60))
def test_blanking_comments_keeps_every_line(source: str) -> None:
    assert without_comments(source).count("\n") == source.count("\n")
    assert len(without_comments(source)) == len(source)


@pytest.mark.parametrize(
    "decoration", ["inline ", "static inline ", "static ", "__forceinline__ ", 'extern "C" inline ']
)
def test_a_decorated_launcher_becomes_visible(decoration: str) -> None:
    forgiven = forgive(f"{decoration}void launch_gpu_implementation(void* o) {{}}")
    assert "inline" not in forgiven
    assert "static" not in forgiven
    assert "void launch_gpu_implementation(void* o) {}" in forgiven


def test_other_functions_keep_their_decoration() -> None:
    source = "static inline void helper() {}\nvoid launch_gpu_implementation(void* o) {}"
    assert forgive(source) == source


def test_forgotten_headers_are_named_once_used_and_not_included() -> None:
    assert forgotten_headers('std::vector<int> v; printf("x");') == ["vector", "cstdio"]
    assert forgotten_headers("#include <vector>\nstd::vector<int> v;") == []
    assert forgotten_headers("// std::vector\n") == []
