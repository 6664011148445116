"""Problem directories made for tests."""

from __future__ import annotations

from pathlib import Path

REFERENCE = """
import torch

SIZES = {"small": {"n": 37}, "medium": {"n": 400}, "full": {"n": 4000}}
SCALARS = {"factor": 2.5}


class Model(torch.nn.Module):
    def forward(self, x):
        return SCALARS["factor"] * x * x


def get_inputs(size="full"):
    return [torch.randn(SIZES[size]["n"])]


def get_init_inputs(size="full"):
    return []
"""
DRIVER = """
#include <kernelblaster/driver.hpp>
void launch_gpu_implementation(void* output, void* x, int64_t n, float factor);
static void call(kb::Driver& d) {
    launch_gpu_implementation(d.output("output"), d.input("x"), d.size("n"), d.scalar("factor"));
}
KB_DRIVER(call)
"""
INIT = "void launch_gpu_implementation(void* output, void* x, int64_t n, float factor) {}\n"

FOREIGN_DRIVER = """
#include <torch/torch.h>
#include "cuda_model.cuh"
// void launch_gpu_implementation(int not_this_one);
extern "C" void launch_gpu_implementation(
    void* output, const void* input,  // the tensors
    const std::vector<int64_t>& shape, double slope = 0.1);
int main() {
    launch_gpu_implementation(nullptr, nullptr, {1});
    std::cout << "passed" << std::endl;
}
"""


def write_problem(
    directory: Path, *, reference: str = REFERENCE, driver: str = DRIVER, init: str | None = INIT
) -> Path:
    """Write a problem's files; `init` None leaves init.cu out."""
    directory.mkdir(parents=True)
    (directory / "reference.py").write_text(reference)
    (directory / "driver.cpp").write_text(driver)
    if init is not None:
        (directory / "init.cu").write_text(init)
    return directory
