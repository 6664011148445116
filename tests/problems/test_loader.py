"""Reading problem directories, sound and broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from problem_files import DRIVER, FOREIGN_DRIVER, INIT, REFERENCE, write_problem

from kernelblaster.errors import ProblemError
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, ProblemId, StandardWorkload
from kernelblaster.problems.reference import load_reference, tensor_specs


def test_a_problem_of_a_data_set_takes_its_identity_from_its_path(tmp_path: Path) -> None:
    problem = load_problem(write_problem(tmp_path / "level2" / "007_Some_Thing"))
    assert problem.id == ProblemId(2, 7)
    assert (problem.name, problem.slug) == ("Some_Thing", "007_Some_Thing")
    assert problem.workloads == {
        StandardWorkload.SMALL: {"n": 37},
        StandardWorkload.MEDIUM: {"n": 400},
        StandardWorkload.FULL: {"n": 4000},
    }
    assert problem.scalars == {"factor": 2.5}
    assert not problem.weakly_verified


def test_a_directory_of_ones_own_is_level_0_and_keeps_its_name(tmp_path: Path) -> None:
    problem = load_problem(write_problem(tmp_path / "my kernel"))
    assert problem.id == ProblemId(0, 0)
    assert problem.name == "my kernel"


def test_sizes_are_read_without_executing_the_file(tmp_path: Path) -> None:
    directory = write_problem(tmp_path / "p", reference="raise SystemExit('executed')\n" + REFERENCE)
    assert load_problem(directory).workloads[StandardWorkload.SMALL] == {"n": 37}


def test_not_every_size_must_be_declared(tmp_path: Path) -> None:
    reference = REFERENCE.replace(', "full": {"n": 4000}', "")
    problem = load_problem(write_problem(tmp_path / "p", reference=reference))
    assert set(problem.workloads) == {StandardWorkload.SMALL, StandardWorkload.MEDIUM}
    with pytest.raises(ProblemError, match=r"\bfull\b"):
        load_reference(problem).inputs(StandardWorkload.FULL)


def sized(value: str) -> str:
    head, _, rest = REFERENCE.partition("SIZES = ")
    return f"{head}SIZES = {value}\n{rest.partition(chr(10))[2]}"


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("def (", "reference.py"),
        ("import torch\n", "SIZES"),
        (sized("{}"), "SIZES"),
        (sized("dict(small=1)"), "SIZES"),
        (sized('{"small": {"n": 2 ** 4}}'), "SIZES"),
        (sized('{"two words": {"n": 1}}'), "'two words'"),
        (sized('{3: {"n": 1}}'), "has 3"),
        (sized('{"small": {}}'), "size small"),
        (sized('{"small": 3}'), "size small"),
        (sized('{"small": {"n": 1.5}}'), "is 1.5"),
        (sized('{"small": {"n": True}}'), "is True"),
        (sized('{"small": {"n": -1}}'), "is -1"),
        (sized('{"small": {"n": 1}, "full": {"m": 1}}'), "sizes of p"),
        (sized('{"small": {"n": 1, "factor": 2}}'), "factor of 000_p"),
        (sized('{"small": {"m": 1}}'), "'n'"),
        (REFERENCE.replace('{"factor": 2.5}', "2.5"), "SCALARS"),
        (REFERENCE + 'OUTPUTS = "output"', "OUTPUTS of"),
        (REFERENCE + 'OUTPUTS = ("y", "y")', "OUTPUTS of"),
        (REFERENCE + 'OUTPUTS = ("y",)', "'output'"),
        (REFERENCE + 'DTYPES = ["int32"]', "DTYPES of"),
        (REFERENCE + 'DTYPES = {"x": "float7"}', "'float7'"),
        (REFERENCE + 'DTYPES = {"x": "float4_e2m1"}', "float4_e2m1"),
        (REFERENCE + 'INDICES = {"lost": ("x", 0)}', "INDICES of"),
        (REFERENCE + 'INDICES = {"output": "x"}', "INDICES of"),
        (REFERENCE.replace("2.5", '"2.5"'), "'factor'"),
        (REFERENCE.replace('SCALARS = {"factor": 2.5}', ""), "'factor'"),
    ],
)
def test_a_contradictory_reference_is_refused(tmp_path: Path, reference: str, message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        load_problem(write_problem(tmp_path / "p", reference=reference))
    assert message in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"init": None}, "init.cu"),
        ({"init": "int main() {}"}, "init.cu of 000_p"),
        ({"driver": "int main() {}"}, "driver.cpp of 000_p"),
        ({"driver": DRIVER.replace("KB_DRIVER(call)", "")}, "KB_DRIVER"),
    ],
)
def test_missing_and_unrelated_files_are_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        load_problem(write_problem(tmp_path / "p", **files))
    assert message in caught.value.message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    directory = write_problem(tmp_path / "p")
    (directory / "init.cu").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ProblemError, match=r"init\.cu"):
        load_problem(directory)


def test_a_path_that_is_no_directory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProblemError, match="absent"):
        load_problem(tmp_path / "absent")


@pytest.mark.parametrize("init_file", ["init.cu", "final_cuda.cu"])
def test_a_libtorch_driver_marks_a_problem_weakly_verified(tmp_path: Path, init_file: str) -> None:
    directory = tmp_path / "level1" / "003_Foreign"
    directory.mkdir(parents=True)
    (directory / "driver.cpp").write_text(FOREIGN_DRIVER)
    (directory / init_file).write_text(INIT)
    problem = load_problem(directory)
    assert problem.weakly_verified
    assert problem.id == ProblemId(1, 3)
    assert problem.init_path.read_text() == INIT
    with pytest.raises(ProblemError, match="driver"):
        tensor_specs(problem, StandardWorkload.FULL, Precision.FP16)


def test_a_foreign_directory_without_a_kernel_is_refused(tmp_path: Path) -> None:
    (tmp_path / "driver.cpp").write_text(FOREIGN_DRIVER)
    with pytest.raises(ProblemError, match=tmp_path.name):
        load_problem(tmp_path)
