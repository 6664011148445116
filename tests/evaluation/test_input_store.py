"""Input sets: repeatable, bounded, cleaned up, and faithful to what a problem promises about its inputs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from budget_support import RELU_SLUG, problem, reduced, tensors

from kernelblaster.errors import DeviceError
from kernelblaster.evaluation.correctness.input_store import InputStore
from kernelblaster.evaluation.inputs import scratch
from kernelblaster.evaluation.inputs.distributions import Distribution
from kernelblaster.evaluation.inputs.drawing import density, randomize_constants, transform
from kernelblaster.evaluation.inputs.keys import InputKey
from kernelblaster.evaluation.inputs.plan import plan_inputs, secret_seed
from kernelblaster.evaluation.processes.workspace import Workspace
from kernelblaster.paths import data_dir
from kernelblaster.problems.loader import load_problem
from kernelblaster.problems.problem import Precision, Problem, StandardWorkload
from kernelblaster.problems.reference import tensor_specs

CROSS_ENTROPY = "level1/095_CrossEntropyLoss"


@pytest.fixture
def relu(tmp_path: Path) -> Problem:
    return reduced(RELU_SLUG, tmp_path / "reduced")


def key(
    problem: Problem,
    distribution: Distribution = Distribution.NORMAL,
    seed: int = 3,
    precision: Precision = Precision.FP16,
) -> InputKey:
    return InputKey(problem, precision, StandardWorkload.SMALL, (distribution, Distribution.DECLARED), seed)


def test_a_seed_gives_the_same_bytes_in_another_store(relu: Problem, tmp_path: Path) -> None:
    contents = []
    for _ in range(2):
        with InputStore(tmp_path) as store, store.use(key(relu)) as drawn:
            contents.append((drawn.files["x"].read_bytes(), drawn.expected["output"].values))
    assert contents[0][0] == contents[1][0]
    assert torch.equal(contents[0][1], contents[1][1])


def test_seeds_and_distributions_differ(relu: Problem, store: InputStore) -> None:
    seen = set()
    informative = set(Distribution) - {Distribution.NEGATIVE, Distribution.LEVELS}  # without channels those are offset
    for distribution in informative:
        for seed in (1, 2):
            with store.use(key(relu, distribution, seed)) as drawn:
                seen.add(drawn.files["x"].read_bytes())
    assert len(seen) == 2 * len(informative)


def test_the_reference_is_of_the_quantised_values(relu: Problem, store: InputStore) -> None:
    with store.use(key(relu)) as drawn:
        (x,) = tensors(drawn)
        assert torch.equal(drawn.expected["output"].values, x.clamp(min=0))


def test_integer_inputs_stay_as_declared(store: InputStore) -> None:
    for distribution in Distribution:
        with store.use(key(problem(CROSS_ENTROPY), distribution)) as drawn:
            targets = tensors(drawn)[1]
            assert targets.dtype == torch.int64
            assert 0 <= int(targets.min()) <= int(targets.max()) < 1001


def test_a_distribution_that_shows_nothing_gives_way(relu: Problem, store: InputStore) -> None:
    with store.use(key(relu, Distribution.NEGATIVE)) as drawn:
        assert drawn.distribution is Distribution.DECLARED


def test_files_are_dropped_oldest_first_but_not_while_used(relu: Problem, tmp_path: Path) -> None:
    with InputStore(tmp_path, file_bytes=1) as store:
        with store.use(key(relu, seed=1)) as first:
            with store.use(key(relu, seed=2)):
                assert first.files["x"].exists()
            with store.use(key(relu, seed=3)) as third:
                assert first.files["x"].exists()
        with store.use(key(relu, seed=4)):
            assert not first.files["x"].exists()
            assert not third.files["x"].exists()


def test_stores_share_the_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each may take what the others leave, and an equal part in any case; a linked file counts once."""
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(scratch.shutil, "disk_usage", lambda path: usage._replace(free=10_000 * 4096))
    first, second = scratch.create(tmp_path), scratch.create(tmp_path)
    try:
        assert scratch.fair_share(first, 0, 0.5) == 5000 * 4096
        (second / "set").mkdir()
        (second / "set" / "0.bin").write_bytes(os.urandom(1000 * 4096))
        (second / "link").hardlink_to(second / "set" / "0.bin")
        pool = 5500 * 4096
        assert scratch.fair_share(first, 0, 0.5) == pool - 1000 * 4096
        assert scratch.fair_share(second, 1000 * 4096, 0.5) == pool
        (second / "more").write_bytes(os.urandom(7000 * 4096))
        pool = 9000 * 4096
        assert scratch.fair_share(first, 0, 0.5) == pool // 2
    finally:
        scratch.remove(first)
        scratch.remove(second)


