"""How often the rules lead with the right bottleneck, on profiles of an H200 labelled by hand."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import pytest
from knowledge_samples import facts
from pydantic import BaseModel

from kernelblaster.cuda_source.features import Feature
from kernelblaster.devices.profiles import KernelProfile, Profile, ProfileSource, totals
from kernelblaster.evaluation.results import Timing
from kernelblaster.knowledge.decisions import Classification
from kernelblaster.knowledge.store import KnowledgeStore, seed_path

FIXTURES = Path(__file__).parents[1] / "fixtures"
LEADS, AGREES, AMONG = 0.80, 0.90, 0.90
"""Least shares of profiles: the label leads; the lead is the label or also right; the label is among the causes."""


class LabelledProfile(BaseModel):
    """One profiled call, what limits it, what else would be right, and why."""

    id: str
    origin: str
    label: str
    accepted: list[str]
    reason: str
    earlier: str | None = None
    """What the rules of the first release, or a model where they did not decide, called it in the search."""
    us: float | None = None
    attainable_us: float | None = None
    features: list[Feature] | None = None
    kernels: list[KernelProfile] = []


@cache
def labelled() -> tuple[LabelledProfile, ...]:
    held = json.loads((FIXTURES / "profiles" / "labelled.json").read_text())
    return tuple(LabelledProfile.model_validate(one) for one in held["profiles"])


@cache
def captured() -> dict[str, list[KernelProfile]]:
    cases = json.loads(gzip.decompress((FIXTURES / "conformance" / "h200.json.gz").read_bytes()))["cases"]
    return {
        f"{case['program']}/{case['run']['case']}": [KernelProfile.model_validate(one) for one in case["kernels"]]
        for case in cases
    }


def classified(one: LabelledProfile) -> Classification:
    kernels = one.kernels or captured()[one.id]
    timing = None
    if one.us is not None:
        timing = Timing(
            median_us=one.us, low_us=one.us, high_us=one.us, iqr_us=0, samples=1, floor_us=None, floor_fraction=None,
            attainable_us=one.attainable_us, modelled=False,
        )  # fmt: skip
    base = KnowledgeStore(seed_path(), owned=False).load()
    profile = Profile(source=ProfileSource.NCU, kernels=kernels, totals=totals(kernels))
    features = frozenset(one.features) if one.features is not None else None
    return base.classify(profile, facts(), timing, features)


def test_every_label_is_a_state_with_a_reason() -> None:
    states = KnowledgeStore(seed_path(), owned=False).load().states
    assert len(labelled()) >= 60
    for one in labelled():
        assert {one.label, *one.accepted} <= set(states), one.id
        assert one.reason
        assert one.label not in one.accepted


def test_the_rules_agree_with_the_labels() -> None:
    found = {one.id: classified(one) for one in labelled()}
    leads = sum(found[one.id].state == one.label for one in labelled())
    agrees = sum(found[one.id].state in (one.label, *one.accepted) for one in labelled())
    among = sum(one.label in {cause.state for cause in found[one.id].causes} for one in labelled())
    count = len(labelled())
    assert (leads / count, agrees / count, among / count) >= (LEADS, AGREES, AMONG)
    assert agrees / count >= AGREES
    assert among / count >= AMONG


def test_no_estimated_gain_exceeds_the_headroom() -> None:
    for one in labelled():
        if one.us is not None and one.attainable_us is not None:
            gains = [cause.gain for cause in classified(one).causes if cause.gain is not None]
            assert max(gains, default=1.0) <= max(1.0, one.us / one.attainable_us) + 1e-9, one.id


@pytest.mark.parametrize("problem", ["level2/086", "level2/012"])
def test_products_on_tensor_cores_are_not_called_short_of_blocks(problem: str) -> None:
    """128 blocks of 288 threads on 132 SMs with a pipe at 50 to 79 % are no lack of parallelism."""
    tensor = [one for one in labelled() if one.id.startswith(problem) and Feature.WGMMA in (one.features or [])]
    assert tensor
    assert all("insufficient_parallelism" not in {c.state for c in classified(one).causes} for one in tensor)
