"""KernelBench modules become problems: numbers are the launcher's, weights tensors, a small size is found."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import torch

from kernelblaster import import_problems
from kernelblaster.cuda_source.launcher import launcher_declaration
from kernelblaster.errors import ProblemError, UsageError
from kernelblaster.problems.dataset import Dataset
from kernelblaster.problems.interchange.kernelbench.importing import import_kernelbench
from kernelblaster.problems.interchange.kernelbench.meta_run import CHEAP_ELEMENTS
from kernelblaster.problems.interchange.kernelbench.small_size import LARGE
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, TensorRole
from kernelblaster.problems.reference import load_reference, results, tensor_specs
from kernelblaster.problems.undeclared_extents import undeclared_extents

HEAD = "import torch\nimport torch.nn as nn\n"
NORMED = f'''{HEAD}
class Model(nn.Module):
    """A convolution with a norm."""

    def __init__(self, cin, cout, k, groups, eps=1e-5):
        super().__init__()
        self.conv = nn.Conv2d(cin, cout, k)
        self.gn = nn.GroupNorm(groups, cout, eps=eps)

    def forward(self, x):
        return torch.relu(self.gn(self.conv(x))) * factor

batch_size = 8 * 16
in_channels = 64
out_channels = 128
height, width = 256, 256
kernel_size = 3
num_groups = 8
factor = 0.5
shape = (out_channels,)

def get_inputs():
    """Values."""
    return [torch.rand(batch_size, in_channels, height, width)]

def get_init_inputs():
    return [in_channels, out_channels, kernel_size, num_groups]
'''
TWO = f"""{HEAD}
class Model(nn.Module):
    def forward(self, A: torch.Tensor, s: float):
        return torch.max(A * s, dim=1)

def get_inputs() -> list:
    return [torch.rand(32, 100), 3.14]

def get_init_inputs():
    return []
"""
DEEP = f"""{HEAD}
class Model(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Linear(width, width) for _ in range(depth)])

    def forward(self, x):
        return self.layers(x)

width = 64
depth = 12
batch_size = 4

def get_inputs():
    return [torch.rand(batch_size, width)]

def get_init_inputs():
    return [width, depth]
"""


def made(tmp_path: Path, text: str, name: str = "8_Conv Norm.py") -> Problem:
    source = tmp_path / name
    source.write_text(text)
    return import_kernelbench(source, tmp_path / "made")


def test_numbers_weights_and_sizes_are_those_of_the_module(tmp_path: Path) -> None:
    problem = made(tmp_path, NORMED)
    assert problem.title == "8_Conv_Norm"
    assert not problem.has_start
    full = problem.workloads["full"]
    assert full["batch_size"] == 128
    assert (full["height"], full["width"], full["kernel_size"]) == (256, 256, 3)
    assert full["out_channels"] == 128, "what follows from it is computed again"
    assert problem.scalars == {"factor": 0.5}
    specs = tensor_specs(problem, "full", Precision.FP16)
    assert [spec.name for spec in specs if spec.role is TensorRole.WEIGHT] == [
        "conv.weight", "conv.bias", "gn.weight", "gn.bias",
    ]  # fmt: skip
    assert specs[0].shape == (128, 128, 254, 254)
    declared = launcher_declaration(problem.driver_path.read_text())
    assert "void* conv_weight" in declared
    assert "int64_t kernel_size" in declared
    assert "float factor" in declared
    small = tensor_specs(problem, "small", Precision.FP16)
    assert sum(spec.elements for spec in small) < LARGE * CHEAP_ELEMENTS
    assert problem.workloads["small"]["width"] % 2


def test_a_recurrent_layer_is_not_gone_through_for_its_shapes(tmp_path: Path) -> None:
    text = f"""{HEAD}
class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, 3, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(2 * hidden, hidden)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.gru(y)[0], h, c

batch = steps = 4000
width = 8
hidden = 12

def get_inputs():
    return [torch.rand(batch, steps, width)]

def get_init_inputs():
    return [width, hidden]
