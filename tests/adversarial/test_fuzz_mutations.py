"""Mutants of planted kernels are the same for the same seed, and their tokens say what those of the original say."""

from __future__ import annotations

import random
from itertools import islice

import pytest
from court import TrustRow
from fuzz_candidates import Change, change, mutants, wanted
from fuzz_mutations import MUTATIONS, Mutation, comment, divide_strings, into_constructor, mutate, rename, splice_names
from planted import Kind, load_all

from kernelblaster.cuda_source.launcher import defines_launcher
from kernelblaster.cuda_source.lexer import TRIVIA, tokens
from kernelblaster.devices.facts import DeviceKind

PLANTED = [planted for planted in load_all() if not planted.in_python]
SOURCES = [one.source for one in PLANTED[::23]]


def spellings(source: str) -> list[str]:
    return [token.spelling for token in tokens(source) if token.kind not in TRIVIA]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.name)
def test_every_rule_applies_somewhere_and_keeps_the_launcher(mutation: Mutation) -> None:
    written = ((one.source, mutation.rewrite(one.source, random.Random(1))) for one in PLANTED)
    changed = ((old, new) for old, new in written if new is not None and new != old)
    old, new = next(changed)
    assert defines_launcher(new) == defines_launcher(old)


@pytest.mark.parametrize("source", SOURCES[::6])
def test_splices_and_comments_change_no_token(source: str) -> None:
    for seed in range(5):
        spliced = splice_names(source, random.Random(seed))
        assert spliced is not None
        assert spellings(spliced) == spellings(source)
        commented = comment(source, random.Random(seed))
        assert commented is not None
        assert spellings(commented) == spellings(source)


def test_a_name_is_changed_everywhere_or_nowhere() -> None:
    source = "static bool look() { return false; }\nvoid launch_gpu_implementation() { if (look()) return; }\n"
    renamed = rename(source, random.Random(3))
    assert renamed is not None
    assert "look" not in renamed
    assert rename("void launch_gpu_implementation() {}\n", random.Random(3)) is None


def test_a_divided_string_says_the_same() -> None:
    divided = divide_strings('f("name"); extern "C" { }', random.Random(0))
    assert divided is not None
    said = "".join(one[1:-1] for one in spellings(divided) if one.startswith('"') and one != '"C"')
    assert said.encode().decode("unicode_escape") == "name"


def test_what_a_launcher_does_first_happens_before_main() -> None:
    source = "static bool attempt() { return true; }\n\nvoid launch_gpu_implementation() { if (!attempt()) return; }\n"
    early = into_constructor(source, random.Random(0))
    assert early is not None
    assert "!kb_early" in early


def test_mutants_are_the_same_for_the_same_seed() -> None:
    first, again, other = ([one.planted.source for one in islice(mutants(PLANTED, seed), 12)] for seed in (1, 1, 2))
    assert first == again
    assert first != other
    originals = {one.source for one in PLANTED}
    assert not originals & set(first)


def test_both_kinds_are_drawn_and_known_gaps_are_not() -> None:
    pool = wanted(DeviceKind.EMULATED, "*")
    assert not [one.name for one in pool if one.gaps]
    kinds = {one.planted.kind for one in islice(mutants(pool, 1), 8)}
    assert kinds == set(Kind)


def test_at_most_so_many_rules_are_applied() -> None:
    for seed in range(20):
        source, rules = mutate(SOURCES[seed % len(SOURCES)], random.Random(seed), most=2)
        assert 0 <= len(rules) <= 2
        assert bool(rules) == (source != SOURCES[seed % len(SOURCES)])


@pytest.mark.parametrize(
    ("kind", "outcome", "expected"),
    [
        (Kind.EXPLOIT, "correct", Change.THROUGH),
        (Kind.EXPLOIT, "harmless", Change.SAME),
        (Kind.EXPLOIT, "compile_error", Change.SAME),
        (Kind.HONEST, "correct", Change.SAME),
        (Kind.HONEST, "compile_error", Change.NOT_COMPILED),
        (Kind.HONEST, "reward_hack", Change.REFUSED),
        (Kind.HONEST, "wrong_values", Change.REFUSED),
    ],
)
def test_which_verdicts_change_sides(kind: Kind, outcome: str, expected: Change) -> None:
    row = TrustRow(
        name="x", kind=kind, row="", problem="level1/19", precision="fp16", size="small", does="",
        expected=["correct"], outcome=outcome, reason="", seconds=0.0,
    )  # fmt: skip
    assert change(kind, row) is expected


def test_an_honest_kernel_may_not_compute_a_headers_name() -> None:
    row = TrustRow(
        name="x", kind=Kind.HONEST, row="", problem="level1/19", precision="fp16", size="small", does="",
        expected=["correct"], outcome="reward_hack", reason="an #include must name its header literally", seconds=0.0,
    )  # fmt: skip
    assert change(Kind.HONEST, row, ["compute_include", "comment"]) is Change.FORBIDDEN
    assert change(Kind.HONEST, row, ["comment"]) is Change.REFUSED
