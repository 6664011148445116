"""Modules as people write them: what is taken, how the launcher is called for it, what is refused with a remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.errors import ProblemError
from kernelblaster.evaluation.correctness.compare import would_be_refused
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs.distributions import ACCUMULATION, Distribution
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.tensors import storage_dtype
from kernelblaster.problems.driver_names import launcher_arguments
from kernelblaster.problems.families import family_of_source
from kernelblaster.problems.interchange.kernelbench.evaluation_mode import evaluation_notes
from kernelblaster.problems.interchange.kernelbench.importing import import_kernelbench
from kernelblaster.problems.interchange.kernelbench.plain_forward import flat
from kernelblaster.problems.problem import Precision, Problem
from kernelblaster.problems.reference import load_reference, run_model, tensor_specs


def text_of(
    forward: str = "return x * 2",
    made: str = "pass",
    *,
    arguments: str = "x",
    head: str = "N = 400",
    given: str = "torch.randn(N, 64)",
) -> str:
    """A module of these parts."""
    return f"""import torch
import torch.nn as nn
import torch.nn.functional as F
{head}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {made}

    def forward(self, {arguments}):
        {forward}

def get_inputs():
    return [{given}]

def get_init_inputs():
    return []
"""


def imported(tmp_path: Path, text: str) -> Problem:
    source = tmp_path / "module.py"
    source.write_text(text, encoding="utf-8")
    return import_kernelbench(source, tmp_path / "made")


def refused(tmp_path: Path, text: str) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        imported(tmp_path, text)
    assert caught.value.message.startswith(str(tmp_path / "module.py"))
    assert "\n" not in caught.value.message
    return caught.value


@pytest.mark.parametrize(
    "forward",
    ["return F.dropout(x, 0.5)", "return x + torch.randn_like(x)", "return x, torch.rand(3)"],
)
def test_a_random_forward_is_refused(tmp_path: Path, forward: str) -> None:
    message = refused(tmp_path, text_of(forward)).message
    assert "forward" in message
    assert "random" in message


@pytest.mark.parametrize(
    "made",
    ["self.w = torch.randn(64)", 'self.register_buffer("w", torch.randn(64), persistent=False)'],
)
def test_random_values_that_no_kernel_gets_are_refused(tmp_path: Path, made: str) -> None:
    assert "state_dict" in refused(tmp_path, text_of("return x * self.w", made)).message


@pytest.mark.parametrize(
    ("forward", "made"),
    [
        ("return x * self.w", "self.w = nn.Parameter(torch.randn(64))"),
        ("return x * self.w", 'self.register_buffer("w", torch.randn(64))'),
        ("return x * self.w", "self.w = torch.arange(64)"),
        ("return self.drop(x)", "self.drop = nn.Dropout(0.5)"),
        ("return F.dropout(x, 0.5, training=self.training)", "pass"),
        ("return x.add_(1).log(), x > 0", "pass"),
    ],
)
def test_what_follows_from_inputs_and_weights_is_taken(tmp_path: Path, forward: str, made: str) -> None:
    state = torch.random.get_rng_state()
    imported(tmp_path, text_of(forward, made))
    assert torch.equal(torch.random.get_rng_state(), state)


def test_a_module_that_is_cheap_at_no_size_is_not_run(tmp_path: Path) -> None:
    large = text_of(head="FIXED = (1 << 40,)", given="torch.randn(*FIXED)")
    assert imported(tmp_path, large).workloads["full"] == {"x_axis_0": 1 << 40}


def test_a_module_whose_intermediate_values_are_large_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[Problem] = []
    monkeypatch.setattr("kernelblaster.problems.interchange.kernelbench.importing.require_sound_reference", run.append)
    pairs = "return (x[:, None] - x[None]).abs().sum((1, 2))"
    imported(tmp_path, text_of(pairs, head="FIXED = (200, 64)", given="torch.randn(*FIXED)"))
    assert run
    run.clear()
    imported(tmp_path, text_of(pairs, head="FIXED = (8000, 2)", given="torch.randn(*FIXED)"))
    assert not run


def test_parameters_of_the_launcher_are_names_of_cxx_and_differ(tmp_path: Path) -> None:
    problem = imported(
        tmp_path,
        text_of(
            "return x + new * this * self.new_ * self.table[KEY] * float16 + output",
            'self.new_ = nn.Parameter(torch.randn(64)); self.table = nn.ParameterDict({"a-b": torch.randn(64)})',
            arguments="x, new, this",
            head='int64_t, output, half, KEY = 400, 3, 64, "a-b"\nfloat16 = 0.5',
            given="torch.randn(int64_t, half), torch.randn(int64_t, half), torch.randn(int64_t, half)",
        ),
    )
    assert problem.workloads["full"] == {"int64_t": 400, "half": 64}, "an output's name stays a constant"
    given = launcher_arguments(problem.driver_path)
    names = [one.parameter for one in given]
    assert len(set(names)) == len(names)
    assert not {"new", "this", "int64_t", "half"} & set(names)
    assert all(name.isascii() and name.isidentifier() for name in names)
    assert {one.name for one in given if one.kind == "input"} == {"x", "new", "this"}
    assert {one.name for one in given if one.kind == "weight"} == {"new_", "table.a-b"}
    assert names[0] == "output"


def test_weights_of_one_spelling_are_two_parameters(tmp_path: Path) -> None:
    made = "self.a = nn.Linear(64, 64); self.a_weight = nn.Parameter(torch.randn(64))"
    driver = imported(tmp_path, text_of("return self.a(x) * self.a_weight", made)).driver_path
    assert launcher_declaration(driver.read_text()).count("void*") == 5


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("class A(nn.Module):\n    def forward(self, x): return x.softmax(-1)\nclass Model(A): pass", "softmax"),
        ("class Model(nn.Softmax):\n    def __init__(self): super().__init__(-1)", "softmax"),
        ("class A(nn.ReLU): pass\nclass B(A):\n def forward(self, x): return x @ x.T\nclass Model(B): pass", "matmul"),
        ("class Model(nn.ReLU):\n    def __init__(self): super().__init__(inplace=False)", "elementwise"),
        ("class Model(nn.ReLU):\n    def forward(self, x): return x.softmax(-1)", "softmax"),
        ("OP_FAMILY = 'loss'\nclass Model(nn.ReLU): pass", "loss"),
    ],
)  # fmt: skip
def test_a_module_that_inherits_its_forward_has_a_family(tmp_path: Path, model: str, family: str) -> None:
    text = text_of()
    problem = imported(
        tmp_path, text[: text.index("class Model")] + model + "\n" + text[text.index("def get_inputs") :]
    )
    assert family_of_source(problem.reference_path.read_text()) == family


ONE_LINE = "def get_inputs(): return [torch.randn(N, 64)]"
SEVERAL_LINES = "def get_inputs(  # none\n) -> list[torch.Tensor]:\n    return [torch.randn(N, 64)]"
ON_ITS_LAST_LINE = "def get_inputs(\n): x = torch.randn(N, 64); return [x]"
INNER = """def get_inputs():
    @torch.no_grad()
    def drawn():
        return torch.randn(N, 64)
    return [drawn()]"""
TABBED = "def get_inputs() :\n\treturn [torch.randn(N, 64)]"
DECORATED = "@torch.no_grad()\ndef  get_inputs (\\\n):\n    'Ü'; y = 1\n    return [torch.randn(N, 64)]"


@pytest.mark.parametrize("function", [ONE_LINE, SEVERAL_LINES, ON_ITS_LAST_LINE, INNER, TABBED, DECORATED])
def test_functions_take_a_size_however_they_are_written(tmp_path: Path, function: str) -> None:
    plain = "def get_inputs():\n    return [torch.randn(N, 64)]"
    text = text_of(head="N = 400\n\f\n# \u2028 ÄÖ").replace(plain, function)
    assert function in text
    reference = load_reference(imported(tmp_path, text))
    reference.module.SIZES["full"].update(N=7)
    assert reference.inputs("full")[0].shape == (7, 64)
    lost = text.replace("return []", 'raise OSError("lost")')
    line = 1 + [one.strip() for one in lost.split("\n")].index('raise OSError("lost")')
    assert refused(tmp_path, lost).message.startswith(f"{tmp_path / 'module.py'}:{line}: ")


def test_a_module_may_call_its_extent_size(tmp_path: Path) -> None:
    problem = imported(tmp_path, text_of(head="size = 4000000", given="torch.randn(size, 64)"))
    reference = load_reference(problem)
    extents = {name: sizes["size"] for name, sizes in problem.workloads.items()}
    assert extents["full"] == 4_000_000 > extents["small"]
    assert reference.inputs("small")[0].shape == (extents["small"], 64)


@pytest.mark.parametrize(
    ("forward", "made", "given"),
    [
        ("return torch.softmax(x, 1, dtype=torch.float32)", "pass", "torch.randn(N, 64)"),
        ("return x.float().sum(1), (x * 2, [x.float().exp()])", "pass", "torch.randn(N, 64)"),
        ("return F.one_hot(x, 5).float() / 3", "pass", "torch.randint(5, (N,))"),
        (
            "return self.table[x].float() * self.scale[x]",
            'self.register_buffer("table", torch.randint(9, (5, 8), dtype=torch.int8)); '
            'self.register_buffer("scale", torch.rand(5, 1))',
            "torch.randint(5, (N,))",
        ),
    ],
)
@pytest.mark.parametrize("precision", Precision)
def test_what_a_module_leaves_in_fp32_is_judged_as_a_kernel_stores_it(
    tmp_path: Path, forward: str, made: str, given: str, precision: Precision
) -> None:
    problem = imported(tmp_path, text_of(forward, made, given=given))
    key = InputKey(problem, precision, problem.cheap_workload, (Distribution.DECLARED,), seed=3)
    with InputStore(tmp_path) as store, store.use(key) as drawn:
        for expected in drawn.expected.tensors:
            assert expected.spec.dtype is precision.dtype
            right = expected.values.to(storage_dtype(precision)).double()
            assert not would_be_refused(expected, right, 2.0, ACCUMULATION)
            assert would_be_refused(expected, 1.1 * right, 2.0, ACCUMULATION)


def test_a_function_with_arguments_is_refused(tmp_path: Path) -> None:
    text = text_of().replace("def get_inputs()", "def get_inputs(n=3)")
    assert refused(tmp_path, text).message.startswith(f"{tmp_path / 'module.py'}:13: ")


@pytest.mark.parametrize(
    ("text", "told", "remedy"),
    [
        (text_of("return x * n", arguments="x, n", given="torch.randn(N, 64), N"), "400", "top level"),
        (text_of("return x * n", arguments="x, n", given="torch.randn(N, 64), N // 2"), "200", "top level"),
        (text_of("return x[0]", given="[torch.randn(N, 64)]"), "list", "tensors"),
        (text_of('return {"a": x}'), "dict", "tensors"),
        (text_of("return x, ({},)"), "dict", "tensors"),
        (text_of("return None, (None,)"), "tuple", "tensors"),
        (text_of("return None"), "None", "tensors"),
        (text_of("return x if (x > 9).any() else -x"), "item", "values"),
        (text_of("return x[x > 0]"), "nonzero", "torch.where"),
        (text_of("return x[torch.where(x[:, 0] > 0)]"), "nonzero", "torch.where"),
        (
            text_of("return torch.bincount(x, minlength=9)[:9]", given="torch.randint(0, 9, (N,))"),
            "bincount",
            "scatter",
        ),
        (text_of(given="torch.eye(64).to_sparse()"), "sparse", "shapes"),
        (text_of(head="N = 400\nfrom nowhere_at_all import helper"), "nowhere_at_all", "alone"),
        (text_of(head="N = 400\nfrom .beside import helper"), "relative", "alone"),
    ],
)
def test_what_is_refused_has_a_line_and_a_remedy(tmp_path: Path, text: str, told: str, remedy: str) -> None:
    error = refused(tmp_path, text)
    assert error.message.removeprefix(str(tmp_path / "module.py"))[1].isdigit()
    assert told in error.message
    assert remedy in error.hint
    assert len(error.message) < 600


@pytest.mark.parametrize(
    ("forward", "arguments", "given", "inputs", "outputs"),
    [
        ("return x.roll(n, 1) * n", "x, n", "torch.randn(N, 64), 3", ["x"], 1),
        ("return x * f if flag else x / f", "x, flag, f", "torch.randn(N, 64), False, 0.5", ["x"], 1),
        ("return x if mask is None else mask", "mask, x", "None, torch.randn(N, 64)", ["x"], 1),
        ('return F.pad(x, pad, mode) * len(y["a"])', "x, pad, mode, y, z=2.0",
         'torch.randn(N, 64), (1, 2), "constant", {"a": [1, 2.5]}', ["x"], 1),
        ("return x, (x * 2, [y, None])", "x, y", "torch.randn(N, 64), torch.randn(N)", ["x", "y"], 3),
        ("return x + n, None", "x, n", "torch.randn(N, 64), -7", ["x"], 1),
        ("return x, [x + 1]", "x", "torch.randn(N, 64)", ["x"], 2),
    ],
)  # fmt: skip
def test_constants_are_no_inputs_and_outputs_are_one_tuple(
    tmp_path: Path, forward: str, arguments: str, given: str, inputs: list[str], outputs: int
) -> None:
    text = text_of(forward, arguments=arguments, given=given).replace("super()", "super(Model, self)")
    problem = imported(tmp_path, text)
    assert len(problem.outputs) == outputs
    reference, module = load_reference(problem), {}
    exec(text, module)
    assert list(reference.tensors("full")) == inputs
    torch.manual_seed(1)
    expected = module["Model"]()(*module["get_inputs"]())
    torch.manual_seed(1)
    returned = run_model(problem, reference.model("full"), reference.tensors("full"))
    assert len(returned) == outputs
    for one, other in zip(returned, flat(expected), strict=True):
        assert torch.equal(one, other)


def test_whoever_asks_for_a_device_is_told_to_leave_it_out(tmp_path: Path) -> None:
    text = text_of("return self.norm(x)", 'self.norm = nn.LayerNorm(64).to(device="cpu", dtype=torch.float16)')
    assert "devices" in refused(tmp_path, text).hint


@pytest.mark.skipif(torch.cuda.is_available(), reason="there it is no mistake")
def test_whoever_asks_for_a_gpu_is_told_to_leave_it_out(tmp_path: Path) -> None:
    assert "device" in refused(tmp_path, text_of(given="torch.randn(N, 64).cuda()")).hint


@pytest.mark.parametrize(
    ("text", "told", "remedy"),
    [
        (text_of("return x.abs()", given="torch.randn(N, 64, dtype=torch.complex64)"), "complex", "float"),
        (text_of("return x + self.x", "self.x = nn.Parameter(torch.randn(64))"), "two tensors", "rename"),
        (text_of(given="torch.randn(N, 64), torch.randn(N, 64)"), "forward", "get_inputs"),
        (text_of().replace("return []", "return [1]"), "__init__", "get_init_inputs"),
        (text_of().replace("return []", "pass"), "Model", "get_init_inputs"),
        (text_of().replace("(nn.Module)", ""), "eval", "nn.Module"),
        (text_of().replace("super().__init__()", "self.a = nn.Linear(3, 3)"), "Module", "super"),
    ],
)
def test_what_does_not_fit_together_is_told_of_the_file(tmp_path: Path, text: str, told: str, remedy: str) -> None:
    error = refused(tmp_path, text)
    assert told in error.message
    assert remedy in error.hint


@pytest.mark.parametrize(
    ("text", "told", "remedy"),
    [
        (text_of("return self.fc(x)", "self.fc = nn.LazyLinear(64)"), "fc", "in_features"),
        (
            text_of("return torch.cat(xs)", arguments="*xs", given="torch.randn(N, 64), torch.randn(N, 64)"),
            "*xs",
            "xs_1",
        ),
        (text_of(arguments="x, **rest"), "**rest", "forward(self"),
    ],
)
def test_what_is_made_or_called_otherwise_is_refused(tmp_path: Path, text: str, told: str, remedy: str) -> None:
    error = refused(tmp_path, text)
    assert told in error.message
    assert remedy in error.hint


MADE_OF = """import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, n_in, n_out, bias=True):
        super().__init__()
        self.fc = nn.Linear(n_in, n_out, bias=bias)

    def forward(self, x):
        return self.fc(x)