"""
    began = time.monotonic()
    problem = made(tmp_path, text)
    specs = tensor_specs(problem, "full", Precision.FP16)
    assert time.monotonic() - began < 60.0, "4000 steps of 4 layers take minutes"
    assert [spec.shape for spec in specs[:3]] == [(4000, 4000, 12), (6, 4000, 12), (6, 4000, 12)]
    at = problem.workloads["small"]
    small = tensor_specs(problem, "small", Precision.FP16)
    assert [one.shape for one in results(problem)] == [spec.shape for spec in small[:3]]
    assert small[1].shape == (6, at["batch"], at["hidden"])


def test_small_is_cheap_to_compute_and_small_parameters_shrink_only_where_it_would_not_be(tmp_path: Path) -> None:
    volume = NORMED.replace("Conv2d", "Conv3d").replace("height, width = 256, 256", "depth = height = width = 24")
    volume = volume.replace("in_channels, height, width)", "in_channels, depth, height, width)")
    few = made(tmp_path, volume, "volume.py").workloads["small"]
    assert few["depth"] < 16, "24 x 24 x 24 pixels of 64 channels take billions of operations"
    assert made(tmp_path, NORMED).workloads["small"]["in_channels"] >= 16


def test_the_same_file_gives_the_same_problem_and_the_same_values_as_the_module(tmp_path: Path) -> None:
    problem = made(tmp_path, NORMED)
    before = {path.name: path.read_bytes() for path in problem.directory.iterdir()}
    assert made(tmp_path, NORMED) == problem
    assert {path.name: path.read_bytes() for path in problem.directory.iterdir()} == before
    original: dict[str, object] = {}
    exec(NORMED.replace("256, 256", "33, 17"), original)
    torch.manual_seed(3)
    theirs = original["Model"](*original["get_init_inputs"]()).eval()(*original["get_inputs"]())
    reference = load_reference(problem)
    reference.module.SIZES["full"].update(height=33, width=17)
    torch.manual_seed(3)
    module = reference.model("full")
    torch.testing.assert_close(module(*reference.inputs("full")), theirs)


def test_kernels_are_judged_at_other_sizes_and_scalars_too(tmp_path: Path) -> None:
    problem = made(tmp_path, NORMED)
    other = undeclared_extents(problem)
    assert other is not None
    assert other.workloads["small"] != problem.workloads["small"]
    assert other.scalars != problem.scalars
    assert results(other)[0].shape != results(problem)[0].shape


def test_outputs_and_scalar_inputs_have_names_and_constants_stay(tmp_path: Path) -> None:
    problem = made(tmp_path, TWO, "two.py")
    assert problem.outputs == ("output_0", "output_1")
    assert problem.scalars == {"s": 3.14}
    assert problem.workloads == {"full": {"A_axis_0": 32, "A_axis_1": 100}}
    values, indices = tensor_specs(problem, "full", Precision.BF16)[:2]
    assert (values.dtype.label, indices.dtype.label) == ("bf16", "int64")


def test_many_weights_reach_the_launcher_as_one_array(tmp_path: Path) -> None:
    declared = launcher_declaration(made(tmp_path, DEEP).driver_path.read_text())
    assert "void* const* weights" in declared


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import torch\n", "Model"),
        ("class Model(:\n", "valid Python"),
        (TWO.replace("def get_inputs() ->", "def get_inputs(size) ->"), "get_inputs"),
        (TWO.replace("3.14", "torch.float16").replace("A * s", "A"), "input s"),
        (TWO.replace("torch.max(A * s, dim=1)", "'text'"), "output"),
        (TWO.replace("torch.rand(32, 100)", "torch.rand(())").replace("torch.max(A * s, dim=1)", "A * s"), "extent"),
        (TWO.replace("dim=1", "dim=7"), "dim"),
    ],
)
def test_what_cannot_be_a_problem_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ProblemError) as caught:
        made(tmp_path, text, "bad.py")
    assert told.lower() in caught.value.message.lower()
    assert caught.value.hint


NORMS = f"""{HEAD}
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.BatchNorm1d(width)
        self.second = nn.BatchNorm1d(width, track_running_stats=False)
        self.drop, self.keep = nn.Dropout(0.1), nn.Dropout(0.0)

    def forward(self, x):
        return self.keep(self.drop(self.second(self.first(x))))

