"""PTX text as data: variables, functions, and statements with their scopes resolved.

The grammar read here is that of nvcc's output and of inline assembly in it. Names declared in an inner `{ }` get a
unique suffix, so that later stages see one flat name space per function. Nothing is said here about what an
instruction means.
"""

from __future__ import annotations

import re

from ptxemu.ptx.errors import NotEmulatable
from ptxemu.ptx.limits import MOST_INLINED, MOST_REGISTERS, MOST_SCOPES
from ptxemu.ptx.tree import (
    TYPE_BYTES,
    Address,
    Declared,
    Function,
    Group,
    Label,
    Operand,
    Program,
    SourceChain,
    Statement,
    integer,
)

TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"|0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}|0[xX][0-9a-fA-F]+U?|\d+U?'
    r"|[%$A-Za-z_.](?:[\w$.]|::)*|[-+{}()\[\],;:@!|<>=~]"
)
_SPACES = (".global", ".const", ".shared", ".local", ".param")
_LARGEST_VARIABLE = 1 << 40
_LINKAGE = (".visible", ".weak", ".extern", ".common")


def parse(text: str) -> Program:
    """Parse a PTX text. Raises NotEmulatable for what cannot be read."""
    parser = _Parser(text)
    try:
        return parser.program()
    except ValueError as error:
        raise parser.error("a number is expected") from error
    except RecursionError as error:
        raise parser.error("brackets this deep") from error


