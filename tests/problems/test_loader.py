"""Reading problem directories, sound and broken."""

from __future__ import annotations

from pathlib import Path

import pytest
from problem_files import DRIVER, FOREIGN_DRIVER, INIT, REFERENCE, write_problem

from kernelblaster.errors import ProblemError
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, ProblemId, StandardWorkload
from kernelblaster.problems.reference import load_reference, tensor_specs
from kernelblaster.problems.start import read_start


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


def test_a_directory_of_ones_own_is_level_0_and_goes_by_its_name(tmp_path: Path) -> None:
    problem = load_problem(write_problem(tmp_path / "my kernel"))
    assert problem.id == ProblemId(0, 0, "my kernel")
    assert {problem.name, str(problem.id), problem.slug, problem.title} == {"my kernel"}
    assert problem.id != load_problem(write_problem(tmp_path / "another")).id


def test_sizes_are_read_without_executing_the_file(tmp_path: Path) -> None:
    directory = write_problem(tmp_path / "p", reference="raise SystemExit('executed')\n" + REFERENCE)
    assert load_problem(directory).workloads[StandardWorkload.SMALL] == {"n": 37}


def test_not_every_size_must_be_declared(tmp_path: Path) -> None:
    reference = REFERENCE.replace(', "full": {"n": 4000}', "")
    problem = load_problem(write_problem(tmp_path / "p", reference=reference))
    assert set(problem.workloads) == {StandardWorkload.SMALL, StandardWorkload.MEDIUM}
    with pytest.raises(ProblemError, match=r"\bfull\b"):
        load_reference(problem).inputs(StandardWorkload.FULL)


def test_a_problem_is_judged_in_its_own_precision_where_it_lacks_the_one_asked_for(tmp_path: Path) -> None:
    problem = load_problem(write_problem(tmp_path / "p", reference=REFERENCE + 'PRECISIONS = ("fp32", "bf16")'))
    assert [problem.precision_for(asked) for asked in ("fp16", "bf16", "fp32")] == ["fp32", "bf16", "fp32"]


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
        (sized('{"small": {"n": 1}, "full": {"m": 1}}'), "different parameters"),
        (sized('{"small": {"n": 1, "factor": 2}}'), "factor"),
        (sized('{"small": {"m": 1}}'), "'n'"),
        (REFERENCE.replace('{"factor": 2.5}', "2.5"), "SCALARS"),
        (REFERENCE + 'OUTPUTS = "output"', "OUTPUTS"),
        (REFERENCE + 'OUTPUTS = ("y", "y")', "OUTPUTS"),
        (REFERENCE + 'OUTPUTS = ("y",)', "'output'"),
        (REFERENCE + 'DTYPES = ["int32"]', "DTYPES"),
        (REFERENCE + 'DTYPES = {"x": "float7"}', "'float7'"),
        (REFERENCE + 'DTYPES = {"x": "float4_e2m1"}', "float4_e2m1"),
        (REFERENCE + 'PRECISIONS = ("fp8",)', "'fp8'"),
        (REFERENCE + "PRECISIONS = ()", "PRECISIONS"),
        (REFERENCE + 'RANGES = {"x": (3, 3)}', "RANGES"),
        (REFERENCE + 'RANGES = {"x": 255}', "RANGES"),
        (REFERENCE + 'KEPT = "x"', "KEPT"),
        (REFERENCE + "PARTLY_READ = (1,)", "PARTLY_READ"),
        (REFERENCE + 'INDICES = {"lost": ("x", 0)}', "INDICES"),
        (REFERENCE + 'INDICES = {"output": "x"}', "INDICES"),
        (REFERENCE.replace("2.5", '"2.5"'), "'factor'"),
        (REFERENCE.replace('SCALARS = {"factor": 2.5}', ""), "'factor'"),
    ],
)
def test_a_contradictory_reference_is_refused(tmp_path: Path, reference: str, message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        load_problem(write_problem(tmp_path / "p", reference=reference))
    assert message in caught.value.message
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_messages_name_file_and_line_and_what_is_declared(tmp_path: Path) -> None:
    lines = REFERENCE.splitlines()
    at = next(number for number, line in enumerate(lines, start=1) if line.startswith("SCALARS"))
    with pytest.raises(ProblemError, match=rf"reference\.py:{at}: "):
        load_problem(write_problem(tmp_path / "p", reference=REFERENCE.replace("2.5", "None")))
    asking = DRIVER.replace('d.size("n")', 'd.size("m")')
    at = next(number for number, line in enumerate(asking.splitlines(), start=1) if 'd.size("m")' in line)
    with pytest.raises(ProblemError, match=rf"driver\.cpp:{at}: .*'m'") as caught:
        load_problem(write_problem(tmp_path / "q", driver=asking))
    assert "n" in caught.value.hint.split()


@pytest.mark.parametrize("kind", ["input", "weight"])
def test_a_driver_that_asks_for_a_tensor_that_does_not_exist_is_refused(tmp_path: Path, kind: str) -> None:
    driver = DRIVER.replace('d.input("x")', f'd.{kind}("absent")')
    problem = load_problem(write_problem(tmp_path / "p", driver=driver))
    with pytest.raises(ProblemError, match=rf"driver\.cpp:\d+: .*{kind} 'absent'"):
        tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)


def test_what_a_reference_raises_is_told_with_its_line(tmp_path: Path) -> None:
    lines = REFERENCE.splitlines()
    at = next(number for number, line in enumerate(lines) if "def get_inputs" in line)
    lines.insert(at + 1, "    raise RuntimeError('first line\\nsecond line')")
    problem = load_problem(write_problem(tmp_path / "p", reference="\n".join(lines)))
    with pytest.raises(ProblemError, match=rf"reference\.py:{at + 2}: RuntimeError: first line second line"):
        tensor_specs(problem, StandardWorkload.SMALL, Precision.FP16)


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"init": "int main() {}"}, "init.cu"),
        ({"driver": "int main() {}"}, "driver.cpp"),
        ({"driver": DRIVER.replace("KB_DRIVER(call)", "")}, "KB_DRIVER"),
    ],
)
def test_missing_and_unrelated_files_are_refused(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(ProblemError) as caught:
        load_problem(write_problem(tmp_path / "p", **files))
    assert message in caught.value.message


def test_a_problem_may_have_no_start_which_who_needs_one_is_told(tmp_path: Path) -> None:
    problem = load_problem(write_problem(tmp_path / "p", init=None))
    assert not problem.has_start
    with pytest.raises(ProblemError, match=r"no init\.cu"):
        read_start(problem)
    assert load_problem(write_problem(tmp_path / "q")).has_start


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
