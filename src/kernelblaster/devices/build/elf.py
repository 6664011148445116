"""Reads ELF files that a candidate had a hand in: symbols of an object, and what a shared object would have run.

Names are bytes that a candidate chose: they are cleaned, and one that is not a plain identifier never reaches a tool.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import Section

from kernelblaster.devices.failures import BuildFailure, BuildFailureKind
from kernelblaster.sandbox.text import printable

_MOST_SYMBOLS, _MOST_NAME_BYTES = 1 << 20, 64 << 20
"""Of an object; template libraries come to thousands, and some MB."""
_SYMBOL = struct.Struct("<IBxH16x")
"""Elf64_Sym (System V ABI, chapter 4): name, type and binding, section."""
_RELOCATION = struct.Struct("<8xI12x")
"""Elf64_Rela: type."""
_LOCAL, _GLOBAL, _UNIQUE = 0, 1, 10
_IFUNC = 10
_RESOLVED_BY_CALL = {"EM_X86_64": 37, "EM_AARCH64": 1032}
"""R_X86_64_IRELATIVE and R_AARCH64_IRELATIVE: the dynamic linker calls a function to learn the value."""
_RUNNING_TAGS = frozenset(
    {
        *("DT_INIT", "DT_FINI", "DT_INIT_ARRAY", "DT_FINI_ARRAY", "DT_PREINIT_ARRAY"),
        *("DT_AUDIT", "DT_DEPAUDIT", "DT_FILTER", "DT_AUXILIARY", "DT_TEXTREL"),
    }
)


@dataclass(frozen=True)
class Symbols:
    """Symbols of one object file, mangled."""

    defined: frozenset[str]
    """Global, weak and unique definitions."""
    strong: frozenset[str]
    """The global ones among them."""
    undefined: frozenset[str]


def read_symbols(path: Path) -> Symbols:
    """Symbols of an object file; names in printable ASCII. Raises BuildFailure when it is no object file."""
    with _opened(path) as elf:
        section = elf.get_section_by_name(".symtab")
        if section is None:
            return Symbols(frozenset(), frozenset(), frozenset())
        listed = elf.get_section(section["sh_link"])
        if section["sh_size"] > _MOST_SYMBOLS * _SYMBOL.size or listed["sh_size"] > _MOST_NAME_BYTES:
            raise _too_many()
        names = listed.data()
        defined, strong, undefined = set(), set(), set()
        length = 0
        for at, info, place in _SYMBOL.iter_unpack(section.data()):
            binding = info >> 4
            if binding == _LOCAL:
                continue
            name = _name(names, at)
            length += len(name)  # names may be ends of one another
            if length > _MOST_NAME_BYTES:
                raise _too_many()
            if place == 0:
                undefined.add(name)
                continue
            defined.add(name)
            if binding in (_GLOBAL, _UNIQUE):
                strong.add(name)
        return Symbols(frozenset(defined), frozenset(strong), frozenset(undefined))


def check_shared_object(path: Path) -> None:
    """Refuse a candidate's shared object of which the dynamic linker would run or load anything by itself.

    Raises BuildFailure (POLICY).
    """
    with _opened(path) as elf:
        for section in elf.iter_sections():
            for complaint in _complaints(elf, section):
                raise BuildFailure(BuildFailureKind.POLICY, f"the candidate runs code while it is loaded: {complaint}")


def _complaints(elf: ELFFile, section: Section) -> Iterator[str]:
    if isinstance(section, DynamicSection):
        tags = {tag.entry.d_tag for tag in section.iter_tags()}
        yield from sorted(str(tag) for tag in tags & _RUNNING_TAGS)
    elif section["sh_type"] == "SHT_DYNSYM":
        if any(info & 15 == _IFUNC and place != 0 for _, info, place in _SYMBOL.iter_unpack(section.data())):
            yield "an indirect function"
    elif section["sh_type"] == "SHT_RELA":
        called = _RESOLVED_BY_CALL.get(elf["e_machine"])
        if any(kind == called for (kind,) in _RELOCATION.iter_unpack(section.data())):
            yield "an indirect relocation"


def _name(names: bytes, at: int) -> str:
    return printable(names[at : names.index(b"\0", at)])


def _too_many() -> BuildFailure:
    return BuildFailure(BuildFailureKind.LINK, "the object has more names than are read")


@contextmanager
def _opened(path: Path) -> Iterator[ELFFile]:
    """The ELF file at a path. Raises BuildFailure when it is damaged."""
    with path.open("rb") as file:
        try:
            yield ELFFile(file)
        except (ELFError, ValueError, struct.error) as error:
            raise BuildFailure(BuildFailureKind.LINK, f"the compiler made a damaged object: {error}") from error