class _Parser:
    def __init__(self, text: str) -> None:
        if "/*" in text:
            text = re.sub(r"/\*.*?\*/", lambda found: "\n" * found.group().count("\n"), text, flags=re.DOTALL)
        text = text.replace(".reg.", ".reg .")  # inline assembly may leave out the space
        self.tokens: list[str] = []
        self.lines: list[int] = []
        for number, line in enumerate(text.split("\n"), 1):
            if "//" in line and ".file" not in line:
                line = line.partition("//")[0]
            found = TOKEN.findall(line)
            self.tokens += found
            self.lines += [number] * len(found)
        # Two, because a label is recognised by the token after it.
        self.tokens += ["", ""]
        self.lines += [self.lines[-1] if self.lines else 0] * 2
        self.at = 0
        self.result = Program()
        self.scopes: list[dict[str, str]] = []
        self.scope_count = 0
        self.registers_left = MOST_REGISTERS

    # -- tokens
    def peek(self) -> str:
        return self.tokens[self.at]

    def take(self) -> str:
        token = self.tokens[self.at]
        if token == "":
            raise self.error("unexpected end of text")
        self.at += 1
        return token

    def expect(self, wanted: str) -> None:
        if self.take() != wanted:
            self.at -= 1
            raise self.error(f"expected {wanted!r}")

    def accept(self, wanted: str) -> bool:
        if self.peek() != wanted:
            return False
        self.at += 1
        return True

    def error(self, reason: str) -> NotEmulatable:
        return NotEmulatable(self.peek() or "end of text", self.lines[self.at], reason)

    def skip_past(self, wanted: str) -> None:
        while self.take() != wanted:
            pass

    # -- module level
    def program(self) -> Program:
        linkage: set[str] = set()
        while (token := self.peek()) != "":
            if token in _LINKAGE:
                linkage.add(self.take())
                continue
            if token in (".entry", ".func"):
                self.function()
            elif token in _SPACES:
                self.result.variables += self.variables(external=".extern" in linkage)
            elif token == ".section":
                self.skip_section()
            else:
                self.directive()
            linkage = set()
        return self.result

    def directive(self) -> None:
        token = self.take()
        if token == ".file":
            number = self.take()
            self.result.files[number] = self.take().strip('"')
            while self.accept(","):  # time and size
                self.take()
        elif token in (".alias", ".pragma"):
            self.skip_past(";")
        elif token in (".version", ".target", ".address_size"):
            self.take()
            while self.accept(","):
                self.take()
            if token == ".version" and self.peek()[1:].isdigit():
                self.take()
        else:
            self.at -= 1
            raise self.error("unknown directive")

    def skip_section(self) -> None:
        self.skip_past("{")
        self.skip_past("}")

    def function(self) -> None:
        is_kernel, line = self.take() == ".entry", self.lines[self.at]
        results = self.parameter_list() if self.peek() == "(" else []
        name = self.take()
        parameters = self.parameter_list() if self.peek() == "(" else []
        function = Function(name, is_kernel, parameters, results, line)
        while self.peek() not in ("{", ";"):
            self.performance_directive(function)
        if self.take() == "{":
            function.defined = True
            self.body(function)
        self.result.functions.append(function)

    def performance_directive(self, function: Function) -> None:
        token = self.take()
        extents: list[int] = []
        while self.peek()[:1].isdigit():
            extents.append(integer(self.take()))
            self.accept(",")
        x, y, z = (min(extent, 0xFFFFFFFF) for extent in (*extents, 1, 1, 1)[:3])
        if token == ".reqntid":
            function.required_block = (x, y, z)
        elif token == ".reqnctapercluster":
            function.required_cluster = (x, y, z)
        elif token == ".maxntid":
            function.max_threads = min(x * y * z, 0xFFFFFFFF)

    def parameter_list(self) -> list[Declared]:
        self.expect("(")
        found: list[Declared] = []
        while not self.accept(")"):
            found.append(self.declaration(self.take()))
            self.accept(",")
        return found

    def variables(self, *, external: bool) -> list[Declared]:
        """Variables of one `.space ... ;` declaration."""
        space = self.take()
        first = self.declaration(space)
        found = [first]
        while self.accept(","):
            found.append(self.declarator(space, first.align, first.kind))
        self.expect(";")
        for one in found:
            one.unsized = one.unsized or (external and one.size == 0)
        return found

    def declaration(self, space: str) -> Declared:
        align, managed = 0, False
        while self.peek() in (".align", ".attribute"):
            if self.take() == ".attribute":
                managed = self.tokens[self.at + 1] == ".managed" or managed
                self.skip_past(")")
            else:
                align = integer(self.take())
        kind = self.take()
        if kind not in TYPE_BYTES:
            self.at -= 1
            raise self.error("unknown type")
        while self.peek().startswith(".") and self.peek() != "":
            if self.take() == ".align":
                self.take()
        declared = self.declarator(space, align, kind)
        declared.managed = managed
        return declared

    def declarator(self, space: str, align: int, kind: str) -> Declared:
        name, element = self.take(), TYPE_BYTES[kind]
        count, unsized = 1, False
        while self.accept("["):
            if self.peek() == "]":
                unsized, count = True, 0
            else:
                count *= integer(self.take())
            self.expect("]")
        if count * element > _LARGEST_VARIABLE or (align and (align & (align - 1) or align > 4096)):
            raise self.error("a variable of this size or alignment")
        line = self.lines[self.at]
        declared = Declared(name, space, align or element, count * element, kind, unsized=unsized, line=line)
        if self.accept("="):
            declared.initial = self.initialiser()
            declared.size = max(declared.size, len(declared.initial) * element)
            declared.unsized = False
        return declared

    def initialiser(self) -> list[str]:
        if not self.accept("{"):
            return [self.initial_element()]
        found: list[str] = []
        while not self.accept("}"):
            found += self.initialiser() if self.peek() == "{" else [self.initial_element()]
            self.accept(",")
        return found

    def initial_element(self) -> str:
        sign = "-" if self.accept("-") else ""
        text = sign + self.take()
        if self.accept("("):  # generic(symbol)
            text = self.take()
            self.skip_past(")")
        if self.accept("+"):
            text += "+" + self.take()
        return text

    # -- function bodies
    def body(self, function: Function) -> None:
        self.scopes = [{}]
        self.sources: SourceChain = ()
        self.chains: dict[tuple[str, int, str], SourceChain] = {}
        while self.scopes:
            token = self.peek()
            if token == "{":
                if len(self.scopes) == MOST_SCOPES:
                    raise self.error("scopes this deep")
                self.take()
                self.scopes.append({})
                self.scope_count += 1
            elif token == "}":
                self.take()
                self.scopes.pop()
            elif token == ".reg":
                self.registers(function)
            elif token == ".loc":
                self.location()
            elif token in _SPACES or token in _LINKAGE:
                self.local_variables(function)
            elif token.startswith("."):
                self.skip_past(";")
            elif self.tokens[self.at + 1] == ":":
                function.body.append(self.label())
            else:
                function.body.append(self.statement())

    def declare(self, name: str) -> str:
        unique = name if len(self.scopes) == 1 else f"{name}#{self.scope_count}"
        self.scopes[-1][name] = unique
        return unique

    def resolve(self, name: str) -> str:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return name

    def registers(self, function: Function) -> None:
        self.take()
        kind = self.take()
        while True:
            name = self.take()
            if self.accept("<"):
                count = integer(self.take())
                self.registers_left -= count
                if self.registers_left < 0:
                    raise self.error("registers this many")
                for k in range(count):
                    function.registers[self.declare(f"{name}{k}")] = kind
                self.expect(">")
            else:
                function.registers[self.declare(name)] = kind
            if self.take() == ";":
                return

    def local_variables(self, function: Function) -> None:
        external = False
        while self.peek() in _LINKAGE:
            external = self.take() == ".extern" or external
        for declared in self.variables(external=external):
            declared.name = self.declare(declared.name)
            function.variables.append(declared)

    def location(self) -> None:
        self.take()
        place = self.take(), min(integer(self.take()), 0xFFFFFFFF), self.take()
        outer: SourceChain = ()
        while self.accept(","):
            if self.accept("inlined_at"):
                call = self.take(), min(integer(self.take()), 0xFFFFFFFF), self.take()
                outer = self.chains.get(call, (call[:2],))
                continue
            self.expect("function_name")
            self.take()
            if self.accept("+"):
                self.take()
        self.sources = (place[:2], *outer[: MOST_INLINED - 1]) if place[1] else ()
        self.chains[place] = self.sources

    def label(self) -> Label:
        name = self.label_name(self.take())
        self.expect(":")
        if self.peek() not in (".branchtargets", ".calltargets", ".callprototype"):
            return Label(name)
        kind, targets = self.take(), []
        while (token := self.take()) != ";":
            if token != ",":
                targets.append(token)
        return Label(name, tuple(targets) if kind == ".branchtargets" else ())

    def label_name(self, name: str) -> str:
        """Labels inside inline assembly are declared by use: one scope, one name."""
        return (
            name
            if len(self.scopes) == 1 or name.startswith("$L__")
            else self.scopes[-1].setdefault(name, f"{name}#{self.scope_count}")
        )

    def statement(self) -> Statement:
        guard, negated = None, False
        if self.accept("@"):
            negated = self.accept("!")
            guard = self.resolve(self.take())
        line, parts = self.lines[self.at], tuple(self.take().split("."))
        operands: list[Operand] = []
        in_scope = len(self.scopes) > 1 and parts[0] == "bra"
        while not self.accept(";"):
            operands.append(self.label_name(self.take()) if in_scope else self.operand())
            self.accept(",")
        return Statement(parts, operands, line, self.sources, guard, negated)

    def operand(self) -> Operand:
        token = self.take()
        if token == "[":
            return self.address()
        if token in "{(":
            items = []
            closing = "}" if token == "{" else ")"
            while not self.accept(closing):
                items.append(self.operand())
                self.accept(",")
            return Group(tuple(items))
        if token in "-!":
            return token + self.resolve(self.take())
        name = self.resolve(token)
        if self.accept("|"):
            return Group((name, self.resolve(self.take())))
        if self.peek() == "+":
            self.take()
            return Address(name, integer(self.take()))
        return name

    def address(self) -> Operand:
        """After `[`; with coordinates, as of a texture, a group that no instruction takes for an address."""
        base = self.resolve(self.take())
        offset = 0
        while not self.accept("]"):
            sign = self.take()
            if sign == ",":
                return Group((Address(base, offset), *self.coordinates()))
            negative = sign == "-" or self.accept("-")
            offset += -integer(self.take()) if negative else integer(self.take())
        return Address(base, offset)

    def coordinates(self) -> list[Operand]:
        found = []
        while not self.accept("]"):
            found.append(self.operand())
            self.accept(",")
        return found
