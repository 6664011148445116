"""What kernels are called where there is little room."""

from __future__ import annotations

import pytest

from kernelblaster.devices.profiles import short_name


@pytest.mark.parametrize(
    ("signature", "name"),
    [
        ("relu(__half *, const __half *, long)", "relu"),
        ("relu", "relu"),
        ("void scan<float, (int)4>(float *, int)", "scan"),
        (
            "void cub::detail::scan::DeviceScanKernel<cub::policy<int, (bool)1>, std::plus<void>>(T1, T2)",
            "DeviceScanKernel",
        ),
        ("(anonymous namespace)::part(float *)", "part"),
        ("void <unnamed>::part<__half>(float *)", "part"),
        ("void apply<(anonymous namespace)::Sum>(void (*)(int))", "apply"),
        ("", ""),
    ],
)
def test_a_kernel_is_called_as_in_its_source(signature: str, name: str) -> None:
    assert short_name(signature) == name