def test_a_store_gives_way_to_another(relu: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with InputStore(tmp_path) as store:
        with store.use(key(relu, seed=1)) as drawn:
            kept, workload = drawn.files["x"], drawn.file_bytes
        with store.use(key(relu, seed=2)):
            assert kept.exists()
        usage = shutil.disk_usage(tmp_path)
        monkeypatch.setattr(scratch.shutil, "disk_usage", lambda path: usage._replace(free=workload))
        with InputStore(tmp_path) as other, other.use(key(relu, seed=1)) as lent:
            with store.use(key(relu, seed=3)):
                assert not kept.exists()
            assert lent.files["x"].exists()


def test_references_in_memory_are_bounded(relu: Problem, tmp_path: Path) -> None:
    with InputStore(tmp_path, reference_bytes=1) as store:
        for seed in range(3):
            with store.use(key(relu, seed=seed)):
                pass
        assert len(list(store.directory.iterdir())) == 1


def test_a_reference_in_use_takes_the_place_of_no_other(relu: Problem, tmp_path: Path) -> None:
    with InputStore(tmp_path) as unbounded, unbounded.use(key(relu)) as drawn:
        bound = drawn.reference_bytes
    with InputStore(tmp_path, reference_bytes=bound) as store:
        store.draw([key(relu, seed=1)])
        with store.use(key(relu, seed=2)), store.use(key(relu, seed=3)):
            assert len(list(store.directory.iterdir())) == 3
        store.draw([key(relu, seed=4)])
        assert len(list(store.directory.iterdir())) == 2


def test_threads_draw_a_set_once(relu: Problem, tmp_path: Path) -> None:
    with InputStore(tmp_path) as store:

        def use(_: int) -> int:
            with store.use(key(relu)) as drawn:
                return id(drawn)

        with ThreadPoolExecutor(8) as pool:
            assert len(set(pool.map(use, range(16)))) == 1


def test_shapes_are_found_while_another_thread_computes_a_reference(store: InputStore) -> None:
    """The default type of torch is global: a reference in float64 must not reach into another problem's shapes."""
    computed, asked = problem("level3/001_MLP"), problem("level2/001_Conv2D_ReLU_BiasAdd")
    with ThreadPoolExecutor(2) as pool:
        drawing = pool.submit(lambda: store.draw(key(computed, seed=seed) for seed in range(8)))
        while not drawing.done():
            assert len(tensor_specs(asked, StandardWorkload.SMALL, Precision.BF16)) == 5
        drawing.result()


def test_closing_removes_every_file(relu: Problem, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    with InputStore(root) as store, store.use(key(relu)):
        assert list(root.iterdir())
    assert not list(root.iterdir())


def test_directories_of_dead_processes_are_swept(tmp_path: Path) -> None:
    child = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
    dead = tmp_path / f"kernelblaster-inputs-{int(child.stdout)}-abc"
    alive = tmp_path / f"kernelblaster-inputs-{os.getpid()}-abc"
    other = tmp_path / "kernelblaster-inputs-whatever"
    for path in (dead, alive, other):
        path.mkdir()
    assert scratch.sweep(tmp_path) == [dead]
    assert not dead.exists()
    assert alive.exists()
    assert other.exists()


def test_an_unusable_directory_is_a_device_error_with_a_hint(tmp_path: Path) -> None:
    with pytest.raises(DeviceError) as caught:
        InputStore(tmp_path / "missing")
    assert caught.value.hint


def test_a_bench_exchanges_values_behind_the_same_path(relu: Problem, store: InputStore) -> None:
    with store.use(key(relu, seed=1)) as first, store.use(key(relu, seed=2)) as second:
        with Workspace(store.directory, first) as workspace:
            path = next(t.path for t in workspace.job.tensors if t.spec.name == "x")
            before = path.read_bytes()
            workspace.point_to(second)
            assert before == first.files["x"].read_bytes()
            assert path.read_bytes() == second.files["x"].read_bytes()
        assert first.files["x"].exists()
        assert not path.exists()


def test_a_file_that_is_set_aside_is_written_by_no_call_until_it_may_be(relu: Problem, store: InputStore) -> None:
    with store.use(key(relu, seed=1)) as drawn, Workspace(store.directory, drawn) as workspace:
        (name, output), *_ = workspace.outputs.items()
        output.write_bytes(b"first")
        first = workspace.keep_outputs()
        assert not output.exists()
        output.write_bytes(b"second")
        assert first[name].read_bytes() == b"first"
        number = first[name].stat().st_ino
        workspace.reuse(first)
        second = workspace.keep_outputs()
        assert second[name].read_bytes() == b"second"
        assert output.stat().st_ino == number


GENERATOR = torch.Generator().manual_seed(3)
SYMMETRIC = torch.rand(20, 20)
STRUCTURED: dict[str, tuple[torch.Tensor, Callable[[torch.Tensor], bool]]] = {
    "triangular": (torch.rand(33, 33).tril(), lambda t: torch.equal(t, t.tril())),
    "symmetric": (SYMMETRIC + SYMMETRIC.T, lambda t: torch.equal(t, t.T)),
    "signs": (torch.randint(0, 2, (500,)) * 2.0 - 1, lambda t: set(t.unique().tolist()) <= {-1.0, 1.0}),
    "mask": ((torch.rand(500) > 0.5).float(), lambda t: set(t.unique().tolist()) <= {0.0, 1.0}),
}


@pytest.mark.parametrize("name", STRUCTURED)
@pytest.mark.parametrize("distribution", Distribution)
def test_structure_survives_every_distribution(name: str, distribution: Distribution) -> None:
    tensor, holds = STRUCTURED[name]
    assert holds(transform(tensor, distribution, 0, GENERATOR))


@pytest.mark.parametrize("name", [*STRUCTURED, "uniform", "normal"])
@pytest.mark.parametrize("distribution", Distribution)
def test_what_the_problem_declared_is_left_as_it_was(name: str, distribution: Distribution) -> None:
    free = {"uniform": torch.rand(8, 48), "normal": torch.randn(8, 48)}
    tensor = free[name] if name in free else STRUCTURED[name][0]
    before = tensor.clone()
    transform(tensor, distribution, 3, GENERATOR)
    assert torch.equal(tensor, before)


def test_distributions_are_what_they_are_called() -> None:
    uniform = torch.rand(64, 1000)
    assert torch.equal(transform(uniform, Distribution.DECLARED, 0, GENERATOR), uniform)
    assert float(transform(uniform, Distribution.NEGATIVE, 0, GENERATOR).max()) <= 0
    normal = transform(uniform, Distribution.NORMAL, 0, GENERATOR)
    assert abs(float(normal.mean())) < 0.02
    assert 0.8 < float(normal.std()) < 1.3
    assert float(transform(uniform, Distribution.LARGE, 14, GENERATOR).abs().max()) > 2**14
    assert float(transform(uniform, Distribution.TINY, -10, GENERATOR).abs().max()) < 2**-7
    cancelling = transform(uniform, Distribution.CANCELLING, 0, GENERATOR)
    assert float(cancelling.sum(dim=1).abs().mean()) < 0.3 * float(normal.sum(dim=1).abs().mean())


def test_offset_samples_lie_far_from_zero_in_every_order() -> None:
    offset = transform(torch.randn(8, 1000), Distribution.OFFSET, 9, GENERATOR)
    assert offset.mean(dim=1).sign().tolist() == [1, -1, 1, -1] * 2
    assert float((offset.abs() - 512).abs().max()) < 8
    steps = offset.diff(dim=1)
    assert float(steps[0].min()) >= 0 >= float(steps[1].max())
    assert float(steps[2].min()) < 0 < float(steps[2].max())


def test_sparse_samples_keep_borders_of_tiles_elements_at_random_or_nothing() -> None:
    sparse = transform(torch.randn(28, 70), Distribution.SPARSE, 8, GENERATOR)
    kept = [row.nonzero().reshape(-1).tolist() for row in sparse]
    borders = [0, 31, 32, 63, 64, 69]
    assert kept[::4] == [borders] * 7
    assert [len(places) for places in kept[1::4]] == [1] * 7
    assert kept[1::8] == [[69], [0], [31], [32]]
    assert len({tuple(places) for places in (*kept[5::8], *kept[2::4])}) > 7
    assert float(sparse[1::4].amax(dim=1).min()) > 200
    assert kept[3::4] == [[]] * 7


@pytest.mark.parametrize("shape", [(), (5,), (1, 7), (3, 4, 5, 6)])
@pytest.mark.parametrize("distribution", Distribution)
def test_every_shape_can_be_drawn(shape: tuple[int, ...], distribution: Distribution) -> None:
    assert transform(torch.randn(shape), distribution, 2, GENERATOR).shape == shape


@pytest.mark.parametrize("part", [slice(0, None, 2), slice(0, 500), slice(500, None)])
def test_no_half_of_an_axis_stands_for_the_whole(part: slice) -> None:
    x = transform(torch.rand(64, 1000), Distribution.NORMAL, 0, GENERATOR).square()
    assert abs(float(x[:, part].mean() / x.mean()) - 1) > 0.05


def test_constant_weights_come_alive_and_others_stay() -> None:
    generator = torch.Generator().manual_seed(1)
    scale, shift = randomize_constants(torch.ones(64), generator), randomize_constants(torch.zeros(64), generator)
    assert float(scale.std()) > 0.1
    assert float(scale.min()) > 0
    assert float(shift.std()) > 0.1
    drawn = torch.randn(64)
    assert torch.equal(randomize_constants(drawn, generator), drawn)
    assert density(torch.eye(10)) == pytest.approx(0.1)


def test_large_values_are_coarse_where_layers_would_lose_their_digits(store: InputStore) -> None:
    attention = load_problem(data_dir() / "kernelbench-cuda" / "level3" / "043_MinGPTCausalAttention")
    large = next(
        k for k in plan_inputs(attention, Precision.FP16, StandardWorkload.SMALL, 9, 5).small if "large" in k.draws
    )
    with store.use(large) as drawn:
        values = torch.from_file(str(drawn.files["x"]), size=2 * 67 * 57, dtype=torch.float16)
        assert drawn.distribution is Distribution.COARSE
        assert len(values.unique()) == 3
        assert drawn.expected["output"].scale is not None
        assert drawn.expected["output"].scale.plain_norm < 0.01


def test_plans_share_seeds_between_candidates_only(relu: Problem) -> None:
    plan = plan_inputs(relu, Precision.FP16, StandardWorkload.SMALL, 10, 5)
    assert plan.timed == plan.small[-1]
    assert plan == plan_inputs(relu, Precision.FP16, StandardWorkload.SMALL, 10, 5)
    assert len({k.seed for k in plan.small}) == 10
    assert {k.draws[0] for k in plan.small} == set(Distribution) - {
        Distribution.COARSE,
        Distribution.BURST,
        Distribution.LEVELS,
    }
    assert plan_inputs(relu, Precision.BF16, StandardWorkload.SMALL, 9, 5).small[0].seed != plan.small[0].seed
    assert secret_seed() != secret_seed()


def test_who_waits_is_told_what_is_drawn_when_it_is_drawn(tmp_path: Path, relu: Problem) -> None:
    told: list[str] = []
    with InputStore(tmp_path, tell=told.append) as store:
        store.draw([key(relu)] * 2)
        assert told == [f"drawing normal inputs of {relu.id} at size small and computing their reference"]
        store.draw([replace(key(relu), perturbation=7)])
        assert told[1:] == [f"computing the reference of a judged timed call of {relu.id} at size small"]
