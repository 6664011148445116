"""PTX texts of relocatable device code as one text, in which symbols of one are found by the others.

Works on text, so that ptxas reads the result as well. What texts have for themselves, literals above all, is renamed
where another has the same name; `.extern` declarations of what one of them defines are gone; of definitions that may
stand in several (`.weak`, `.common`) one is kept.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

_WORDS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\]|\\.)*"|[.%$A-Za-z_][\w$]*|[{}();=]|\n', re.DOTALL)
_LINKAGE = (".visible", ".weak", ".extern", ".common")
_CODE = (".func", ".entry")
_ONE_LINE = (".version", ".target", ".address_size", ".file")
_NAME = re.compile(r"[$A-Za-z_%][\w$]*")
_FILE = re.compile(r"\.file\s+(\d+)(.*)", re.DOTALL)
_PLACES = re.compile(r"(\.loc\s+|\binlined_at\s+)(\d+)")
_SECTION = re.compile(r"\.section\s+(\S+)\s*\{(.*)\}\s*$", re.DOTALL)
_LABEL = re.compile(r"^\s*([$\w]+):", re.MULTILINE)


class SymbolDefinedTwice(ValueError):
    """Two texts define the same symbol for all. `symbol` is its name."""

    def __init__(self, symbol: str) -> None:
        super().__init__(symbol)
        self.symbol = symbol


@dataclass(frozen=True)
class _Item:
    """A statement outside of functions.

    Attributes:
        text: of it.
        kind: `.func`, `.entry`, `.section` or another directive; for variables their space.
        name: of what it declares; empty where it declares nothing.
        linkage: `.visible` and the like; empty for what nobody else sees.
        defined: whether a function has a body; true of variables that are not `.extern`.
    """

    text: str
    kind: str
    name: str = ""
    linkage: str = ""
    defined: bool = False


def joined(texts: Sequence[str]) -> str:
    """One text of several. Raises SymbolDefinedTwice."""
    if len(texts) == 1:
        return texts[0]
    modules = [list(_items(text)) for text in texts]
    modules = [_own_names(items, number, modules) for number, items in enumerate(modules)]
    files, modules = _numbered_files(modules)
    everything = list(chain.from_iterable(modules))
    kept = list(_resolved(everything))
    functions = [one for one in kept if one.kind in _CODE]
    prototypes = [_prototype(one) for one in functions if one.kind == ".func" and one.defined]
    variables = [one.text for one in kept if one.name and one.kind not in _CODE]
    others = [one.text for one in everything if one.kind in (".alias", ".pragma")]
    head = [_header(everything, word) for word in (".version", ".target", ".address_size")]
    texts_of_functions = [one.text for one in sorted(functions, key=lambda one: one.defined)]
    return "\n\n".join(
        [*head, *others, *prototypes, *variables, *texts_of_functions, *files, *_strings(everything), ""]
    )


def _items(text: str) -> Iterator[_Item]:
    """Statements in order. Brackets are counted, and what stands in comments and strings is passed over."""
    begin, depth, words = 0, 0, list[str]()
    for found in _WORDS.finditer(text):
        word = found.group()
        if word.startswith(("//", "/*", '"')) or (
            word == "\n" and not (depth == 0 and words and words[0] in _ONE_LINE)
        ):
            continue
        if not words:
            begin = found.start()
        depth += word in "{("
        depth -= word in "})"
        if word != "\n" and (depth == 0 or len(words) < 16):
            words.append(word)
        ended = word in (";", "\n") or (word == "}" and "=" not in words)
        if depth == 0 and words and ended:
            yield _item(text[begin : found.end()].strip(), words)
            words = []


def _item(text: str, words: Sequence[str]) -> _Item:
    linkage = next((word for word in words if word in _LINKAGE), "")
    kind = next((word for word in words if word not in _LINKAGE), "")
    if kind in _CODE:
        return _Item(text, kind, _name_of_function(text), linkage, text.endswith("}"))
    if kind in (".global", ".const", ".shared"):
        return _Item(text, kind, _name_of_variable(text), linkage, linkage != ".extern")
    return _Item(text, kind)


def _name_of_function(text: str) -> str:
    """After the results, which stand in parentheses."""
    rest = re.split(r"\.(?:func|entry)\b", text, maxsplit=1)[1].lstrip()
    if rest.startswith("("):
        rest = rest[rest.index(")") + 1 :]
    found = _NAME.search(rest)
    return found.group() if found else ""


def _name_of_variable(text: str) -> str:
    """The last word before brackets, an initial value or the end."""
    head = re.sub(r"\.attribute\s*\([^)]*\)", "", re.split(r"[\[=;]", text, maxsplit=1)[0])
    return head.split()[-1]


def _own_names(items: list[_Item], number: int, modules: Sequence[list[_Item]]) -> list[_Item]:
    """The statements of one text, with names of its own where another text has the same one."""
    others = {one.name for k, module in enumerate(modules) if k != number for one in module if one.name}
    clashing = {one.name for one in items if one.name in others and not one.linkage}
    clashing |= {label for one in items if one.kind == ".section" for label in _LABEL.findall(one.text)}
    if not clashing:
        return items

    def renamed(found: re.Match[str]) -> str:
        word = found.group()
        return f"{word}$of{number}" if word in clashing else word

    names = {name: f"{name}$of{number}" for name in clashing}
    return [
        replace(
            one, text=_WORDS.sub(renamed, one.text), name=one.name if one.linkage else names.get(one.name, one.name)
        )
        for one in items
    ]


def _numbered_files(modules: Sequence[list[_Item]]) -> tuple[list[str], list[list[_Item]]]:
    """The `.file` directives of all, and statements that name files by their new numbers."""
    files: list[str] = []
    result = []
    for items in modules:
        first = len(files)
        numbers: dict[str, int] = {}
        for one in items:
            if one.kind == ".file" and (found := _FILE.search(one.text)):
                numbers[found[1]] = first + len(numbers) + 1
                files.append(f".file {numbers[found[1]]}{found[2]}")
        result.append([replace(one, text=_with_files(one.text, numbers)) for one in items if one.kind != ".file"])
    return files, result


def _with_files(text: str, numbers: dict[str, int]) -> str:
    return _PLACES.sub(lambda found: found[1] + str(numbers.get(found[2], found[2])), text)


def _resolved(items: Sequence[_Item]) -> Iterator[_Item]:
    """What is left of declarations: each symbol once, defined where it is. Raises SymbolDefinedTwice."""
    chosen: dict[str, _Item] = {}
    for one in items:
        if not one.name:
            continue
        known = chosen.get(one.name)
        if known is not None and known.defined and one.defined and {known.linkage, one.linkage} == {".visible"}:
            raise SymbolDefinedTwice(one.name)
        if known is None or _rank(one) > _rank(known):
            chosen[one.name] = one
    yield from chosen.values()


def _rank(one: _Item) -> tuple[bool, bool, int]:
    """Definitions before declarations, strong ones before weak ones; of memory that all share, the largest."""
    alignment = re.search(r"\.align\s+(\d+)", one.text)
    return one.defined, one.linkage in (".visible", ""), int(alignment[1]) if alignment and one.kind not in _CODE else 0


def _prototype(function: _Item) -> str:
    """The declaration of a function that is defined further down."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", function.text, flags=re.DOTALL)
    head = text[: text.index("{")].rstrip()
    return f"{head};"


def _header(items: Sequence[_Item], word: str) -> str:
    """The directive of the newest text."""
    return max((one.text for one in items if one.kind == word), default="", key=_version)


def _version(text: str) -> list[int]:
    return [int(part) for part in re.findall(r"\d+", text)]


def _strings(items: Sequence[_Item]) -> list[str]:
    """Names of inlined functions of all texts; other sections describe a text that is not there any more."""
    found = [match[2] for one in items if one.kind == ".section" and (match := _SECTION.search(one.text))
             if match[1] == ".debug_str"]  # fmt: skip
    return [".section .debug_str\n{\n" + "\n".join(found) + "\n}"] if found else []
