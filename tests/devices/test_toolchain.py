from __future__ import annotations

import stat
from pathlib import Path

import pytest

from kernelblaster.devices.build.toolchain import SearchPath, Toolchain, ToolMissing, find_ncu, find_nvccs
from kernelblaster.devices.facts import Library
from kernelblaster.paths import how_to_install

SYSTEM = (Path("/usr/local/bin"), Path("/usr/bin"), Path("/bin"))


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def toolkit(root: Path, *, lib: str = "lib64", version: str = "13.0.88") -> Path:
    """A directory that answers like a CUDA toolkit."""
    (root / "include").mkdir(parents=True)
    (root / "include" / "cuda_runtime_api.h").touch()
    (root / lib).mkdir()
    (root / lib / "libcudart_static.a").touch()
    answers = (
        f'case "$1" in --version) echo "Cuda compilation tools, release x, V{version}";;\n'
        f'--dryrun) echo "#\\$ TOP={root}/bin/.." >&2; echo \'#$ INCLUDES="-I{root}/bin/../include"  \' >&2;;\nesac'
    )
    script(root / "bin" / "nvcc", answers)
    return root


def search(*, path: tuple[Path, ...] = (), homes: tuple[Path, ...] = (), site: tuple[Path, ...] = ()) -> SearchPath:
    return SearchPath(path=path, cuda_homes=homes, site_packages=site)


def test_path_comes_before_homes_before_wheels(tmp_path: Path) -> None:
    on_path, home, wheels = toolkit(tmp_path / "a"), toolkit(tmp_path / "b"), tmp_path / "site"
    wheel = toolkit(wheels / "nvidia" / "cu13", lib="lib")
    assert find_nvccs(search(path=(on_path / "bin",), homes=(home,), site=(wheels,)))[0] == on_path / "bin" / "nvcc"
    assert find_nvccs(search(homes=(home,), site=(wheels,)))[0] == home / "bin" / "nvcc"
    assert find_nvccs(search(site=(wheels,)))[0] == wheel / "bin" / "nvcc"


def test_no_nvcc_says_what_to_install() -> None:
    with pytest.raises(ToolMissing) as error:
        find_nvccs(search())
    assert how_to_install("nvcc") in error.value.hint


def test_a_wheel_layout_has_lib_and_no_shared_runtime(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "site-packages" / "nvidia" / "cu13", lib="lib")
    found = Toolchain.find(search(path=SYSTEM[1:], site=(tmp_path / "site-packages",)))
    assert found.root == root
    assert found.cudart_static == root / "lib" / "libcudart_static.a"
    assert found.cudart_link_args[0] == str(found.cudart_static)
    assert found.version == (13, 0, 88)


def test_a_wrapper_script_is_seen_through(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda")
    script(tmp_path / "bin" / "nvcc", f'exec {root}/bin/nvcc "$@"')
    found = Toolchain.find(search(path=(tmp_path / "bin", *SYSTEM[1:])))
    assert found.nvcc == tmp_path / "bin" / "nvcc"
    assert found.root == root
    assert found.include_dirs == (root / "include",)


BROKEN = {"words": "echo cannot find libfoo.so >&2; exit 127", "silence": "exit 1", "no program": "\x7fELF\x02\x01\x01"}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_nvcc_is_called_broken_with_what_it_printed(tmp_path: Path, how: str) -> None:
    nvcc = script(tmp_path / "bin" / "nvcc", BROKEN[how])
    if how == "no program":
        nvcc.write_text(BROKEN[how])
    with pytest.raises(ToolMissing) as error:
        Toolchain.find(search(path=(nvcc.parent, *SYSTEM[1:])))
    words = {"words": "is broken", "silence": "printed: nothing", "no program": "does not run"}
    assert words[how] in error.value.message
    assert ("libfoo.so" in error.value.message) == (how == "words")
    assert str(nvcc) in error.value.message
    assert "mend" in error.value.hint


def test_the_next_toolkit_is_taken_for_a_broken_one_and_that_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = script(tmp_path / "bin" / "nvcc", "echo cannot find libfoo.so; exit 127")
    empty, sound = toolkit(tmp_path / "a"), toolkit(tmp_path / "b")
    (empty / "include" / "cuda_runtime_api.h").unlink()
    for _ in range(2):
        found = Toolchain.find(search(path=(broken.parent, *SYSTEM[1:]), homes=(empty, sound)))
        assert found.root == sound
    assert [("libfoo.so" in line, "cuda_runtime_api.h" in line) for line in caplog.messages] == [
        (True, False),
        (False, True),
    ]
    assert all(f"{sound}/bin/nvcc" in line for line in caplog.messages)


def test_a_toolkit_without_headers_is_refused(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda")
    (root / "include" / "cuda_runtime_api.h").unlink()
    with pytest.raises(ToolMissing, match=r"cuda_runtime_api\.h"):
        Toolchain.find(search(path=SYSTEM[1:], homes=(root,)))


def test_a_missing_static_runtime_is_named(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda")
    (root / "lib64" / "libcudart_static.a").unlink()
    with pytest.raises(ToolMissing, match=r"libcudart_static\.a"):
        Toolchain.find(search(path=SYSTEM[1:], homes=(root,)))


def test_optional_tools_may_be_absent(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda")
    found = Toolchain.find(search(path=SYSTEM[1:], homes=(root,)))
    assert found.cuobjdump is None
    script(root / "bin" / "cuobjdump", "")
    script(root / "nsight-compute-2025.3" / "ncu", "")
    script(root / "compute-sanitizer" / "compute-sanitizer", "")
    found = Toolchain.find(search(path=SYSTEM[1:], homes=(root,)))
    assert found.cuobjdump == root / "bin" / "cuobjdump"
    assert found.sanitizer == root / "compute-sanitizer" / "compute-sanitizer"
    assert find_ncu(search(homes=(root,))) == root / "nsight-compute-2025.3" / "ncu"


def test_libraries_are_found_in_wheels_and_missed_with_a_hint(tmp_path: Path) -> None:
    root = toolkit(tmp_path / "cuda")
    wheel = tmp_path / "site" / "nvidia" / "cudnn"
    for file in ("include/cudnn.h", "lib/libcudnn.so.9"):
        (wheel / file).parent.mkdir(parents=True, exist_ok=True)
        (wheel / file).touch()
    found = Toolchain.find(search(path=SYSTEM[1:], homes=(root,), site=(tmp_path / "site",)))
    library = found.library(Library.CUDNN)
    assert library.include_dirs == (wheel / "include",)
    assert library.link_args == (str(wheel / "lib" / "libcudnn.so.9"), f"-Wl,-rpath,{wheel / 'lib'}")
    with pytest.raises(ToolMissing, match="cutlass"):
        found.library(Library.CUTLASS)


def test_cuda_home_comes_before_installed_toolkits(tmp_path: Path) -> None:
    found = SearchPath.current({"CUDA_HOME": str(tmp_path), "PATH": "/usr/bin::/bin"})
    assert found.cuda_homes[0] == tmp_path
    assert found.path == (Path("/usr/bin"), Path("/bin"))


@pytest.mark.nvcc
def test_this_machines_toolchain_is_complete(toolchain: Toolchain) -> None:
    assert toolchain.version >= (12, 0, 0)
    assert toolchain.cudart_static.stat().st_size > 0
    assert any((path / "cuda_fp16.h").is_file() for path in toolchain.include_dirs)
