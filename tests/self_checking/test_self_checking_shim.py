"""The shim between a self-checking driver and the launcher: every known signature is forwarded."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.devices.base import NO_TENSORS
from kernelblaster.devices.build.self_checking import shim_source
from kernelblaster.devices.build.toolchain import Toolchain, ToolMissing
from kernelblaster.devices.harness.channel import Channel, PacketBuilder
from kernelblaster.devices.harness.job import job_packets
from kernelblaster.devices.harness.protocol import HarnessReply, HarnessRequest
from kernelblaster.paths import harness_include_dir

pytestmark = pytest.mark.nvcc
HERE = Path(__file__).parent
KINDS = {
    "void*": ("&here[{i}]", "a{i} == &here[{i}]"),
    "const void*": ("&here[{i}]", "a{i} == &here[{i}]"),
    "void**": ("&pointers[{i}]", "a{i} == &pointers[{i}]"),
    "const float*": ("&here[{i}]", "a{i} == &here[{i}]"),
    "int": ("-{i} - 1", "a{i} == -{i} - 1"),
    "int64_t": ("(int64_t{{1}} << 40) + {i}", "a{i} == (int64_t{{1}} << 40) + {i}"),
    "float": ("{i}.5f", "a{i} == {i}.5f"),
    "double": ("{i}.25", "a{i} == {i}.25"),
    "bool": ("{i} % 2 == 0", "a{i} == ({i} % 2 == 0)"),
    "const std::vector<int64_t>&": ("{{7, {i}}}", "a{i}.size() == 2 && a{i}[1] == {i}"),
    "std::vector<int64_t>": ("{{8, {i}}}", "a{i}.size() == 2 && a{i}[0] == 8"),
}
"""Type of a parameter -> what a driver passes as the i-th, and how the launcher knows it again."""
SIGNATURES = (
    ("void*", "void*", "int64_t", "int64_t"),
    ("void*", "const void*", "int", "float", "bool"),
    ("void**", "void*", "double"),
    ("void*", "const std::vector<int64_t>&", "std::vector<int64_t>", "const float*"),
    ("void*",) * 30 + ("int", "int64_t", "float", "double", "bool", "const void*", "void**", "int"),
)


def launchers() -> str:
    """Five launchers in namespaces of their own, and a driver that calls each twice."""
    text, calls = "", ""
    for number, types in enumerate(SIGNATURES):
        parameters = ", ".join(f"{kind} a{i}" for i, kind in enumerate(types))
        known = " && ".join(KINDS[kind][1].format(i=i) for i, kind in enumerate(types))
        text += f"namespace s{number} {{ void launch({parameters}) {{ calls += 1; equal += {known}; }} }}\n"
        arguments = ", ".join(KINDS[kind][0].format(i=i) for i, kind in enumerate(types))
        forward = f"kb::self_checking::Forward<&s{number}::launch>::kb_arrival"
        calls += f"    for (int n = 0; n < 2; ++n) {forward}({arguments});\n"
    head = "static float here[64]; static void* pointers[64]; static int calls, equal;\nvoid launch(void*);\n"
    say = 'kb_driver_printf("%d ", calls); kb_driver_cout << equal << std::endl; kb_driver_puts("passed");'
    stop = 'std::fputs("by a stream of C\\n", kb_driver_stdout); kb_driver_exit(3); return 0;'
    main = (
        f"extern FILE* kb_driver_stdout;\nint kb_self_checking_main(int, char**) {{\n{calls}    {say}\n    {stop}\n}}\n"
    )
    shim = f"{text}KB_SELF_CHECKING_DRIVER(launch)\nvoid launch(void*) {{}}\n"
    return f"#include <kernelblaster/self_checking.hpp>\n{head}{shim}{main}"


@pytest.fixture(scope="module")
def flags() -> list[str]:
    try:
        tools = Toolchain.find()
    except ToolMissing as error:
        pytest.skip(error.message)
    return [f"-I{path}" for path in (harness_include_dir(), *tools.include_dirs)]


def test_every_kind_of_parameter_arrives_as_it_was_passed(flags: list[str], tmp_path: Path) -> None:
    """The first call is repeated once for `call 0` and once to be judged; the others are passed on."""
    (tmp_path / "shim.cpp").write_text(launchers())
    sources = [tmp_path / "shim.cpp", HERE / "host_runtime.cpp", HERE.parent / "devices" / "host_cudart.cpp"]
    build = ["g++", "-std=c++17", *flags, *map(str, sources), "-o", str(tmp_path / "program"), "-lpthread"]
    subprocess.run(build, check=True, timeout=200)
    # What the parameters point to is no allocation here: nothing is kept of it.
    environment = {**os.environ, "HOST_NO_RANGES": "1"}
    deadline = time.monotonic() + 60
    with Channel() as channel:
        started = subprocess.Popen([str(tmp_path / "program")], stdin=channel.theirs.fileno(), env=environment)
        channel.theirs.close()
        channel.send_key(deadline)
        for message, _ in job_packets(NO_TENSORS):
            channel.send(message, deadline=deadline)
        channel.send(PacketBuilder(HarnessRequest.CALL).u8(0), deadline=deadline)
        channel.send(PacketBuilder(HarnessRequest.QUIT), deadline=deadline)
        ready, called, judged = (channel.receive(deadline) for _ in range(3))
        assert started.wait(60) == 0
    assert ready is not None
    assert called is not None
    assert judged is not None
    assert (ready.u8(), called.u8(), judged.u8()) == (HarnessReply.READY, HarnessReply.CALLED, HarnessReply.JUDGED)
    assert (judged.i32(), judged.u64(), judged.u64()) == (3, 0, 0)
    calls = 2 * len(SIGNATURES) + 1
    assert judged.lines() == f"{calls} {calls}\npassed\nby a stream of C\n"


@pytest.mark.parametrize(
    "declared",
    [
        'extern "C" void launch_gpu_implementation(void*, void*, int64_t, float = 1.0f);',
        "void launch_gpu_implementation(void* o, const std::vector<int64_t>& shape, // rows\n void** w, bool causal);",
    ],
)
def test_the_shim_of_a_declaration_compiles(flags: list[str], tmp_path: Path, declared: str) -> None:
    (tmp_path / "shim.cpp").write_text(shim_source(launcher_declaration(declared)))
    command = ["g++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", *flags, str(tmp_path / "shim.cpp")]
    subprocess.run(command, check=True, timeout=100)
