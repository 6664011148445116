"""The code memory keeps the fastest core of each place, however documents merge, and lends one of another problem."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.agent.sources import strip_comments
from kernelblaster.api.remembering import remember_recordings
from kernelblaster.config import DATASET
from kernelblaster.cuda_source.digest import source_digest
from kernelblaster.devices.facts import DeviceKind, Library
from kernelblaster.knowledge.cores import (
    MOST_CHARACTERS,
    Wanted,
    donor_for,
    merge_cores,
    own_kernel,
    shown_code,
    whole_code,
)
from kernelblaster.knowledge.experience import Experience
from kernelblaster.knowledge.schema import MOST_WHOLE, Core, ShapeRegime
from kernelblaster.knowledge.store import KnowledgeStore, seed_path
from kernelblaster.models.recorded import read_recording
from kernelblaster.paths import data_dir
from kernelblaster.problems.dataset import find_problem
from kernelblaster.problems.families import OpFamily
from kernelblaster.problems.problem import Precision

REPOSITORY = Path(__file__).parents[2]
CORES = st.builds(
    Core,
    problem=st.sampled_from(["level1/001", "level1/023", "level2/086"]),
    op_family=st.sampled_from([OpFamily.MATMUL, OpFamily.SOFTMAX, OpFamily.FUSED_MATMUL]),
    arch=st.sampled_from(["sm_80", "sm_90"]),
    device_kind=st.sampled_from(list(DeviceKind)),
    precision=st.sampled_from(list(Precision)),
    regime=st.sampled_from(list(ShapeRegime)),
    median_us=st.sampled_from([1.0, 2.0, 50.0]),
    attainable_us=st.none() | st.sampled_from([0.5, 1.0]),
    source=st.sampled_from(["a", "b", "c"]),
    whole=st.none() | st.sampled_from(["// a", "// b"]),
    definition=st.none() | st.sampled_from(["1", "2"]),
)
WANTED = Wanted("level1/023", OpFamily.MATMUL, "sm_90", DeviceKind.CUDA, Precision.FP16, ShapeRegime.LONG, 0.4)
CONTENT = ("median_us", "attainable_us", "source", "excerpt", "whole")
"""Fields that do not tell the place of a core."""
GOOD = Core(
    problem="level2/086", op_family=OpFamily.FUSED_MATMUL, arch="sm_90", device_kind=DeviceKind.CUDA,
    precision=Precision.FP16, regime=ShapeRegime.LONG, median_us=10, attainable_us=9, source="x",
)  # fmt: skip


@given(st.lists(CORES, max_size=6), st.lists(CORES, max_size=6), st.lists(CORES, max_size=6))
def test_merging_is_a_union_that_keeps_the_fastest(a: list[Core], b: list[Core], c: list[Core]) -> None:
    assert merge_cores(a, b) == merge_cores(b, a)
    assert merge_cores(merge_cores(a, b), c) == merge_cores(a, merge_cores(b, c))
    once = merge_cores(a, b)
    assert merge_cores(once, once) == once
    assert fastest((*a, *b)) == fastest(once)
    assert fastest(core for core in (*a, *b) if core.whole) == fastest(core for core in once if core.whole)


def fastest(cores: Iterable[Core]) -> dict[object, float]:
    """Least time of each place."""
    times: dict[object, float] = {}
    for core in cores:
        place = tuple(getattr(core, name) for name in Core.model_fields if name not in CONTENT)
        times[place] = min(core.median_us, times.get(place, core.median_us))
    return times


def test_a_core_that_was_kept_in_part_gives_way_to_itself_as_a_whole_and_not_to_a_slower_one() -> None:
    whole, slower = (GOOD.model_copy(update={"whole": "// x", "median_us": us}) for us in (GOOD.median_us, 11))
    assert merge_cores([GOOD], [whole]) == (whole,)
    assert set(merge_cores([GOOD], [slower])) == {GOOD, slower}
    assert merge_cores(merge_cores([GOOD], [slower]), [whole]) == (whole,)


def test_a_search_begins_with_the_fastest_whole_kernel_of_its_problem_that_runs_here_its_regime_first() -> None:
    own = GOOD.model_copy(update={"problem": WANTED.problem, "whole": "// x", "median_us": 20})
    quick = own.model_copy(update={"regime": ShapeRegime.SHORT, "median_us": 5})
    part, foreign = own.model_copy(update={"whole": None, "median_us": 1}), GOOD.model_copy(update={"whole": "// y"})
    assert own_kernel(WANTED, [quick, part, foreign, own]) == own
    assert own_kernel(WANTED, [quick, part, foreign]) == quick
    elsewhere = [
        {"arch": "sm_80"}, {"device_kind": DeviceKind.EMULATED}, {"precision": Precision.FP32},
        {"libraries": (Library.CUBLAS,)},
    ]  # fmt: skip
    assert own_kernel(WANTED, [part, foreign, *(own.model_copy(update=change) for change in elsewhere)]) is None


def test_a_problem_of_another_data_set_with_the_same_id_is_another_problem() -> None:
    wanted = dataclasses.replace(WANTED, definition="ours")
    own = GOOD.model_copy(update={"problem": WANTED.problem, "whole": "// x"})
    ours, theirs = (own.model_copy(update={"definition": whose}) for whose in ("ours", "theirs"))
    assert own_kernel(wanted, [theirs]) is None
    assert own_kernel(wanted, [theirs, ours]) == ours
    assert own_kernel(wanted, [own]) == own, "files of earlier versions do not say"
    assert donor_for(wanted, [ours, own]) is None
    assert donor_for(wanted, [theirs]) == theirs


def test_a_kernel_is_kept_whole_up_to_64_kilobytes() -> None:
    assert whole_code("x" * MOST_WHOLE) == "x" * MOST_WHOLE
    assert whole_code("ä" * (MOST_WHOLE // 2 + 1)) is None


@given(st.lists(CORES, max_size=8))
def test_a_donor_is_of_another_problem_runs_here_and_is_better_than_the_parent(cores: list[Core]) -> None:
    found = donor_for(WANTED, cores)
    if found is not None:
        assert found.problem != WANTED.problem
        assert (found.arch, found.device_kind) == (WANTED.arch, WANTED.device_kind)
        assert found.op_family is not OpFamily.SOFTMAX
        assert found.share is None or found.share > 0.4


def test_the_same_family_comes_before_a_kindred_one_and_libraries_must_be_allowed() -> None:
    same = GOOD.model_copy(update={"op_family": OpFamily.MATMUL, "problem": "level1/001", "attainable_us": 5})
    assert donor_for(WANTED, [GOOD, same]) == same
    linked = same.model_copy(update={"libraries": (Library.CUBLAS,)})
    assert donor_for(WANTED, [GOOD, linked]) == GOOD
    assert donor_for(dataclasses.replace(WANTED, share=0.95), [GOOD, same]) is None


def test_what_one_experiment_remembers_another_takes_over(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "optimization_database.json").write_bytes(seed_path().read_bytes())
    one = Experience(KnowledgeStore(tmp_path / "one" / "optimization_database.json"))
    one.remember(GOOD)
    one.remember(GOOD.model_copy(update={"median_us": 99.0, "source": "slower"}))
    exported = one.export()
    other = Experience(KnowledgeStore(tmp_path / "other" / "optimization_database.json"))
    other.merge([exported])
    assert GOOD in other.document().cores
    assert "slower" not in {core.source for core in other.document().cores}
    one.close()
    other.close()


def test_the_shipped_recordings_hold_kernels_that_a_prompt_can_show(tmp_path: Path) -> None:
    target = tmp_path / "kb.json"
    base, found = remember_recordings([data_dir() / "recordings" / "h200.jsonl.gz"], target)
    assert found
    assert set(found) <= set(base.document.cores)
    assert all(len(core.source) <= MOST_CHARACTERS and core.arch == "sm_90" for core in found)
    assert remember_recordings([data_dir() / "recordings" / "h200.jsonl.gz"], target)[0].document == base.document


def test_a_core_of_a_recording_is_whole_to_the_character() -> None:
    exchanges = read_recording(data_dir() / "recordings" / "h200.jsonl.gz").exchanges
    parents = {one.tags.get("parent_sha256") for one in exchanges}
    cores = KnowledgeStore(seed_path(), owned=False).load().document.cores
    assert sum(source_digest(core.whole or "") in parents for core in cores) == 9


def test_the_shipped_seed_holds_whole_kernels_none_of_which_the_judge_refuses() -> None:
    cores = KnowledgeStore(seed_path(), owned=False).load().document.cores
    assert len(cores) == 50
    refused = (
        REPOSITORY / "docs/results/h200_kernels/level1_026_GELU.cu"
    ).read_text()  # NaN where the input is infinite
    assert refused not in [core.whole for core in cores]
    for core in cores:
        assert core.definition == find_problem(core.problem, data_dir() / DATASET).definition_digest
        assert core.whole is not None
        shown = shown_code(strip_comments(core.whole), "")
        assert shown is not None
        assert shown.excerpt == core.excerpt
        assert shown.excerpt or shown.source == core.source


def test_the_shipped_seed_remembers_tensor_core_products_of_the_recordings() -> None:
    cores = KnowledgeStore(seed_path(), owned=False).load().document.cores
    products = [core for core in cores if "wgmma.mma_async" in core.source]
    assert {OpFamily.MATMUL, OpFamily.FUSED_MATMUL} <= {core.op_family for core in products}
    assert all(core.excerpt and len(core.source) <= MOST_CHARACTERS for core in products)
    assert donor_for(dataclasses.replace(WANTED, problem="level1/007", share=0.3), cores) in products
