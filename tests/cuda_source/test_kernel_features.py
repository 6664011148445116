"""Features are found by what a program must contain, in sources and in machine code."""

from __future__ import annotations

import time

import pytest

from kernelblaster.cuda_source.features import (
    INSTRUCTIONS,
    Feature,
    confirmed,
    machine_counts,
    machine_features,
    shown_by,
    source_features,
)

SNIPPETS = [
    ('asm("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {}");', Feature.WGMMA),
    ("wmma::mma_sync(c, a, b, c);", Feature.MMA_SYNC),
    ('asm("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0];");', Feature.TMA_LOAD),
    ('asm("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0];");', Feature.TMA_STORE),
    ('asm("cp.async.cg.shared.global [%0], [%1], 16;");', Feature.CP_ASYNC),
    ("__global__ void __cluster_dims__(8, 1, 1) k();", Feature.CLUSTER),
    ("x = *cluster.map_shared_rank(&y, 1);", Feature.DISTRIBUTED_SHARED),
    ("atomicAdd(&sum, 1.0f);", Feature.ATOMICS),
    ("const float4 v = reinterpret_cast<const float4 *>(x)[i];", Feature.VECTOR_ACCESS),
    ("__stcs(y + i, v);", Feature.CACHE_HINTS),
    ("cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, 0);", Feature.PERSISTENT),
]


@pytest.mark.parametrize(("source", "feature"), SNIPPETS, ids=lambda value: str(value)[:24])
def test_a_source_has_what_it_says_and_comments_do_not_count(source: str, feature: Feature) -> None:
    assert feature in source_features(source)
    assert feature not in source_features(f"// {source}\n/* {source} */")


def test_machine_code_has_the_last_word_on_what_it_can_show() -> None:
    written = source_features('asm("wgmma.mma_async.sync");  int sms = props.multiProcessorCount;')
    ran = machine_features("HMMA.16816.F32 R4, R8, R12, R4 ;\nLDG.E.128 R0, [R2.64] ;\nUTMALDG.2D [UR8], [UR4] ;")
    assert ran == {Feature.MMA_SYNC, Feature.VECTOR_ACCESS, Feature.TMA_LOAD}
    assert confirmed(written, ran) == ran | {Feature.PERSISTENT}
    assert confirmed(written, None) == written


def test_instructions_are_counted_by_what_they_show() -> None:
    vector = "LDG.E.128 R0, [R2.64] ;\nSTG.E.128 [R2.64], R0 ;"
    listing = f"/*0000*/ {vector}\nHGMMA.64x256x16.F32 R24, gdesc[UR4] ;\n/*0040*/ USETMAXREG.DEALLOC 0x28 ;"
    counts = machine_counts(listing)
    assert counts == {INSTRUCTIONS: 2, Feature.VECTOR_ACCESS: 2, Feature.WGMMA: 1, Feature.SET_REGISTERS: 1}
    assert shown_by(counts | {"of_another_version": 3}) == machine_features(listing)
    assert shown_by({INSTRUCTIONS: 7}) == frozenset()


def test_a_listing_without_instructions_refutes_nothing() -> None:
    header = "Fatbin elf code:\n================\narch = sm_90a\n\tcode for sm_90a\n\t.target\tsm_90a\n"
    assert machine_counts(header) is None
    assert machine_counts("") is None
    assert shown_by({}) is None, "what earlier versions stored of one"
    assert shown_by(None) is None


def test_unfused_multiplies_are_no_products_of_tensor_cores() -> None:
    assert machine_features("HFMA2.MMA R3, -RZ, RZ, 0, 0 ;") == frozenset()


@pytest.mark.parametrize("repeated", ["ld.a", "atom.", "cp.async.bulk.tensor.", "STG", "cp_async_bulk_tensor_"])
def test_text_that_never_becomes_a_feature_is_searched_once(repeated: str) -> None:
    """Of a quarter of a MiB, which a search from each place to the end would take minutes for."""
    text = repeated * ((256 << 10) // len(repeated))
    began = time.process_time()
    source_features(text)
    machine_counts(text)
    assert time.process_time() - began < 20
