"""Reads a cubin (64-bit ELF, little endian): machine code of its functions, and the PTX line of each instruction.

`.text.<kernel>` holds a kernel and the functions it calls, 16 bytes an instruction from sm_70 on. With `-lineinfo`
ptxas writes `.nv_debug_line_sass`, a DWARF 2 line table from machine addresses to lines of the PTX.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ptxemu.errors import CoreFailure

INSTRUCTION_BYTES = 16
_LINES = ".nv_debug_line_sass"
_NO_BITS, _SYMBOLS, _RELOCATIONS_WITH_ADDEND = 8, 2, 4
_FUNCTION = 2


@dataclass(frozen=True, slots=True)
class CodeWord:
    """One machine instruction as bits.

    Attributes:
        low, high: its two halves.
        line: line of the PTX it stems from; 0 where that is not known.
    """

    low: int
    high: int
    line: int


@dataclass(frozen=True)
class CodeSection:
    """A kernel's code; `functions` maps the positions of what it calls to their names, the kernel itself left out."""

    kernel: str
    words: tuple[CodeWord, ...]
    functions: dict[int, str]


def read_sections(cubin: bytes) -> list[CodeSection]:
    """Kernels of a cubin, with their lines where it has a line table. Raises CoreFailure when it does not read."""
    try:
        return list(_Cubin(cubin).sections())
    except (struct.error, IndexError, ValueError, KeyError) as error:
        raise CoreFailure(
            f"the machine code that ptxas wrote does not read: {error!r}",
            hint="use nvcc 12.0 to 13.x, or delete the cache directory if a file was damaged",
        ) from error


@dataclass(frozen=True)
class _Section:
    name: str
    kind: int
    link: int
    content: bytes


@dataclass(frozen=True)
class _Symbol:
    name: str
    section: int
    value: int
    is_function: bool


class _Cubin:
    def __init__(self, data: bytes) -> None:
        if data[:6] != b"\x7fELF\x02\x01":
            raise ValueError("no 64-bit ELF file")
        self._sections = list(_sections(data))
        self._symbols = self._read_symbols()

    def sections(self) -> Iterator[CodeSection]:
        """Every kernel."""
        rows = self._rows()
        for index, section in enumerate(self._sections):
            if not section.name.startswith(".text."):
                continue
            kernel = section.name.removeprefix(".text.")
            inside = [one for one in self._symbols if one.section == index and one.is_function and one.name != kernel]
            functions = {one.value // INSTRUCTION_BYTES: one.name for one in inside}
            yield CodeSection(kernel, tuple(_words(section.content, rows.get(index, []))), functions)

    def _read_symbols(self) -> list[_Symbol]:
        table = next(one for one in self._sections if one.kind == _SYMBOLS)
        names = self._sections[table.link].content
        return [
            _Symbol(_text(names, name), section, value, info & 15 == _FUNCTION)
            for name, info, _, section, value, _ in struct.iter_unpack("<IBBHQQ", table.content)
        ]

    def _rows(self) -> dict[int, list[tuple[int, int]]]:
        """Section -> (address, PTX line) in rising order of addresses; empty without a line table."""
        table = next((one for one in self._sections if one.name == _LINES), None)
        if table is None:
            return {}
        places = {}
        for one in self._sections:
            if one.name == f".rela{_LINES}" and one.kind == _RELOCATIONS_WITH_ADDEND:
                for offset, info, addend in struct.iter_unpack("<QQq", one.content):
                    symbol = self._symbols[info >> 32]
                    places[offset] = (symbol.section, symbol.value + addend)
            elif one.name == f".rel{_LINES}":
                for offset, info in struct.iter_unpack("<QQ", one.content):
                    symbol = self._symbols[info >> 32]
                    places[offset] = (symbol.section, symbol.value)
        rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for section, address, line in _LineProgram(table.content, places).rows():
            rows[section].append((address, line))
        return {section: sorted(found, key=lambda row: row[0]) for section, found in rows.items()}


def _sections(data: bytes) -> Iterator[_Section]:
    (begin,) = struct.unpack_from("<Q", data, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", data, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", data, begin + k * size) for k in range(count)]
    names = data[headers[names_at][4] :]
    for name, kind, _, _, offset, length, link, *_ in headers:
        content = b"" if kind == _NO_BITS else data[offset : offset + length]
        yield _Section(_text(names, name), kind, link, content)


def _text(names: bytes, at: int) -> str:
    return names[at : names.index(b"\0", at)].decode()


def _words(content: bytes, rows: list[tuple[int, int]]) -> Iterator[CodeWord]:
    addresses = [address for address, _ in rows]
    for at, (low, high) in enumerate(struct.iter_unpack("<QQ", content)):
        row = bisect_right(addresses, at * INSTRUCTION_BYTES) - 1
        yield CodeWord(low, high, rows[row][1] if row >= 0 else 0)


class _LineProgram:
    """Runs the line number programs of a DWARF 2 table (DWARF 2.0, section 6.2)."""

    def __init__(self, content: bytes, places: dict[int, tuple[int, int]]) -> None:
        self._content = content
        self._places = places
        self._at = 0

    def rows(self) -> Iterator[tuple[int, int, int]]:
        """(section, address, line) of every row of every unit."""
        while self._at < len(self._content):
            (length,) = struct.unpack_from("<I", self._content, self._at)
            end = self._at + 4 + length
            header_length, smallest, _, base, span, first = struct.unpack_from("<IBBbBB", self._content, self._at + 6)
            arguments = self._content[self._at + 15 : self._at + 14 + first]
            self._at += 10 + header_length
            yield from self._unit(end, smallest, base, span, first, arguments)
            self._at = end

    def _unit(
        self, end: int, smallest: int, base: int, span: int, first: int, arguments: bytes
    ) -> Iterator[tuple[int, int, int]]:
        section, address, line = -1, 0, 1
        while self._at < end:
            code = self._byte()
            if code >= first:
                address += (code - first) // span * smallest
                line += base + (code - first) % span
                yield section, address, line
            elif code == 0:
                section, address, line = self._extended(section, address, line)
            elif code == 1:
                yield section, address, line
            elif code == 2:
                address += self._unsigned() * smallest
            elif code == 3:
                line += self._signed()
            elif code == 8:
                address += (255 - first) // span * smallest
            elif code == 9:
                address += struct.unpack_from("<H", self._content, self._at)[0]
                self._at += 2
            else:
                for _ in range(arguments[code - 1]):
                    self._unsigned()

    def _extended(self, section: int, address: int, line: int) -> tuple[int, int, int]:
        """State behind an extended code; those that are not known say nothing of addresses and lines."""
        end = self._unsigned() + self._at
        code = self._byte()
        if code == 1:
            section, address, line = -1, 0, 1
        elif code == 2:
            section, address = self._places[self._at]
            address += struct.unpack_from("<Q", self._content, self._at)[0]
        self._at = end
        return section, address, line

    def _byte(self) -> int:
        self._at += 1
        return self._content[self._at - 1]

    def _unsigned(self) -> int:
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def _signed(self) -> int:
        begin = self._at
        value = self._unsigned()
        bits = 7 * (self._at - begin)
        return value - (1 << bits) if value >> (bits - 1) else value
