from __future__ import annotations

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, RootModel

from kernelblaster.models.replies import CandidateReply, UnusableReply, parse_json, parse_reply

LAUNCHER = """#include <kernelblaster/scalar.cuh>
__global__ void k(float* o) { o[0] = 1; }
void launch_gpu_implementation(void* output, void* x, int64_t n) {
    k<<<1, 1>>>(static_cast<float*>(output));
}
"""
HELPER = "__global__ void much_longer_but_only_a_helper(float* o) { " + "o[0] += 1; " * 60 + "}\n"


def fenced(source: str = LAUNCHER, language: str = "cuda", fence: str = "```") -> str:
    return f"{fence}{language}\n{source}{fence}\n"


@pytest.mark.parametrize(
    "language",
    ["cuda", "CUDA", "cpp", "c++", "C++", "cu", "c", "", " cuda ", "cuda title=k.cu", "cpp:k.cu", "cuda-cpp", "k.cu"],
)
@pytest.mark.parametrize("fence", ["```", "~~~", "`````"])
def test_fences_and_languages(language: str, fence: str) -> None:
    assert parse_reply("Sure:\n" + fenced(language=language, fence=fence) + "Done.").source == LAUNCHER


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(fenced(HELPER) + fenced(), id="the launcher, not the longest"),
        pytest.param(fenced() + "and a sketch\n" + fenced(HELPER), id="the launcher first"),
        pytest.param(fenced(LAUNCHER.replace("= 1", "= 2")) + "better:\n" + fenced(), id="the last draft"),
        pytest.param(
            fenced("void launch_gpu_implementation(void*);\n" + HELPER) + fenced(), id="declared is not defined"
        ),
        pytest.param(fenced("// void launch_gpu_implementation() {\n" + HELPER) + fenced(), id="not in a comment"),
        pytest.param(fenced() + fenced(LAUNCHER, "python"), id="no other language"),
        pytest.param(f"<think>\n{fenced(LAUNCHER.replace('1', '3'))}</think>\n{fenced()}", id="thoughts"),
        pytest.param("Use `x` and ``y`` and ```z``` inline.\n" + fenced(), id="backticks in prose"),
        pytest.param("1. like this:\n" + "".join(f"   {line}\n" for line in fenced().splitlines()), id="indented"),
        pytest.param(fenced().replace("\n", "\r\n"), id="CRLF"),
        pytest.param(fenced().replace("\n", "\r"), id="CR"),
        pytest.param("\ufeff" + "\n" + fenced(), id="byte order mark before"),
        pytest.param(f"````markdown\n# Answer\n{fenced()}````\n", id="inside a document"),
        pytest.param(f"```markdown\n# Answer\n{fenced()}```\n", id="inside a document of the same fence"),
        pytest.param(f"````md\n{fenced(LAUNCHER.replace('1', '3'))}````\n{fenced()}", id="a document before it"),
    ],
)
def test_the_right_block_is_taken(text: str) -> None:
    assert parse_reply(text).source == LAUNCHER


def test_without_a_launcher_the_longest_block_is_taken() -> None:
    assert parse_reply(fenced("int a;\n") + fenced(HELPER) + fenced("int b;\n")).source == HELPER


def test_a_block_of_another_fence_inside_stays_inside() -> None:
    source = LAUNCHER + "// ```\n~~~\n"
    assert parse_reply(f"````cuda\n{source}```\n````\n").source == source + "```\n"


@pytest.mark.parametrize("tail", ["", "// the end {\n", 'const char* s = "}{";\n', "char c = '{'; int n = 1'000;\n"])
def test_a_missing_last_fence_is_forgiven_when_the_code_is_whole(tail: str) -> None:
    assert parse_reply("```cuda\n" + LAUNCHER + tail).source == LAUNCHER + tail


@pytest.mark.parametrize("cut", range(1, 60, 4))
def test_code_that_is_cut_off_is_refused(cut: int) -> None:
    with pytest.raises(UnusableReply, match="complete"):
        parse_reply("```cuda\n" + LAUNCHER.rstrip()[:-cut])


@pytest.mark.parametrize("tail", ["/* open", 'auto s = R"(open', "__global__ void next(", "struct A {"])
def test_code_that_is_cut_off_later_is_refused(tail: str) -> None:
    with pytest.raises(UnusableReply):
        parse_reply("```cuda\n" + LAUNCHER + tail)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no fenced code block"),
        ("I cannot help.", "no fenced code block"),
        (LAUNCHER, "no fenced code block"),
        (fenced(language="python"), "python"),
        ("```cuda\n```\n", "no fenced block"),
    ],
)
def test_reasons_tell_what_to_write(text: str, reason: str) -> None:
    with pytest.raises(UnusableReply) as caught:
        parse_reply(text)
    assert reason in caught.value.reason == str(caught.value)
    assert "cuda" in caught.value.reason


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ("EXPECTED_SPEEDUP: 1.8", 1.8),
        ("**EXPECTED_SPEEDUP:** 1.8x", 1.8),
        ("`EXPECTED_SPEEDUP: 2`", 2.0),
        ("expected speedup = ~1.25\u00d7", 1.25),
        ("EXPECTED_SPEEDUP: 1.5-2.0x", 1.5),
        ("EXPECTED_SPEEDUP: 1.5x \u2013 2x", 1.5),
        ("EXPECTED_SPEEDUP: 2 to 1.5", 1.5),
        ("EXPECTED_SPEEDUP: 30%", 1.3),
        ("EXPECTED_SPEEDUP: 20-30 %", 1.2),
        ("EXPECTED_SPEEDUP: 9\nEXPECTED_SPEEDUP: 1.1", 1.1),
        ("EXPECTED_SPEEDUP: .9", 0.9),
        ("EXPECTED_SPEEDUP: 0", None),
        ("EXPECTED_SPEEDUP: 1" + "0" * 400, None),
        ("EXPECTED_SPEEDUP: unknown", None),
        ("it will be 3x faster", None),
    ],
)
def test_stated_speedups(stated: str, expected: float | None) -> None:
    found = parse_reply(f"{stated}\n{fenced()}").expected_speedup
    assert found == (expected if expected is None else pytest.approx(expected))


