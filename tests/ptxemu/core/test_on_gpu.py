"""What the emulator is tested against holds on a Hopper GPU: the same PTX, the same programs, the same expectations."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from gpu_driver import NoGpu, require_gpu, run_on_gpu
from ptx_machine import HEAD, Launch, run
from test_vectors import ILLEGAL_INSTRUCTION, STORE_OF_ONE_BLOCK, VECTORS, kernel_of, launch_of, wanted
from test_wgmma import DYNAMIC, FORMS, differs, hopper_slack, problem

from ptxemu.core.build import ensure_core
from ptxemu.files import default_cache_dir
from ptxemu.ptx.assembler import assemble
from ptxemu.toolkit import CudaToolkit

pytestmark = [pytest.mark.gpu, pytest.mark.nvcc]
PROGRAMS = Path(__file__).parents[1] / "program" / "programs"


@pytest.fixture(scope="module", autouse=True)
def gpu() -> None:
    try:
        require_gpu()
    except NoGpu as error:
        pytest.skip(str(error))


def test_vectors_hold() -> None:
    kernels = [kernel_of(name, body, len(expected)) for name, (body, expected) in VECTORS.items()]
    wrong = {}
    for name, ran in zip(VECTORS, run_on_gpu(HEAD, kernels, [launch_of(name) for name in VECTORS]), strict=True):
        if ran.failure or not np.array_equal(ran.arrays[0], wanted(name)):
            wrong[name] = ran.failure or ran.arrays[0].tolist()
    assert not wrong


def test_asynchronous_stores_need_a_cluster_of_several_blocks() -> None:
    launch = Launch("alone", [np.zeros((32, 1), np.uint32)])
    (ran,) = run_on_gpu(HEAD, [kernel_of("alone", STORE_OF_ONE_BLOCK, 1)], [launch])
    assert f"({ILLEGAL_INSTRUCTION})" in ran.failure


def test_products_hold(tmp_path: Path) -> None:
    """Within the bound of the form; how many elements have the emulator's bits goes to the file that is asked for."""
    kernels = [form.kernel() for form in FORMS]
    problems = [problem(form) for form in FORMS]
    launches = [one.launch for one in problems]
    module = tmp_path / "module"
    assemble(HEAD + DYNAMIC + "\n".join(kernels)).write(module)
    emulated = run(ensure_core(default_cache_dir()).library, module, launches)
    measured = run_on_gpu(HEAD + DYNAMIC, kernels, launches)
    assert [ran.failure for ran in measured if ran.failure] == []
    rows = []
    for form, one, here, there in zip(FORMS, problems, emulated.arrays, measured, strict=True):
        bits = np.uint16 if form.result == "f16" else np.uint32
        same = int((here[2].view(bits) == there.arrays[2].view(bits)).sum())
        rows.append(
            {
                "form": str(form),
                "differs": differs(form, one, there.arrays[2], slack=hopper_slack(form)),
                "same": same,
                "of": here[2].view(bits).size,
            }
        )
    if target := os.environ.get("PTXEMU_GPU_REPORT"):
        Path(target).write_text(json.dumps(rows, indent=1))
    assert [row["form"] for row in rows if row["differs"]] == []


CASES = {
    "tensor_maps": ("loads", "swizzles", "im2col", "clusters", "refusals", "unaligned"),
    "tensor_stores": ("apart", "guesses"),
    "tensor_path": ("ring", "staged"),
    "bulk_copies": ("ring", "library", "memcpy_async", "honest"),
    "ordinary": ("graph", "circle", "child", "boxes", "heap", "small_heap", "one_device"),
    "endings": ("pinned", "registered", "too_large"),
    "refused_calls": ("ignored", "asked", "fine"),
    "driver": ("text", "library", "errors", "mixed"),
    "driver_arrays": ("arrays", "boxes", "textures", "pyramid", "graphs", "captured"),
    "levels": ("mipmaps", "cubes", "faces", "layers", "borders"),
    "textures": ("plane", "pitched", "memory", "boxes", "gathered", "surfaces", "trapped"),
}
SIDE_BY_SIDE = 8
"""Programs that are built or run at a time: nvcc takes seconds, and so does a process until it has a context."""


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], dict[str, int]]]:
    """Exit codes of a program's cases; all programs are under way from the first one on that is asked for."""
    folder, nvcc = tmp_path_factory.mktemp("programs"), CudaToolkit.find().nvcc

    def end(program: Path, case: str) -> int:
        return subprocess.run([str(program), case], timeout=120, check=False).returncode

    def start(name: str) -> dict[str, Future[int]]:
        flags = ["-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "-o", str(folder / name), "-lcuda"]
        subprocess.run([str(nvcc), *flags, str(PROGRAMS / f"{name}.cu")], check=True)
        return {case: running.submit(end, folder / name, case) for case in CASES[name]}

    with ThreadPoolExecutor(SIDE_BY_SIDE) as running, ThreadPoolExecutor(SIDE_BY_SIDE) as building:
        started = {name: building.submit(start, name) for name in CASES}
        yield lambda name: {case: ended.result() for case, ended in started[name].result().items()}
        for pool in (building, running):
            pool.shutdown(wait=False, cancel_futures=True)


@pytest.mark.parametrize("name", CASES)
def test_programs_end_as_on_the_emulator(codes: Callable[[str], dict[str, int]], name: str) -> None:
    assert codes(name) == dict.fromkeys(CASES[name], 0)
