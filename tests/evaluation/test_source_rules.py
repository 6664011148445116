from __future__ import annotations

import pytest

from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.evaluation.integrity.source_rules import check_source


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
        "# /*\n*/ include </etc/passwd>",
        "#inc\\ \nlude </etc/passwd>",
        "#if 0\ndon't /*\n#endif\n#include </etc/passwd>\n// */",
        "int a = 1'000; /* ' */\n#include </etc/passwd>\n// */",
        "// \\\\\n\n#include </etc/passwd>",
        "#if __has_include(</*>)\n#endif\n#include </etc/passwd>\n// */",
        "#if __has_include(</etc/passwd>)\n#endif",
        "#if 0\n#include <'>\n#endif",
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
        "#if defined(__has_include) && __has_include(<cuda_bf16.h>)\n#include <cuda_bf16.h>\n#endif",
        "#if 0\ndon't\n#endif",
    ],
)
def test_ordinary_sources_pass(source: str) -> None:
    check_source(source)


def test_the_refused_line_is_named() -> None:
    with pytest.raises(BuildFailure) as failure:
        check_source("int a;\n/* two\nlines */\n#include </x>\n")
    assert failure.value.log.startswith("line 4:")