n_in = 640

def get_inputs():
    return [torch.randn(512, n_in)]

def get_init_inputs():
    return GIVEN
"""


@pytest.mark.parametrize(
    "given",
    [
        "[n_in, 320, False]",
        '{"n_in": n_in, "n_out": 320, "bias": False}',
        '[[], {"bias": False, "n_in": n_in, "n_out": 320}]',
        '[[n_in, 320], {"bias": False}]',
    ],
)
def test_a_model_is_made_of_arguments_in_order_or_by_name(tmp_path: Path, given: str) -> None:
    problem = imported(tmp_path, MADE_OF.replace("GIVEN", given))
    reference = load_reference(problem)
    assert problem.workloads["full"]["n_in"] == 640
    reference.module.SIZES["full"].update(n_in=9)
    model = reference.model("full")
    assert {name: tuple(one.shape) for name, one in model.state_dict().items()} == {"fc.weight": (320, 9)}
    assert model(*reference.inputs("full")).shape == (512, 320)


def test_numbers_that_nothing_reads_are_no_parameters(tmp_path: Path) -> None:
    whole = imported(tmp_path, text_of(head="N = 400\nH = 8\nunused = 0.5", given="torch.randn(N, N)"))
    assert whole.workloads["full"] == {"N": 400}
    assert not whole.scalars
    alone = imported(tmp_path, text_of(head="H = 8", given="torch.randn(300, 64)"))
    assert alone.workloads["full"] == {"x_axis_0": 300, "x_axis_1": 64}
    by_name = text_of(head="N = 400\nH = 8", given='torch.randn(N, globals()["H"])')
    assert imported(tmp_path, by_name).workloads["full"] == {"N": 400, "H": 8}


@pytest.mark.parametrize(
    ("forward", "declared", "told"),
    [
        ("return torch.topk(x, 5, dim=1)", "", ["output_1"]),
        ("return torch.topk(x, 5, dim=1)", 'INDICES = {"output_1": ("x", 1)}', []),
        ("return x.argmax(dim=1)", "", ["output"]),
        ("return x * 2", "", []),
    ],
)
def test_indices_that_are_not_declared_are_told(tmp_path: Path, forward: str, declared: str, told: list[str]) -> None:
    problem = imported(tmp_path, text_of(forward, head=f"N = 400\n{declared}"))
    notes = evaluation_notes(problem, "full")
    assert len(notes) == len(told)
    assert all(f'"{name}": ("x"' in note for name, note in zip(told, notes, strict=True))
    assert tensor_specs(problem, "full", Precision.FP16)


def test_no_declaration_is_told_where_none_can_hold(tmp_path: Path) -> None:
    problem = imported(tmp_path, text_of("return (x > 0).long().sum((0, 1), keepdim=True)[None]"))
    (note,) = evaluation_notes(problem, "full")
    assert "output" in note
    assert "INDICES" not in note
