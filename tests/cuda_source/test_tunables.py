"""Tunables: what a source declares, and the variants that follow from it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.cuda_source.tunables import BadTunable, tunables, variants

NAMES = st.sampled_from(["BM", "BN", "STAGES", "_x9"])
VALUES = st.lists(st.integers(1, 512).map(str), min_size=1, max_size=5, unique=True)


def source_of(declared: dict[str, list[str]]) -> str:
    lines = [
        f"// TUNE {name} {' '.join(values)}\n#define {name} {values[0]}  // a tile" for name, values in declared.items()
    ]
    return "\n".join([*lines, 'const char* text = "// TUNE NO 1 2";', "__global__ void k() { int x = BM; }\n"])


@given(st.dictionaries(NAMES, VALUES, min_size=1), st.integers(2, 40), st.integers(0, 3))
def test_variants_are_distinct_bounded_and_differ_in_their_values_alone(
    declared: dict[str, list[str]], most: int, seed: int
) -> None:
    source = source_of(declared)
    found = variants(source, most, seed)
    every = math.prod(len(values) for values in declared.values())
    assert found[0].source == source
    assert len({one.source for one in found}) == len(found) == min(most, every)
    for one in found:
        written = {tunable.name: tunable.written for tunable in tunables(one.source)}
        assert written == one.values
        assert all(value in declared[name] for name, value in one.values.items())
        restored = [line for line in one.source.splitlines() if not line.startswith("#define")]
        assert restored == [line for line in source.splitlines() if not line.startswith("#define")]
    assert found == variants(source, most, seed)


def test_a_source_that_declares_nothing_has_no_variants() -> None:
    assert variants("#define BM 1\n", 8, 0) == []


@pytest.mark.parametrize(
    "source",
    [
        "// TUNE BM 1 2\n",
        "// TUNE BM 1 2\n#define BM 1\n#undef BM\n#define BM 2\n",
        "// TUNE BM 1;system() 2\n#define BM 1\n",
        "// TUNE BM " + " ".join(map(str, range(99))) + "\n#define BM 1\n",
        "// TUNE BM 1 2\n#define BM(x) 1\n",
    ],
)
def test_what_cannot_be_followed_is_refused_with_its_name(source: str) -> None:
    with pytest.raises(BadTunable, match="BM"):
        tunables(source)


def test_a_commented_out_definition_is_none() -> None:
    assert tunables("// TUNE BM 1 2\n// #define BM 7\n#define BM 1\n")[0].written == "1"
