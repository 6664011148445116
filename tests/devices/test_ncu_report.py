"""Rules and source lines out of a report of ncu, as ncu 2025.3 printed them on an H200."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernelblaster.devices.cuda.ncu_report import LINES_KEPT, page_command, parse_lines, parse_rules, report_arguments
from kernelblaster.devices.profiles import KernelProfile, SpeedupScope

CAPTURED = Path(__file__).parents[1] / "fixtures" / "ncu"
FUNCTIONS = (
    "copy_scalar(const float *, float *, long)",
    "copy_strided(const float *, float *, long)",
    "transpose_conflict(const float *, float *, int)",
    "matmul_naive(const __half *, const __half *, __half *, int)",
    "softmax_row(const __half *, __half *, int)",
)


def launches(*names: str) -> list[KernelProfile]:
    return [KernelProfile(name=name, grid=(1, 1, 1), block=(1, 1, 1), metrics={}) for name in names]


def table(path: str, function: str, *lines: tuple[int, int]) -> str:
    """A table of the page `source` with samples per line."""
    head = (
        f'"File Path","{path}"\n"Function Name","{function}"\n'
        '"Line No","Source","Address","Source",'
        '"Warp Stall Sampling (Not-issued Samples)","stall_barrier (Not Issued)"\n'
    )
    return head + "".join(
        f'"{line}","x = ""a, b"";","-","-","{n}","{n}"\n"","","0x10","NOP","9","9"\n' for line, n in lines
    )


def test_rules_are_read_by_launch_with_estimates_of_the_whole_kernel_and_of_one_unit() -> None:
    rules = parse_rules((CAPTURED / "h200_details.csv").read_text())
    assert sorted(rules) == [1, 2, 3]
    strided = {one.rule: one for one in rules[1]}
    assert strided["UncoalescedGlobalAccess"].percent == 77.37
    assert strided["UncoalescedGlobalAccess"].scope is SpeedupScope.GLOBAL
    assert strided["IssueSlotUtilization"].scope is SpeedupScope.LOCAL
    assert {one.rule for one in rules[2]} >= {"UncoalescedSharedAccess", "CPIStall"}
    assert {one.rule: one.percent for one in rules[3]}["LaunchConfiguration"] == 25
    assert {one.rule: one.percent for one in rules[3]}["SOLBottleneck"] is None


def test_results_that_only_inform_are_no_gain() -> None:
    rules = parse_rules((CAPTURED / "h200_details.csv").read_text())
    assert "SOLBottleneck" not in {one.rule for one in rules[1]}
    assert all(one.text for found in rules.values() for one in found)


@pytest.mark.parametrize(
    "text", ["", "==ERROR== cannot read", '"a","b"\n"1","2"\n', '"ID","Rule Name","Rule Type"\n"x","r","OPT"\n']
)
def test_a_page_without_rules_has_none(text: str) -> None:
    assert parse_rules(text) == {}


def test_lines_of_each_launch_come_from_its_tables_in_order() -> None:
    found = parse_lines((CAPTURED / "h200_source.csv").read_text(), launches(*FUNCTIONS), candidate="probe")
    copy, strided, transpose, matmul, softmax = found
    assert [(line.line, line.waiting, line.reason) for line in copy] == [(4, 1.0, "global memory")]
    assert [line.line for line in (*strided, *transpose, *matmul, *softmax)] == [5, 6, 7, 8]
    assert transpose[0].reason == "queue to shared memory"
    # A third of the product's samples lie in the toolkit's header.
    assert 0.6 < matmul[0].waiting < 0.7


def test_launches_of_one_kernel_have_their_own_tables() -> None:
    text = table("/b/candidate.cu", "k", (3, 60), (5, 40)) + table("/b/candidate.cu", "k", (5, 10))
    first, second, other = parse_lines(text, launches("k", "k", "m"))
    assert [(line.line, line.waiting) for line in first] == [(3, 0.6), (5, 0.4)]
    assert [(line.line, line.waiting, line.reason) for line in second] == [(5, 1.0, "barrier")]
    assert other == []


def test_a_launch_without_a_table_takes_that_of_no_other() -> None:
    warm, own = parse_lines(table("/b/candidate.cu", "k", (3, 60)), launches("kb_warmup", "k"))
    assert warm == []
    assert [line.line for line in own] == [3]


def test_few_lines_are_kept_and_none_without_samples() -> None:
    (found,) = parse_lines(table("candidate.cu", "k", *((n, n) for n in range(40))), launches("k"))
    assert [line.line for line in found] == list(range(39, 39 - LINES_KEPT, -1))
    (none,) = parse_lines(table("candidate.cu", "k", (1, 0)), launches("k"))
    assert none == []


@pytest.mark.parametrize("text", ["", "==ERROR== cannot read", '"Line No"\n"1"\n'])
def test_a_page_without_lines_has_none(text: str) -> None:
    assert parse_lines(text, launches("k")) == [[]]


def test_clocks_are_left_alone_and_the_page_needs_no_program() -> None:
    assert not any("clock" in word for word in report_arguments(Path("/r")))
    assert page_command(Path("/ncu"), Path("/r"), "source")[1:3] == ["--import", "/r"]
