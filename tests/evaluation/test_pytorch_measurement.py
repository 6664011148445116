"""A row of PyTorch's times, made on the CPU: real modules and values, a clock that counts calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from budget_support import RELU_SLUG, reduced
from pytorch_device import Cpu
from torch._inductor.runtime.benchmarking import benchmarker
from torch._inductor.select_algorithm import AlgorithmSelectorCache
from torch._inductor.triton_bundler import TritonBundler

from kernelblaster.evaluation.timing.compile_ahead import Held, compile_ahead
from kernelblaster.evaluation.timing.pytorch_times import TorchMode
from kernelblaster.problems.problem import Precision, StandardWorkload
from kernelblaster.runs import pytorch_measurement
from kernelblaster.runs.pytorch_measurement import TimesItem, TorchMemoryFull, compile_modes, measure_times


def item(tmp_path: Path, *modes: TorchMode) -> TimesItem:
    problem = reduced(RELU_SLUG, tmp_path / "reduced")
    return TimesItem(problem, Precision.FP16, StandardWorkload.SMALL, modes, "digest", seconds=0.0)


def test_a_row_holds_times_floor_and_conditions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Cpu()

    def ahead(module: torch.nn.Module, inputs: Sequence[Any], mode: TorchMode, held: Held) -> Callable[..., object]:
        assert not device.holder, "compilers work off the lock"
        assert TritonBundler.is_enabled() is (mode is TorchMode.COMPILE), "what was chosen would be lost"
        return module

    monkeypatch.setattr(pytorch_measurement, "compile_ahead", ahead)
    modes = (TorchMode.EAGER, TorchMode.COMPILE, TorchMode.MAX_AUTOTUNE)
    row = measure_times(item(tmp_path, *modes), device)
    assert set(row.times) == set(modes)
    eager = row.times[TorchMode.EAGER]
    assert (eager.us, eager.wall_us, eager.launch_us, eager.exposed) == (10.0, 30.0, 5.0, 0)
    assert eager.low_us <= eager.us <= eager.high_us
    assert eager.samples >= 12
    assert row.floor_us is not None
    assert row.floor_us > 0
    assert row.settings is not None
    assert row.conditions is not None
    assert row.conditions.sm_mhz_low == 1980.0
    assert row.torch == torch.__version__
    assert type(row).model_validate_json(row.model_dump_json()) == row


def test_a_mode_that_fails_costs_itself_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> Callable[..., object]:
        raise TypeError("cannot trace")

    monkeypatch.setattr(pytorch_measurement, "compile_ahead", refuse)
    wanted = (TorchMode.EAGER, TorchMode.COMPILE, TorchMode.MAX_AUTOTUNE)
    row = measure_times(item(tmp_path, *wanted), Cpu())
    assert set(row.times) == {TorchMode.EAGER}
    assert "cannot trace" in row.failures[TorchMode.COMPILE]
    assert "cannot trace" in row.failures[TorchMode.MAX_AUTOTUNE]
    broken = measure_times(item(tmp_path, TorchMode.EAGER), Cpu(TorchMode.EAGER))
    assert broken.failures == {TorchMode.EAGER: "RuntimeError: no such mode"}


def test_compilers_work_off_the_lock_and_what_they_raise_shows_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    device, compiled = Cpu(), list[TorchMode]()

    def refuse(module: torch.nn.Module, inputs: Sequence[Any], mode: TorchMode, held: Held) -> Callable[..., object]:
        assert not device.holder
        compiled.append(mode)
        raise TypeError("cannot trace")

    monkeypatch.setattr(pytorch_measurement, "compile_ahead", refuse)
    compile_modes(item(tmp_path, *TorchMode), device)
    assert compiled == [mode for mode in TorchMode if mode is not TorchMode.EAGER]


def test_a_lack_of_memory_is_told_apart(tmp_path: Path) -> None:
    crowded = Cpu(TorchMode.EAGER, torch.OutOfMemoryError("CUDA out of memory"))
    with pytest.raises(TorchMemoryFull):
        measure_times(item(tmp_path, TorchMode.EAGER), crowded)


@pytest.mark.slow
def test_what_is_compiled_ahead_has_not_run_and_is_not_compiled_again() -> None:
    module, inputs = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()).eval(), [torch.randn(4, 8)]
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    call = compile_ahead(module, inputs, TorchMode.COMPILE, Cpu().held)
    with torch.inference_mode():
        torch.testing.assert_close(call(*inputs), module(*inputs))
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1


@pytest.mark.slow
def test_a_compiler_holds_the_device_while_it_times_what_it_chooses_among(monkeypatch: pytest.MonkeyPatch) -> None:
    device, timed, measure = Cpu(), list[bool](), AlgorithmSelectorCache.__dict__["benchmark_in_current_process"]

    def watched(*given: Any, **named: Any) -> Any:
        timed.append(device.holder)
        return measure.__get__(None, AlgorithmSelectorCache)(*given, **named)

    monkeypatch.setattr(AlgorithmSelectorCache, "benchmark_in_current_process", staticmethod(watched))
    patched = AlgorithmSelectorCache.__dict__["benchmark_in_current_process"]
    module, inputs = torch.nn.Linear(512, 512).eval(), [torch.randn(64, 512)]
    torch.compiler.reset()
    with torch._inductor.config.patch(freezing=True, force_disable_caches=True):
        call = compile_ahead(module, inputs, TorchMode.MAX_AUTOTUNE, device.held)
        assert timed == [True]
        assert not device.holder
        with torch.inference_mode():
            torch.testing.assert_close(call(*inputs), module(*inputs))
        assert timed == [True], "what is compiled measures nothing for itself"
    assert AlgorithmSelectorCache.__dict__["benchmark_in_current_process"] is patched, "all is as it was"
    assert "benchmark_gpu" not in vars(benchmarker)
