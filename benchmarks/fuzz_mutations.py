"""Writes a kernel differently without a change of what it does, by rules on its tokens.

A verdict should not depend on how a candidate is spelt: on names, comments, spliced lines, macros, the order of its
functions, or on which of several functions it asks for the same service. Each rule returns None where it does not
apply. A mutant may not compile: a rule knows tokens and no types.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kernelblaster.cuda_source.launcher import LAUNCHER
from kernelblaster.cuda_source.lexer import TRIVIA, Token, TokenKind, directives, tokens

Rewrite = Callable[[str, random.Random], str | None]

_STATIC_FUNCTION = re.compile(r"^static (?:inline )?[\w:<>*& ]+?[ *&](\w+)\([^;{}]*\)\s*\{", re.MULTILINE)
_TEST = re.compile(r"^static bool (\w+)\(\) \{", re.MULTILINE)
_OWN_NAME = re.compile(r"^(?:static |__global__ |__device__ |template <[^>]*>\s*)+[^;={}()]*?\b(\w+)\(", re.MULTILINE)
_OTHER_SERVICES: dict[str, tuple[str, ...]] = {
    "open": ("openat(-100, ", "open64(", "::syscall(2, "),
    "fopen": ("fopen64(", "std::fopen(", "_IO_fopen("),
    "read": ("::syscall(0, ",),
    "write": ("::syscall(1, ",),
    "getenv": ("secure_getenv(", "std::getenv("),
    "fork": ("vfork(",),
    "mmap": ("mmap64(",),
    "cudaMemcpy": ("cudaMemcpyAsync(",),
    "cudaDeviceSynchronize": ("cudaThreadSynchronize(",),
    "cudaEventRecord": ("cudaEventRecordWithFlags(",),
    "memcpy": ("__builtin_memcpy(", "std::memmove("),
}
"""Function -> calls of others that render the same service; some fit in places only."""


@dataclass(frozen=True)
class Mutation:
    """A rule, and what it does in a phrase."""

    name: str
    does: str
    rewrite: Rewrite


def rename(source: str, rng: random.Random) -> str | None:
    """Give one of the kernel's own functions another name, everywhere."""
    own = sorted(set(_OWN_NAME.findall(source)) - {LAUNCHER})
    if not own:
        return None
    old, new = rng.choice(own), f"kb{rng.randrange(10**9)}"
    return _edited(source, {token: new for token in tokens(source) if token.spelling == old and _is_name(token)})


def splice_names(source: str, rng: random.Random) -> str | None:
    """Break names in two by a backslash at the end of a line."""
    names = [token for token in _code(source) if _is_name(token) and len(token.spelling) > 1]
    changes = {}
    for token in rng.sample(names, min(6, len(names))):
        at = rng.randrange(1, len(token.spelling))
        changes[token] = f"{token.spelling[:at]}\\\n{token.spelling[at:]}"
    return _edited(source, changes)


def comment(source: str, rng: random.Random) -> str | None:
    """Put comments before names, and blanks of several kinds."""
    names = [token for token in _code(source) if _is_name(token)]
    fillers = ("/* */", "/*\n*/", "\f", "\v", " \t ", '/* " */', "// '\n")
    chosen = rng.sample(names, min(8, len(names)))
    return _edited(source, {token: f" {rng.choice(fillers)}{token.spelling}" for token in chosen})


def hide_in_macro(source: str, rng: random.Random) -> str | None:
    """Call a function by a macro's name."""
    called = _called(source)
    if not called:
        return None
    token, new = rng.choice(called), f"KB_{rng.randrange(10**9)}"
    inner = f"KB_{rng.randrange(10**9)}"
    return _with_preamble(_edited(source, {token: new}), f"#define {inner} {token.spelling}\n#define {new} {inner}\n")


