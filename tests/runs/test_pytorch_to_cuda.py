"""The trial of first kernels for PyTorch modules: prompts and replies as files, and the page of what came of them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

from pytorch_to_cuda import MOST_REPLIES, Attempt, ModuleResult, Optimised, Results, Trial, main, page, write_results

MODULE = """import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) * 7

rows = 33

def get_inputs():
    return [torch.randn(rows, 20)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "seven.py"
    path.write_text(MODULE)
    return path


def test_a_reply_is_taken_judged_and_its_failure_asked_about(tmp_path: Path, module: Path) -> None:
    work = tmp_path / "work"
    trial = Trial(module, work, ("--device", "emulated", "--precision", "fp16"))
    assert trial.step().state == "waiting"
    assert "torch.relu(x) * 7" in (work / "prompts" / "seven.0.txt").read_text()
    (work / "replies").mkdir()
    (work / "replies" / "seven.0.txt").write_text("I would rather not.")
    main(["--work", str(work), "--modules", str(module), "--page", str(tmp_path / "docs" / "page.md")])
    again = Results.model_validate_json((tmp_path / "docs" / "page.json").read_text()).modules[0]
    assert (again.state, [one.verdict for one in again.attempts]) == ("waiting", ["unusable_reply"])
    prompt = (work / "prompts" / "seven.1.txt").read_text()
    assert "I would rather not." in prompt
    assert "cannot be used" in prompt
    assert (tmp_path / "docs" / "page" / "seven.0.txt").read_text() == "I would rather not."
    assert trial.step().attempts == again.attempts, "nothing is asked or judged twice"


def test_what_cannot_be_a_problem_is_told(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("import torch\n")
    found = Trial(path, tmp_path / "work", ("--device", "emulated")).step()
    assert found.state == "failed"
    assert "Model" in found.message


def test_the_page_counts_repairs_and_keeps_what_was_wrong(tmp_path: Path) -> None:
    right, wrong = Attempt(verdict="correct", reason=""), Attempt(verdict="wrong_values", reason="row 3")
    modules = [
        ModuleResult(module="one", state="correct", attempts=[right]),
        ModuleResult(module="two", state="correct", attempts=[wrong, right]),
        ModuleResult(module="three", state="given up", attempts=[wrong] * MOST_REPLIES),
        ModuleResult(module="four", state="waiting", attempts=[]),
    ]
    results = Results(device="emulated", precision="fp16", authors="three people", modules=modules)
    text = "\n".join(page(results, "kept"))
    assert "**2 of 3 modules became correct**: 1 after 0 repairs, 1 after 1 repair." in text
    assert "Not answered to the end: four." in text
    assert "[wrong_values](kept/two.0.txt), [correct](kept/two.1.txt)" in text
    assert "- two, reply 0, wrong_values: row 3" in text
    (tmp_path / "replies").mkdir()
    with pytest.raises(FileNotFoundError):
        write_results(results, tmp_path, tmp_path / "page.md")


def test_the_page_shows_what_the_search_made_of_first_kernels() -> None:
    right = Attempt(verdict="correct", reason="")
    faster = Optimised(start_us=42.4, final_us=3.75, speedup=11.3, replies=2, techniques=["tiling: faster"])
    modules = [
        ModuleResult(module="one", state="correct", attempts=[right], optimised=faster),
        ModuleResult(module="two", state="correct", attempts=[right], optimised=Optimised(start_us=5.0, replies=1)),
        ModuleResult(module="three", state="correct", attempts=[right]),
    ]
    results = Results(device="emulated", precision="fp16", authors="three people", modules=modules)
    text = "\n".join(page(results, "kept"))
    assert "| one | 42.4 | 3.8 | 11.30x | [1](kept/one.1.txt), [2](kept/one.2.txt) | tiling: faster |" in text
    assert "| two | 5.0 | - | nothing was faster |" in text
    assert "modelled" in text.partition("optimisation stage")[2]
    assert "three" not in text.partition("optimisation stage")[2]
    plain = Results(device="emulated", precision="fp16", authors="three people", modules=modules[2:])
    assert "optimisation" not in "\n".join(page(plain, "kept"))


@pytest.mark.slow
@pytest.mark.nvcc
def test_a_search_goes_on_from_the_first_kernel(tmp_path: Path, module: Path) -> None:
    slow = "for (int64_t i = 0; i < n; ++i)"
    fast = "if (const int64_t i = blockIdx.x * int64_t(blockDim.x) + threadIdx.x; i < n)"
    given = tmp_path / "given"
    given.mkdir()
    for number, (loop, launch) in enumerate(((slow, "1, 1"), (fast, "unsigned((n + 127) / 128), 128"))):
        (given / f"seven.{number}.txt").write_text(
            "```cuda\n#include <kernelblaster/scalar.cuh>\n"
            "__global__ void seven(scalar_t* y, const scalar_t* x, int64_t n) {\n"
            f"    {loop} y[i] = from_float(fmaxf(to_float(x[i]), 0.0f) * 7.0f);\n}}\n"
            "void launch_gpu_implementation(void* output, void* x, int64_t rows) {\n    const int64_t n = 20 * rows;\n"
            f"    seven<<<{launch}>>>(static_cast<scalar_t*>(output), static_cast<const scalar_t*>(x), n);\n}}\n```\n"
        )
    trial = Trial(module, tmp_path / "work", ("--device", "emulated", "--precision", "fp16"), steps=1, given=given)
    found = trial.step()
    assert [one.verdict for one in found.attempts] == ["correct"]
    assert found.optimised is not None
    assert found.optimised.replies == 1
    assert found.optimised.speedup is not None
    assert found.optimised.speedup > 2
    assert trial.step() == found, "nothing is asked or judged twice"
