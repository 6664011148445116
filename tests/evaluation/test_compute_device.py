"""Where references are computed: few elements on the host, also beside a GPU."""

from __future__ import annotations

import pytest
import torch

from kernelblaster.evaluation.inputs.tensors import compute_device


@pytest.mark.parametrize(("elements", "kind"), [(None, "cuda"), (1000, "cpu"), (1 << 28, "cuda")])
def test_a_gpu_computes_what_is_large(elements: int | None, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert compute_device(elements).type == kind


def test_without_a_gpu_the_host_computes_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert compute_device(1 << 28).type == "cpu"
