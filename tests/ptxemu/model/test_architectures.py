"""The data file: every GPU complete, plausible and sourced."""

from __future__ import annotations

import pytest

from ptxemu.errors import InvalidInput
from ptxemu.model.architecture import gpu_model, gpu_names


@pytest.mark.parametrize("name", gpu_names())
def test_figures_of_a_gpu_agree_with_each_other(name: str) -> None:
    model = gpu_model(name)
    gpu, architecture = model.gpu, model.architecture
    assert 0.8 <= gpu.dram_copy / gpu.dram_peak < 1
    assert gpu.l2_bandwidth > gpu.dram_copy
    assert architecture.latency.l1 < architecture.latency.l2 < architecture.latency.dram
    fp32 = gpu.sms * architecture.lanes.fma * 2 * model.clock_hz
    assert fp32 == pytest.approx(gpu.peak_flops["fp32"], rel=0.2)
    assert 128 < model.tensor_fma_per_clk < 4200
    assert gpu.source
    assert architecture.source


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("a100", "sm_80"),
        ("a6000", "sm_86"),
        ("l40s", "sm_89"),
        ("rtx4090", "sm_89"),
        ("H100", "sm_90"),
        ("H200", "sm_90"),
        ("b200", "sm_100"),
    ],
)
def test_names_choose_the_architecture(name: str, arch: str) -> None:
    assert gpu_model(name).gpu.arch == arch


def test_unknown_gpu_says_which_are_known() -> None:
    with pytest.raises(InvalidInput) as caught:
        gpu_model("v100")
    assert "h200" in caught.value.hint


def test_facts_say_that_nothing_is_real() -> None:
    facts = gpu_model("h200").facts("13.0.88")
    assert facts.kind == "emulated"
    assert "emulated" in facts.name
    assert facts.compile_arch == "sm_90a"
    assert facts.shared_per_block == 227 * 1024
    assert facts.cuda_version == "13.0.88"


def test_runtime_is_told_the_same_figures() -> None:
    figures = dict(line.split(" ", 1) for line in gpu_model("l40s").figures().splitlines())
    assert figures["name"] == "NVIDIA L40S (emulated)"
    assert (figures["major"], figures["minor"]) == ("8", "9")
    assert figures["sm_count"] == "142"
    assert figures["threads_per_sm"] == "1536"


def test_blackwell_has_two_digits_of_major() -> None:
    assert "major 10\nminor 0\n" in gpu_model("b200").figures()