def paste_names(source: str, rng: random.Random) -> str | None:
    """Call functions by names that the preprocessor puts together."""
    called = [token for token in _called(source) if len(token.spelling) > 1]
    changes = {}
    for token in rng.sample(called, min(3, len(called))):
        at = rng.randrange(1, len(token.spelling))
        if not token.spelling[at].isdigit():
            changes[token] = f"KB_PASTE({token.spelling[:at]}, {token.spelling[at:]})"
    if not changes:
        return None
    return _with_preamble(
        _edited(source, changes), "#define KB_JOIN(a, b) a##b\n#define KB_PASTE(a, b) KB_JOIN(a, b)\n"
    )


def divide_strings(source: str, rng: random.Random) -> str | None:
    """Write strings as several, with a letter as an escape."""
    changes = {}
    for before, token in pairwise(_code(source)):
        inner = source[token.inner_start : token.inner_end]
        plain = token.kind is TokenKind.STRING and token.spelling.startswith('"') and before.spelling != "extern"
        if plain and len(inner) > 1 and "\\" not in inner and inner.isascii():
            at = rng.randrange(1, len(inner))
            letter = rng.choice((f"\\x{ord(inner[at]):x}", f"\\{ord(inner[at]):03o}"))
            changes[token] = f'"{inner[:at]}" "{letter}" "{inner[at + 1 :]}"'
    return _edited(source, changes)


def compute_include(source: str, rng: random.Random) -> str | None:
    """Include headers by macros of macros."""
    found = [one for one in directives(source) if one.name == "include"]
    if not found:
        return None
    one = rng.choice(found)
    name = f"KB_{rng.randrange(10**9)}"
    text = f"#define {name}_A {one.operand.strip()}\n#define {name} {name}_A\n%:include {name}"
    return source[: one.start] + text + source[one.end :]


def other_service(source: str, rng: random.Random) -> str | None:
    """Ask another function for the same service."""
    changes = [token for token in _called(source) if token.spelling in _OTHER_SERVICES]
    if not changes:
        return None
    token = rng.choice(changes)
    opening = source.index("(", token.end)
    changed = source[: token.start] + rng.choice(_OTHER_SERVICES[token.spelling]) + source[opening + 1 :]
    return "#include <unistd.h>\n#include <sys/syscall.h>\n" + changed


def move_function(source: str, rng: random.Random) -> str | None:
    """Move a function to the end, and declare it where it was."""
    found = [match for match in _STATIC_FUNCTION.finditer(source) if "=" not in match[0]]
    if not found:
        return None
    match = rng.choice(found)
    end = source.find("\n}\n", match.end())
    line_end = source.index("\n", match.start())
    if source[line_end - 1] == "}":
        end = line_end - 1
    elif end >= 0:
        end += 1
    if end < 0:
        return None
    body = source[match.start() : end + 1]
    declaration = match[0].rstrip("{ \n") + ";"
    return f"{source[: match.start()]}{declaration}{source[end + 1 :]}\n{body}\n"


def into_template(source: str, rng: random.Random) -> str | None:
    """Make a function a template, which the compiler instantiates where it is called."""
    found = list(_STATIC_FUNCTION.finditer(source))
    if not found:
        return None
    match = rng.choice(found)
    return f"{source[: match.start()]}template <int kb_{rng.randrange(1000)} = 0>\n{source[match.start() :]}"


def into_constructor(source: str, rng: random.Random) -> str | None:
    """Do before the first call what the launcher does at first: in a static object or a constructor."""
    match = _TEST.search(source)
    if match is None:
        return None
    name, launcher = match[1], source.rfind(LAUNCHER)
    early = rng.choice(
        (
            f"static const bool kb_early = {name}();\n",
            f"static bool kb_early;\n__attribute__((constructor)) static void kb_before() {{ kb_early = {name}(); }}\n",
            f"struct KbEarly {{ bool done = {name}(); }};\nstatic KbEarly kb_one;\n#define kb_early kb_one.done\n",
        )
    )
    at = source.rfind("\n", 0, launcher) + 1
    if f"{name}()" not in source[launcher:] or at <= match.start():
        return None
    return source[:at] + early + source[at:launcher] + source[launcher:].replace(f"{name}()", "kb_early")


