"""Derives wrong kernels from correct ones: one small, typical mistake each, by rules on the text.

A mutant's id is `<source>:<rule>:<n>`, n counting the places in the source where the rule applies; it stays the same as
long as the source does. Comments, directives and the error check are never touched. Rules name mistakes that people
and models make: a bound off by one, a missing tail, a dropped term, a missing barrier, a wrong axis, lower precision.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

Replacement = str | Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Rule:
    """A mistake.

    Attributes:
        name: stable.
        pattern: where it can be made.
        replacement: what the place becomes, as for `re.sub`.
        does: the mistake, in a phrase.
    """

    name: str
    pattern: re.Pattern[str]
    replacement: Replacement
    does: str


@dataclass(frozen=True)
class Mutant:
    """One wrong kernel. `line` is the line of the mistake; `text` what stands there now.

    `on_device`: the mistake is in device code; otherwise in the host code that launches it.
    """

    id: str
    rule: str
    source: str
    line: int
    text: str
    on_device: bool


def _rule(name: str, pattern: str, replacement: Replacement, does: str) -> Rule:
    return Rule(name, re.compile(pattern), replacement, does)


_LOOP = r"(for \([^;]*;\s*)(\w+) (<|<=) (\w+)(;)"
_STORE = (
    r"(\b(?:output|out|C|y|\*output|\*y)(?:\[[^;=]*\])?) =\s+from_float\(((?:[^;()]|\((?:[^()]|\([^()]*\))*\))*)\);"
)

RULES: tuple[Rule, ...] = (
    _rule("bound_short", _LOOP, r"\1\2 \3 \4 - 1\5", "a loop ends one turn early"),
    _rule("start_late", r"(for \((?:int|int64_t|auto) \w+ = )0;", r"\g<1>1;", "a loop begins one turn late"),
    _rule("stride_double", r"\+= (blockDim\.x|TILE|32|warps|step)\)", r"+= 2 * \1)", "a loop takes every second step"),
    _rule("thread_late", r"(for \(\w+ \w+ = threadIdx\.x);", r"\1 + 1;", "the first element of a row is skipped"),
    _rule("tail_missing", r"\((\w+) \+ (\w+) - 1\) / \2\b", r"\1 / \2", "the last partial tile is not launched"),
    _rule(
        "grid_short", r"<<<(?:unsigned\()?(batch_size|m|rows \* n_head)\)?,", r"<<<unsigned(\1) - 1,", "a block too few"
    ),
    _rule("barrier_dropped", r"__syncthreads\(\);", r";", "a barrier is missing"),
    _rule(
        "sign",
        r"\b(sum|total|squares|dot|mixed|mine)(\[[^\]]*\]\[?[^\]]*\]?)? \+= ",
        r"\1\2 -= ",
        "terms are subtracted",
    ),
    _rule("accumulator_lost", r"\b(sum|squares|dot|mixed|total) \+= ", r"\1 = ", "only the last term is kept"),
    _rule(
        "accumulator_narrow",
        r"\b(sum|squares|dot|mixed|total) \+= ([^;]+);",
        r"\1 = to_float(from_float(\1 + \2));",
        "terms are added in the storage type",
    ),
    _rule("initial_one", r"(float \w+) = 0\.0f;", r"\1 = 1.0f;", "a sum starts at one"),
    _rule("maximum_from_zero", r"(float \w+) = -INFINITY", r"\1 = 0.0f", "a maximum starts at zero"),
    _rule("identity_wrong", r": -INFINITY\)", r": 1e30f)", "idle lanes join a maximum with a large number"),
    _rule("minimum", r"fmaxf\(", r"fminf(", "minimum for maximum"),
    _rule("product_is_sum", r"(\w+\]|\)) \* (to_float\(|\w+_tile|[a-z]\[)", r"\1 + \2", "a sum for a product"),
    _rule("centre_dropped", r" - (maximum|mean|top)\b", r"", "what was to be subtracted is forgotten"),
    _rule("bias_dropped", r" \+ to_float\((?:conv_)?\w*bias\[\w+\]\)", r"", "the bias is forgotten"),
    _rule(
        "scale_dropped", r" \* (scale|multiplier|scaling_factor|negative_slope|slope)\b", r"", "a factor is forgotten"
    ),
    _rule("epsilon_dropped", r" \+ eps\b", r"", "the epsilon is forgotten"),
    _rule("divisor_off", r" / (count|features|sum|divisor|rms|n)\b", r" / (\1 - 1)", "a divisor is off by one"),
    _rule("divisor_dropped", r" / (count|features|sum|divisor|rms|n)\b", r"", "a division is forgotten"),
    _rule("exponential_base", r"\bexpf\(", r"exp2f(", "the base of the exponential is 2"),
    _rule("logarithm_base", r"\blogf\(", r"log2f(", "the base of the logarithm is 2"),
    _rule("root_missing", r"\bsqrtf\(", r"(", "the square root is forgotten"),
    _rule("root_inverted", r"\brsqrtf\(", r"sqrtf(", "square root for its inverse"),
    _rule("error_function", r"\berff\(", r"tanhf(", "tanh for erf"),
    _rule("constant_rounded", r"0\.70710678f", r"0.7f", "a constant with one digit"),
    _rule("constant_half", r"\b0\.5f \*", r"0.51f *", "a constant that is 2 % off"),
    _rule("guard_loose", r"if \((\w+) < (\w+)\)", r"if (\1 <= \2)", "a guard lets one element too many pass"),
    _rule("guard_strict", r"if \((\w+) < (\w+)\)", r"if (\1 + 1 < \2)", "a guard stops the last element"),
    _rule(
        "guard_return_loose",
        r"if \((\w+) >= ([^|;{}]+)\) return;",
        r"if (\1 > \2) return;",
        "a guard misses one element",
    ),
    _rule(
        "guard_both_loose", r"(\w+) < (\w+) && (\w+) < (\w+)\)", r"\1 < \2 && \3 <= \4)", "one of two bounds is loose"
    ),
    _rule("edge_unmasked", r"= \w+ < \w+ && [^?;]+ \? ([^:;]+) : 0\.0f;", r"= \1;", "a tile's edge is not masked"),
    _rule(
        "index_next",
        r"to_float\((x|row|sample|A|B|column|in|q)\[(\w+)\]\)",
        r"to_float(\1[\2 + 1])",
        "the next element is read",
    ),
    _rule("row_same", r"\bblockIdx\.x \* (dim|k|n|classes|count)\b", r"0 * \1", "every block reads row 0"),
    _rule(
        "axis_swapped",
        r"\[(row|k|ty) \* (n|cols|out_features|inner|m) \+ (col|k|tx)\]",
        r"[\3 * \2 + \1]",
        "row and column swapped",
    ),
    _rule("tile_swapped", r"_tile\[ty\]\[(k|i)\]", r"_tile[\1][ty]", "a tile is read transposed"),
    _rule("block_axis", r"\bblockIdx\.y\b", r"blockIdx.x", "the wrong axis of the grid"),
    _rule("thread_axis", r"\bthreadIdx\.y\b", r"threadIdx.x", "the wrong axis of the block"),
    _rule("shuffle_half", r"(int (?:offset|o)) = 16;", r"\1 = 8;", "half a warp is reduced"),
    _rule("shuffle_last", r"((?:offset|o)) > 0;", r"\1 > 1;", "neighbouring lanes are not reduced"),
    _rule("lane_wrong", r"(lane) < warps", r"\1 < warps - 1", "the last warp's part is left out"),
    _rule("carry_lost", r"\bcarry (?:\+)?= [^;]+;", r";", "nothing is carried on to the next chunk"),
    _rule("scan_short", r"offset < THREADS", r"offset < THREADS / 2", "a scan stops one step early"),
    _rule("scan_edge", r"threadIdx\.x >= offset", r"threadIdx.x > offset", "a scan leaves out its first neighbour"),
    _rule("window_break", r"\bcontinue;", r"break;", "a window ends at the first point outside"),
    _rule("window_padding", r" - window\.padding", r"", "padding is forgotten"),
    _rule("causal_strict", r"key <= query", r"key < query", "a query does not see itself"),
    _rule("causal_missing", r"key <= query", r"key < seq_len", "the causal mask is missing"),
    _rule("target_next", r"targets?\[blockIdx\.x\]", r"targets[0]", "every sample has the first target"),
    _rule("activation_skipped", r"\b(?:gelu|swish)\((?!float)", r"(", "the activation is skipped"),
    _rule("relu_leaks", r"fmaxf\((\w+), 0\.0f\)", r"fmaxf(\1, 0.01f * \1)", "a leaky ReLU for a ReLU"),
    _rule("slope_side", r"> 0(?:\.0f)? \?", r"< 0.0f ?", "the slope is on the wrong side"),
    _rule("store_constant", _STORE, r"\1 = from_float(0.0f);", "zero is stored"),
    _rule("store_scaled", _STORE, r"\1 = from_float(1.01f * (\2));", "results are 1 % too large"),
    _rule("store_negative", _STORE, r"\1 = from_float(-(\2));", "the sign is wrong"),
    _rule(
        "store_narrow",
        _STORE,
        r"\1 = from_float(__uint_as_float(__float_as_uint(\2) & 0xFFFF8000u));",
        "eight bits are stored",
    ),
    _rule(
        "store_partial",
        _STORE,
        r"if ((threadIdx.x & 31) != 7) \1 = from_float(\2);",
        "one lane of each warp stores nothing",
    ),
    _rule("store_clamped", _STORE, r"\1 = from_float(fminf(\2, 3.0f));", "results are clamped at 3"),
    _rule("store_adds", _STORE, r"\1 = from_float(to_float(\1) + (\2));", "results are added to what is there"),
)
_UNTOUCHED = re.compile(
    r"//[^\n]*|/\*.*?\*/|^[ \t]*#[^\n]*|^static void check\(.*?^\}|\"(?:[^\"\\\n]|\\.)*\"", re.MULTILINE | re.DOTALL
)


def derive(name: str, source: str, *, per_rule: int = 3) -> Iterator[Mutant]:
    """All mutants of a source; at most `per_rule` places of a rule, spread over the source.

    Args:
        name: of the source, the first part of the ids.
    """
    untouched = [match.span() for match in _UNTOUCHED.finditer(source)]
    for rule in RULES:
        places = [
            match
            for match in rule.pattern.finditer(source)
            if not any(start < match.end() and match.start() < end for start, end in untouched)
        ]
        step = max(1, len(places) // per_rule)
        for number in list(range(0, len(places), step))[:per_rule]:
            match = places[number]
            text = rule.replacement(match) if callable(rule.replacement) else match.expand(rule.replacement)
            changed = source[: match.start()] + text + source[match.end() :]
            line = source.count("\n", 0, match.start()) + 1
            shown = changed.splitlines()[line - 1].strip()
            place = f"{name}:{rule.name}:{number}"
            yield Mutant(place, rule.name, changed, line, shown, _on_device(source, match.start()))


def _on_device(source: str, place: int) -> bool:
    """Whether a place lies in a function for the device. Functions end with a brace at the beginning of a line."""
    begin = source.rfind("\n}\n", 0, place)
    return re.search(r"__(?:global|device)__", source[max(begin, 0) : place]) is not None
