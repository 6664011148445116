from __future__ import annotations

import textwrap

import pytest

from kernelblaster.errors import ProblemError
from kernelblaster.paths import data_dir
from kernelblaster.problems.families import OpFamily, family_of, family_of_driver, family_of_source

SHIPPED = {
    "level1/001": OpFamily.MATMUL,
    "level1/004": OpFamily.MATVEC,
    "level1/012": OpFamily.ELEMENTWISE,
    "level1/019": OpFamily.ELEMENTWISE,
    "level1/023": OpFamily.SOFTMAX,
    "level1/026": OpFamily.ELEMENTWISE,
    "level1/036": OpFamily.NORMALIZATION,
    "level1/040": OpFamily.NORMALIZATION,
    "level1/042": OpFamily.POOLING,
    "level1/047": OpFamily.REDUCTION,
    "level1/089": OpFamily.SCAN,
    "level1/095": OpFamily.LOSS,
    "level2/001": OpFamily.FUSED_MATMUL,
    "level2/012": OpFamily.FUSED_MATMUL,
    "level2/059": OpFamily.FUSED_MATMUL,
    "level2/086": OpFamily.FUSED_MATMUL,
    "level2/099": OpFamily.FUSED_MATMUL,
    "level3/001": OpFamily.MLP,
    "level3/043": OpFamily.ATTENTION,
}


@pytest.mark.parametrize(("problem", "family"), SHIPPED.items())
def test_shipped_problems(problem, family):
    [reference] = (data_dir() / "kernelbench-cuda").glob(f"{problem}_*/reference.py")
    assert family_of(reference) is family


@pytest.mark.parametrize(
    ("calls", "family"),
    [
        ("torch::relu(torch::randn({4, 4}, options))", OpFamily.ELEMENTWISE),
        ("torch::softmax(x, 1)", OpFamily.SOFTMAX),
        ("torch::matmul(a, b)", OpFamily.MATMUL),
        ("torch::relu(torch::nn::functional::linear(x, w)) ; torch::mean(x)", OpFamily.FUSED_MATMUL),
        ("(a - b).abs().max()", OpFamily.ELEMENTWISE),
    ],
)
def test_drivers_that_judge_themselves(calls, family):
    assert family_of_driver(f"int main() {{ auto y = {calls}; return torch::allclose(y, z) ? 0 : 1; }}") is family


def model(init: str, forward: str, arguments: str = "x") -> str:
    """A reference with these bodies."""
    body = textwrap.indent(textwrap.dedent(init).strip() or "pass", " " * 8)
    return (
        "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
        f"class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n{body}\n"
        f"    def forward(self, {arguments}):\n        {forward}\n"
    )


@pytest.mark.parametrize(
    ("init", "forward", "arguments", "family"),
    [
        ("", "return torch.relu(x)", "x", OpFamily.ELEMENTWISE),
        ("", "return A @ B", "A, B", OpFamily.MATMUL),
        ("", "return torch.bmm(A, B.transpose(1, 2))", "A, B", OpFamily.MATMUL),
        ("", "return torch.mv(A, b)", "A, b", OpFamily.MATVEC),
        ("", "return x / torch.mean(torch.abs(x), dim=1, keepdim=True)", "x", OpFamily.NORMALIZATION),
        ("", "return torch.mean((predictions - targets) ** 2)", "predictions, targets", OpFamily.LOSS),
        ("", "return F.log_softmax(x, dim=1)", "x", OpFamily.SOFTMAX),
        ("", "return torch.argmax(x, dim=1)", "x", OpFamily.REDUCTION),
        ("", "return torch.cumprod(x.flip(1), dim=1).flip(1)", "x", OpFamily.SCAN),
        ("self.pool = nn.AdaptiveAvgPool3d(2)", "return self.pool(x)", "x", OpFamily.POOLING),
        ("self.c = nn.ConvTranspose2d(3, 4, 5)", "return self.c(x)", "x", OpFamily.CONVOLUTION),
        ("self.c = nn.Conv3d(3, 4, 5)\nself.n = nn.GroupNorm(2, 4)", "return self.n(self.c(x))", "x", "fused_matmul"),
        ("self.f = nn.Linear(3, 4)", "return F.gelu(self.f(x))", "x", OpFamily.FUSED_MATMUL),
        ("self.a = nn.Linear(3, 4)\nself.b = nn.Linear(4, 5)", "return self.b(torch.relu(self.a(x)))", "x", "mlp"),
        ("self.net = nn.Sequential(*[nn.Linear(4, 4) for _ in range(9)])", "return self.net(x)", "x", OpFamily.MLP),
        (
            "layers = []\nfor _ in range(3):\n    layers.append(nn.Linear(4, 4))\nself.net = nn.Sequential(*layers)",
            "return self.net(x)",
            "x",
            OpFamily.MLP,
        ),
        ("", "return torch.softmax(q @ k.transpose(-1, -2), -1) @ v", "q, k, v", OpFamily.ATTENTION),
        ("", "return F.scaled_dot_product_attention(q, k, v)", "q, k, v", OpFamily.ATTENTION),
        ("self.unused = nn.Linear(3, 4)", "return torch.tanh(x)", "x", OpFamily.ELEMENTWISE),
    ],
)
def test_families_are_read_off_the_calls(init, forward, arguments, family):
    assert family_of_source(model(init, forward, arguments)) == family


def test_a_declaration_wins():
    assert family_of_source('OP_FAMILY = "scan"\n' + model("", "return torch.relu(x)")) is OpFamily.SCAN


@pytest.mark.parametrize("source", ["def f(: pass", 'OP_FAMILY = "interpretive_dance"', "x = 1"])
def test_what_cannot_be_told_is_an_error_with_a_hint(tmp_path, source):
    reference = tmp_path / "reference.py"
    reference.write_text(source)
    with pytest.raises(ProblemError) as caught:
        family_of(reference)
    assert "OP_FAMILY" in caught.value.hint
