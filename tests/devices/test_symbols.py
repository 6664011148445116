"""The audit of object files, on real objects from the host compiler."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from kernelblaster.devices.build import elf
from kernelblaster.devices.build.elf import Symbols, read_symbols
from kernelblaster.devices.build.symbols import demangle, match_launcher, plain_name
from kernelblaster.devices.build.toolchain import Toolchain
from kernelblaster.devices.failures import BuildFailure, BuildFailureKind

WANTED = "_Z25launch_gpu_implementationPvS_lf"
DECLARATION = "void launch_gpu_implementation(void* output, void* x, int64_t n, float eps);"
Compile = Callable[[str], Symbols]


@pytest.fixture
def symbols_of(toolchain: Toolchain, tmp_path: Path) -> Compile:
    def build(source: str) -> Symbols:
        (tmp_path / "a.cpp").write_text(source)
        subprocess.run(
            [str(toolchain.host_compiler), "-std=c++17", "-O1", "-c", "a.cpp", "-o", "a.o"], cwd=tmp_path, check=True
        )
        return read_symbols(tmp_path / "a.o")

    return build


def test_definitions_and_requests_are_told_apart(symbols_of: Compile) -> None:
    found = symbols_of("int other(); int mine() { return other(); } inline int weak() { return 1; } int (*p)() = weak;")
    assert found.strong == {"_Z4minev", "p"}
    assert found.defined == {"_Z4minev", "p", "_Z4weakv"}
    assert found.undefined == {"_Z5otherv"}


@pytest.mark.parametrize(
    ("definition", "symbol"),
    [
        ("void launch_gpu_implementation(void*, void*, long, float) {}", WANTED),
        ('extern "C" void launch_gpu_implementation(void*, void*, long, float) {}', "launch_gpu_implementation"),
        (
            "void launch_gpu_implementation(float*, const void*, long, float) {}",
            "_Z25launch_gpu_implementationPfPKvlf",
        ),
        (
            "void launch_gpu_implementation(void*, void*, long long, float) {}",
            "_Z25launch_gpu_implementationPvS_xf",
        ),
    ],
)
def test_compatible_launchers_match(toolchain: Toolchain, symbols_of: Compile, definition: str, symbol: str) -> None:
    match = match_launcher(toolchain, symbols_of(definition), WANTED, DECLARATION)
    assert (match.symbol, match.wanted) == (symbol, WANTED)


@pytest.mark.parametrize(
    "definition",
    [
        "void launch_gpu_implementation(void*, void*, int, float) {}",
        "void launch_gpu_implementation(void*, void*, long, double) {}",
        "void launch_gpu_implementation(void*, void*, long) {}",
        "void launch_gpu_implementation_v2(void*, void*, long, float) {}",
        "int unrelated;",
    ],
)
def test_a_wrong_signature_shows_the_right_one(toolchain: Toolchain, symbols_of: Compile, definition: str) -> None:
    with pytest.raises(BuildFailure) as failure:
        match_launcher(toolchain, symbols_of(definition), WANTED, DECLARATION)
    assert failure.value.kind is BuildFailureKind.LINK
    assert DECLARATION in failure.value.reason


@pytest.mark.parametrize("others", [[], ["k" * 2000]], ids=["few names", "many"])
def test_a_short_name_that_stands_for_gigabytes_is_left_as_it_is(toolchain: Toolchain, others: list[str]) -> None:
    """Each parameter is a template over twice the one before: 2 to the power of 30 words."""
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
    name = "_Z1f1aIiiE" + "".join(f"S_IS{digit}_S{digit}_E" for digit in digits[:30])
    assert demangle(toolchain, [name, *others]) == [name, *others]
    assert demangle(toolchain, ["_Z1fv", "k", *others]) == ["f()", "k", *others]


def test_the_ending_of_a_very_long_name_is_not_looked_for() -> None:
    long = "a" + "_ptsz" * 1_000_000 + "!"
    assert plain_name(long) == long
    assert plain_name("cudaStreamCreateWithFlags_ptsz") == "cudaStreamCreateWithFlags"


def test_an_object_with_names_without_end_is_not_read(
    toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.c").write_text("".join(f"int a_long_name_{n};" for n in range(1000)))
    subprocess.run([str(toolchain.host_compiler), "-x", "c", "-c", "a.c", "-o", "a.o"], cwd=tmp_path, check=True)
    assert len(read_symbols(tmp_path / "a.o").defined) == 1000
    monkeypatch.setattr(elf, "_MOST_NAME_BYTES", 10_000)
    with pytest.raises(BuildFailure) as caught:
        read_symbols(tmp_path / "a.o")
    assert caught.value.kind is BuildFailureKind.LINK