width: int = 64

def get_inputs():
    return [torch.rand(32, width)]

def get_init_inputs():
    return []
"""


def test_an_annotated_number_is_a_parameter(tmp_path: Path) -> None:
    assert made(tmp_path, NORMS).workloads["full"] == {"x_axis_0": 32, "width": 64}


def test_layers_that_do_otherwise_in_evaluation_mode_are_told(tmp_path: Path) -> None:
    path = tmp_path / "checkout" / "level1" / "1_Norms.py"
    path.parent.mkdir(parents=True)
    path.write_text(NORMS)
    (notes,) = [one.notes for one in import_problems(tmp_path / "checkout", tmp_path / "target").problems]
    assert [[name for name in ("first", "second", "drop", "keep") if f" {name}" in note] for note in notes] == [
        ["first"],
        ["drop"],
    ]
    path.write_text(NORMED)
    assert import_problems(tmp_path / "checkout", tmp_path / "other").problems[0].notes == ()


@pytest.mark.parametrize(
    "place", ["    return [torch.rand(b", "    return [in_ch", "        return torch.relu", "factor = "]
)
def test_what_fails_is_told_of_the_line_of_the_file_itself(tmp_path: Path, place: str) -> None:
    text = NORMED.replace(place, f"{place[: len(place) - len(place.lstrip())]}raise OSError('lost')\n{place}")
    with pytest.raises(ProblemError) as caught:
        made(tmp_path, text, "bad.py")
    line = 1 + [line.strip() for line in text.split("\n")].index("raise OSError('lost')")
    assert caught.value.message.startswith(f"{tmp_path / 'bad.py'}:{line}: ")


def test_a_checkout_of_which_nothing_can_be_imported_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "checkout" / "level1" / "1_Bad.py"
    path.parent.mkdir(parents=True)
    path.write_text("import torch\n")
    report = import_problems(tmp_path / "checkout", tmp_path / "target")
    assert (report.problems, list(report.refused)) == ((), ["level1/001_Bad"])


def test_a_checkout_becomes_a_data_set_and_what_was_edited_is_kept(tmp_path: Path) -> None:
    checkout, target = tmp_path / "checkout", tmp_path / "target"
    for name in ("level1/7_Scaled.py", "level2/12_Scaled_again.py", "level2/notes.py", "level1/notes.txt"):
        path = checkout / "KernelBench" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(TWO if "caled" in name else "")
    report = import_problems(checkout, target)
    assert [one.definition for one in report.problems] == ["level1/007_Scaled", "level2/012_Scaled_again"]
    assert not report.refused
    assert [str(one.id) for one in Dataset(target).select()] == ["level1/007", "level2/012"]
    edited = target / "level1" / "007_Scaled" / "reference.py"
    edited.write_text(f"{edited.read_text()}# mine\n")
    again = import_problems(checkout / "KernelBench", target)
    assert list(again.refused) == ["level1/007_Scaled"]
    assert edited.read_text().endswith("# mine\n")
    whole = import_problems(checkout, target, names=["level1/007_Scaled"], overwrite=True)
    assert len(whole.problems) == 1
    assert not edited.read_text().endswith("# mine\n")
    with pytest.raises(UsageError):
        import_problems(checkout, target, names=["level1/008_Other"])


def test_a_file_that_changed_replaces_what_was_made_of_it_and_nothing_else(tmp_path: Path) -> None:
    module, target = tmp_path / "checkout" / "level1" / "7_Scaled.py", tmp_path / "target"
    module.parent.mkdir(parents=True)
    made = target / "level1" / "007_Scaled"
    for columns in (64, 32, 48):
        module.write_text(TWO.replace("100", str(columns)))
        assert not import_problems(tmp_path / "checkout", target).refused
        assert load_problem(made).workloads["full"]["A_axis_1"] == columns
    driver = made / "driver.cpp"
    driver.write_text(f"{driver.read_text()}// mine\n")
    assert not import_problems(tmp_path / "checkout", target, overwrite=True).refused
    driver.write_text(f"{driver.read_text()}// mine\n")
    module.write_text(TWO)
    assert import_problems(tmp_path / "checkout", target).refused
    assert driver.read_text().endswith("// mine\n")


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("level1/007_Scaled", ["level1/007_Scaled"]),
        ("level1/7_Scaled", ["level1/007_Scaled"]),
        ("level1/7", ["level1/007_Scaled"]),
        ("7_Scaled.py", ["level1/007_Scaled"]),
        ("Scaled_twice", ["level2/007_Scaled_twice"]),
        ("Scaled", ["level1/007_Scaled"]),
        ("7", []),
        ("level1", []),
        ("level1/", []),
        ("level1/7_Scaled_twice", []),
        ("", []),
    ],
)
def test_a_module_is_chosen_by_as_much_of_its_name_as_tells_it(tmp_path: Path, written: str, meant: list[str]) -> None:
    for name in ("level1/7_Scaled.py", "level2/7_Scaled_twice.py"):
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True)
        path.write_text(TWO)
    if meant:
        report = import_problems(tmp_path / "checkout", tmp_path / "target", names=[written])
        assert [one.definition for one in report.problems] == meant
    else:
        with pytest.raises(UsageError) as caught:
            import_problems(tmp_path / "checkout", tmp_path / "target", names=[written])
        assert "level1/007_Scaled" in caught.value.hint


def test_two_modules_of_one_number_are_no_data_set(tmp_path: Path) -> None:
    level = tmp_path / "checkout" / "level1"
    level.mkdir(parents=True)
    for name in ("7_A", "007_B", "8_C"):
        (level / f"{name}.py").write_text(TWO)
    for _ in range(2):
        report = import_problems(tmp_path / "checkout", tmp_path / "target")
        assert [one.definition for one in report.problems] == ["level1/007_A", "level1/008_C"]
        assert list(report.refused) == ["level1/007_B"]
        assert len(Dataset(tmp_path / "target").select()) == 2


def test_an_import_tells_of_the_start_that_lies_there(tmp_path: Path) -> None:
    module, target = tmp_path / "checkout" / "level1" / "7_Scaled.py", tmp_path / "target"
    module.parent.mkdir(parents=True)
    module.write_text(TWO)
    (first,) = import_problems(tmp_path / "checkout", target).problems
    assert first.start is None
    (first.directory / "init.cu").write_text("void launch_gpu_implementation() {}\n")
    (again,) = import_problems(tmp_path / "checkout", target).problems
    assert again.start == "init.cu"


def test_what_is_not_imported_is_told_what_takes_it(tmp_path: Path) -> None:
    module = tmp_path / "KernelBench" / "level1" / "7_Scaled.py"
    problem = tmp_path / "set" / "level1" / "007_Scaled"
    for directory in (module.parent, problem):
        directory.mkdir(parents=True)
    module.write_text(TWO)
    (problem / "driver.cpp").write_text("")
    (tmp_path / "empty").mkdir()
    told = {
        module: f"run --problem {module}",
        module.parent: str(module.parent.parent),
        problem: f"--problem-dir {problem}",
        problem.parent: f"--dataset-dir {problem.parent.parent}",
        problem.parent.parent: f"--dataset-dir {problem.parent.parent}",
        tmp_path / "empty": "checkout",
    }
    for source, words in told.items():
        with pytest.raises(UsageError) as caught:
            import_problems(source, tmp_path / "target")
        assert words in caught.value.hint


@pytest.mark.parametrize("below", ["", "deeper"])
def test_nothing_is_imported_into_a_file(tmp_path: Path, below: str) -> None:
    (tmp_path / "checkout" / "level1").mkdir(parents=True)
    (tmp_path / "checkout" / "level1" / "7_Scaled.py").write_text(TWO)
    file = tmp_path / "mine.py"
    file.write_text("")
    with pytest.raises(UsageError, match=str(file)):
        import_problems(tmp_path / "checkout", file / below)