def call_by_pointer(source: str, rng: random.Random) -> str | None:
    """Call a function by its address, which the compiler does not know."""
    called = [token for token in _called(source) if token.spelling not in _own(source)]
    if not called:
        return None
    token = rng.choice(called)
    name = f"kb_pointer_{rng.randrange(10**6)}"
    text = f"(*[] {{ static decltype(&{token.spelling}) volatile {name} = &{token.spelling}; return {name}; }}())"
    return _edited(source, {token: text})


MUTATIONS: tuple[Mutation, ...] = (
    Mutation("rename", "a function of its own has another name", rename),
    Mutation("splice_names", "names are broken by spliced lines", splice_names),
    Mutation("comment", "comments and rare blanks stand before names", comment),
    Mutation("hide_in_macro", "a function is called by a macro's name", hide_in_macro),
    Mutation("paste_names", "names are put together by the preprocessor", paste_names),
    Mutation("divide_strings", "strings are divided, with a letter as an escape", divide_strings),
    Mutation("compute_include", "a header is included by macros of macros", compute_include),
    Mutation("other_service", "another function is asked for the same service", other_service),
    Mutation("move_function", "a function is declared first and defined at the end", move_function),
    Mutation("into_template", "a function becomes a template", into_template),
    Mutation("into_constructor", "what the launcher does at first happens before main", into_constructor),
    Mutation("call_by_pointer", "a function is called by a pointer", call_by_pointer),
)


def mutate(source: str, rng: random.Random, most: int = 3) -> tuple[str, tuple[str, ...]]:
    """Apply one to `most` rules; the source and the names of the rules that changed it."""
    used: list[str] = []
    wanted = rng.randint(1, most)
    for mutation in rng.sample(MUTATIONS, len(MUTATIONS)):
        if len(used) == wanted:
            break
        changed = mutation.rewrite(source, rng)
        if changed is not None and changed != source:
            source = changed
            used.append(mutation.name)
    return source, tuple(used)


def _is_name(token: Token) -> bool:
    return token.kind is TokenKind.NAME


def _code(source: str) -> list[Token]:
    """Tokens that are neither blanks nor part of a directive."""
    inside = [(one.start, one.end) for one in directives(source)]
    found = []
    at = 0
    for token in tokens(source):
        while at < len(inside) and inside[at][1] <= token.start:
            at += 1
        if token.kind not in TRIVIA and not (at < len(inside) and inside[at][0] <= token.start):
            found.append(token)
    return found


def _own(source: str) -> set[str]:
    return set(_OWN_NAME.findall(source)) | {LAUNCHER}


def _called(source: str) -> list[Token]:
    """Names of functions where they are called, by no object and in no namespace."""
    code = _code(source)
    keywords = {"if", "for", "while", "switch", "return", "sizeof", "alignof", "decltype", "asm", "catch", "defined"}
    found = []
    for before, token, after in zip(code, code[1:], code[2:], strict=False):
        declared = _is_name(before) and before.spelling not in ("return", "else", "do")
        reached = before.spelling in (".", "->", "::", ">", "*", "&", "~") or declared
        if _is_name(token) and after.spelling == "(" and not reached and token.spelling not in keywords:
            found.append(token)
    return found


def _edited(source: str, changes: dict[Token, str]) -> str | None:
    if not changes:
        return None
    parts, at = [], 0
    for token in sorted(changes, key=lambda one: one.start):
        parts += [source[at : token.start], changes[token]]
        at = token.end
    return "".join([*parts, source[at:]])


def _with_preamble(source: str | None, preamble: str) -> str | None:
    """The source with lines behind its last directive of the beginning, where a macro disturbs no header."""
    if source is None:
        return None
    includes: Sequence[int] = [one.end for one in directives(source) if one.name == "include"]
    at = source.find("\n", includes[-1]) + 1 if includes else 0
    return source[:at] + preamble + source[at:]
