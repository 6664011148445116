from __future__ import annotations

from kernelblaster.devices.build.forgotten_headers import forgotten_headers


def test_forgotten_headers_are_named_once_used_and_not_included() -> None:
    assert forgotten_headers('std::vector<int> v; printf("x");') == ["vector", "cstdio"]
    assert forgotten_headers("#include <vector>\nstd::vector<int> v;") == []
    assert forgotten_headers("// std::vector\n") == []