def test_a_speedup_stated_in_prose_comes_before_one_in_the_code() -> None:
    reply = parse_reply(
        f"Wider loads.\nEXPECTED_SPEEDUP: 2\n{fenced('// EXPECTED_SPEEDUP: 3' + chr(10) + LAUNCHER)}End."
    )
    assert reply.expected_speedup == 2.0
    assert parse_reply(fenced("// EXPECTED_SPEEDUP: 3\n" + LAUNCHER)).expected_speedup == 3.0


PIECES = st.lists(
    st.sampled_from(
        ["```", "~~~", "```cuda", "cuda", "\n", "\r\n", "{", "}", "launch_gpu_implementation(", ")", '"', "'"]
    )
    | st.text(max_size=8),
    max_size=40,
).map("".join)


def candidate_or_reason(text: str) -> CandidateReply | str:
    try:
        return parse_reply(text)
    except UnusableReply as unusable:
        return unusable.reason


@given(PIECES)
@example("```\n'")
def test_any_text_gives_a_candidate_or_a_reason(text: str) -> None:
    reply = candidate_or_reason(text)
    if isinstance(reply, CandidateReply):
        assert reply.source.strip()
        assert "\r" not in reply.source
    else:
        assert reply


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text",
    [
        "EXPECTED_SPEEDUP: 1" + " " * 300_000,
        "EXPECTED_SPEEDUP: " + "1" * 300_000,
        "EXPECTED_SPEEDUP" * 20_000,
        "```cuda\n" + "launch_gpu_implementation(" * 10_000,
        "```cuda\n" + "/*" * 150_000,
        "```cuda\n" + '"' * 300_001,
        "```cuda\n" + 'R"(' * 100_000,
        "```\n" * 50_000,
        "`" * 300_000,
    ],
)
def test_hostile_texts_take_no_time(text: str) -> None:
    began = time.process_time()
    assert candidate_or_reason(text)
    assert time.process_time() - began < 2


CODE_LINES = st.lists(st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), max_size=30), max_size=8)


@given(CODE_LINES, st.sampled_from(["```", "~~~~"]), st.floats(0.01, 99).map(lambda value: round(value, 2)))
def test_what_is_fenced_comes_back(lines: list[str], fence: str, speedup: float) -> None:
    body = [f"// {line}" for line in lines]
    source = LAUNCHER + "".join(f"{line}\n" for line in body)
    reply = parse_reply(f"EXPECTED_SPEEDUP: {speedup}x\n{fence}cuda\n{source}{fence}\nbye")
    assert reply.source == source
    assert reply.expected_speedup == pytest.approx(speedup)


class AnyReply(RootModel[dict[str, object]]):
    """Any JSON object."""


class VetoReply(BaseModel):
    veto: bool
    reason: str = ""


@pytest.mark.parametrize(
    "text",
    [
        '{"veto": true, "reason": "races"}',
        'Here:\n```json\n{"veto": true,\n "reason": "races"}\n```\nbye',
        'With {braces} and {"other": 1} before {"veto": true, "reason": "races"} and {"veto": false} after',
        '<think>{"veto": false}</think>{"veto": true, "reason": "races"}',
        '[{"veto": true, "reason": "races"}]',
    ],
)
def test_json_in_many_wrappings(text: str) -> None:
    assert parse_json(text, VetoReply) == VetoReply(veto=True, reason="races")


def test_of_several_objects_that_fit_the_first_is_taken() -> None:
    assert parse_json('say {"state": "memory", "n": {"a": [1, {}]}} {"b": 2}', AnyReply).root == {
        "state": "memory",
        "n": {"a": [1, {}]},
    }


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("{", "no JSON object"),
        ('{"veto": tru', "no JSON object"),
        ('{"veto": NaN}', "no JSON object"),
        ("[1, 2]", "no JSON object"),
        ('{"a":' * 5000, "no JSON object"),
        ("{" * 100_000, "no JSON object"),
        ('{"veto": "perhaps"}', "veto"),
        ('{"reason": "none"}', "veto"),
    ],
)
def test_unusable_json_says_why(text: str, reason: str) -> None:
    with pytest.raises(UnusableReply, match=reason):
        parse_json(text, VetoReply)


@given(st.text(st.sampled_from('{}[]":, \\ntrue1.eaN'), max_size=200))
def test_any_text_gives_an_object_or_a_reason(text: str) -> None:
    found: dict[str, object] | str
    try:
        found = parse_json(text, AnyReply).root
    except UnusableReply as unusable:
        found = unusable.reason
    assert found != ""
    assert isinstance(found, dict | str)


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3))


@given(st.dictionaries(st.text(), JSON, max_size=4), st.text(st.characters(exclude_characters="{<"), max_size=20))
def test_objects_survive_their_wrapping(value: dict, noise: str) -> None:
    import json

    assert parse_json(f"{noise}\n```json\n{json.dumps(value)}\n```\n{noise}", AnyReply).root == value
