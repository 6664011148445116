"""Branches, calls, barriers, and operations across the lanes of a warp."""

from __future__ import annotations

from ptxemu.ptx import module as out
from ptxemu.ptx.calls import CODE_WINDOW, Call, sequence
from ptxemu.ptx.lowering import FunctionLowering
from ptxemu.ptx.operations import PREDICATE, width_of
from ptxemu.ptx.selection.memory import SPACES, locate
from ptxemu.ptx.tree import Address, Function, Group, Operand, Statement

_REDUCTIONS = {"popc": 1, "and": 2, "or": 3}
_SHUFFLES = frozenset(["up", "down", "bfly", "idx"])
_VOTES = frozenset(["all", "any", "uni"])


def jump(low: FunctionLowering, statement: Statement) -> None:
    """`bra`"""
    if not isinstance(statement.operands[0], str):
        raise low.unsupported("a branch target is expected")
    low.branch(statement.operands[0])


def jump_table(low: FunctionLowering, statement: Statement) -> None:
    """`brx.idx`: one comparison and branch per entry."""
    index, table = statement.operands
    targets = low.branch_targets.get(f"{low.prefix}{table}")
    if targets is None or statement.guard is not None:
        raise low.unsupported("a jump table that is not in the function")
    for position, target in enumerate(targets):
        matches = low.temporary(PREDICATE)
        low.emit_lane("setp_eq_u32", matches, [index, str(position)], "alu")
        low.branch(target, guard=matches)


def leave(low: FunctionLowering, statement: Statement) -> None:
    """`ret` and `exit`; a kernel has nowhere to return to."""
    if statement.parts[0] == "ret" and low.prefix:
        low.emit("ret", [0, 0, 0, low.frame_register()], "branch")
    else:
        low.emit("exit", [], "branch")


def stop(low: FunctionLowering, statement: Statement) -> None:
    """`trap` and `brkpt`"""
    low.emit("trap", [], "branch")


def nothing(low: FunctionLowering, statement: Statement) -> None:
    """Fences, prefetches, pauses and hints: no effect on values here."""
    low.emit("nop", [], "alu")


def fence(low: FunctionLowering, statement: Statement) -> None:
    """`fence`: that between proxies is looked for by the checks."""
    low.emit("fence_proxy_async" if statement.parts[1:3] == ("proxy", "async") else "nop", [], "alu")


def sleep(low: FunctionLowering, statement: Statement) -> None:
    """`nanosleep`: lets other warps run."""
    low.emit("nanosleep", [], "alu")


def create_policy(low: FunctionLowering, statement: Statement) -> None:
    """A cache policy is an opaque number that only hints read."""
    low.emit("mov_b64", [low.destination(statement.operands[0], 64), low.constant(0, 64)], "mov")


def barrier(low: FunctionLowering, statement: Statement) -> None:
    """`bar` and `barrier`: sync, arrive, reductions, `bar.warp.sync`, and the arrivals and waits of a cluster."""
    parts = [part for part in statement.parts[1:] if part not in ("cta", "aligned")]
    if parts[0] == "cluster":
        arrives = out.ARRIVE_ONLY if parts[1] == "arrive" else 0
        low.emit("bar_sync", [], "bar", flags=out.CLUSTER | arrives)
    elif parts[0] == "warp":
        low.emit("bar_warp_sync", [0, 0, 0, 0, low.read(statement.operands[0], 32)], "bar")
    elif parts[0] == "sync":
        _wait(low, statement.operands, 0, 0)
    elif parts[0] == "arrive":
        _wait(low, statement.operands, out.ARRIVE_ONLY, 0)
    elif parts[0] == "red" and parts[1] in _REDUCTIONS:
        destination, *middle, vote = statement.operands
        width = 32 if parts[1] == "popc" else PREDICATE
        _wait(low, middle, 0, _REDUCTIONS[parts[1]], low.destination(destination, width), low.read(vote, PREDICATE))
    else:
        raise low.unsupported()


def _wait(
    low: FunctionLowering, operands: list[Operand], flags: int, reduction: int, destination: int = 0, vote: int = 0
) -> None:
    number = low.read(operands[0], 32)
    count = low.read(operands[1], 32) if len(operands) > 1 else number
    whole = out.FULL_BLOCK if len(operands) < 2 else 0
    low.emit("bar_sync", [destination, number, count, vote], "bar", flags=flags | whole, extra=reduction)


def _with_predicate(low: FunctionLowering, operand: Operand) -> tuple[Operand, int, int]:
    """Destination, predicate register and flag of `d|p`."""
    if not isinstance(operand, Group):
        return operand, 0, 0
    destination, predicate = operand.items
    return destination, low.destination(predicate, PREDICATE), out.HAS_RESULT


def shuffle(low: FunctionLowering, statement: Statement) -> None:
    """`shfl.sync`"""
    if statement.parts[1] != "sync" or statement.parts[2] not in _SHUFFLES:
        raise low.unsupported()
    target, source, offset, control, members = statement.operands
    destination, predicate, flags = _with_predicate(low, target)
    sources = [low.read(one, 32) for one in (source, offset, control, members)]
    operands = [low.destination(destination, 32), *sources, predicate]
    low.emit(f"shfl_{statement.parts[2]}_b32", operands, "shfl", flags=flags)


def vote(low: FunctionLowering, statement: Statement) -> None:
    """`vote.sync`"""
    mode = next((one for one in statement.parts[1:] if one not in ("sync", "b32", "pred")), "")
    if "sync" not in statement.parts:
        raise low.unsupported("votes without .sync")
    destination, source, members = statement.operands
    if mode == "ballot":
        name, width = "vote_ballot_b32", 32
    elif mode in _VOTES:
        name, width = f"vote_{mode}_pred", PREDICATE
    else:
        raise low.unsupported()
    read = low.read(source, PREDICATE)
    low.emit(name, [low.destination(destination, width), read, 0, 0, low.read(members, 32)], "vote")


def match(low: FunctionLowering, statement: Statement) -> None:
    """`match.any.sync` and `match.all.sync`"""
    _, mode, _, kind = statement.parts
    target, source, members = statement.operands
    destination, predicate, flags = _with_predicate(low, target)
    read = low.read(source, width_of(kind))
    operands = [low.destination(destination, 32), read, 0, 0, low.read(members, 32), predicate]
    low.emit(f"match_{mode}_{kind}", operands, "vote", flags=flags)


def reduce(low: FunctionLowering, statement: Statement) -> None:
    """`redux.sync`"""
    operation, kind = statement.parts[2], statement.parts[-1]
    if len(statement.parts) != 4 or width_of(kind) != 32 or kind == "f32":
        raise low.unsupported()
    kind = kind if operation in ("min", "max") else "b32"
    destination, source, members = statement.operands
    read = low.read(source, 32)
    operands = [low.destination(destination, 32), read, 0, 0, low.read(members, 32)]
    low.emit(f"redux_{operation}_{kind}", operands, "vote")


def elect(low: FunctionLowering, statement: Statement) -> None:
    """`elect.sync`"""
    target, members = statement.operands
    destination, predicate, flags = _with_predicate(low, target)
    operands = [low.destination(destination, 32), 0, 0, 0, low.read(members, 32), predicate]
    low.emit("elect", operands, "vote", flags=flags)


def active_mask(low: FunctionLowering, statement: Statement) -> None:
    """`activemask.b32`"""
    low.emit("activemask", [low.destination(statement.operands[0], 32)], "vote")


def call(low: FunctionLowering, statement: Statement) -> None:
    """`call` of a function of the module or through a register; those of `_SYSTEM_CALLS` are the core's."""
    parts = Call.of(statement)
    if parts.target in _SYSTEM_CALLS and parts.target not in low.context.calls.functions:
        _SYSTEM_CALLS[parts.target](low, parts.results, parts.arguments)
        return
    graph = low.context.calls
    targets = graph.taken if parts.indirect else [parts.target]
    if not parts.indirect and parts.target not in graph.functions:
        if parts.target.startswith(("cudaGetParameterBuffer", "cudaLaunchDevice")):
            raise low.unsupported("kernels launched by kernels are not emulated")
        raise low.unsupported(f"function {parts.target} has no body here")
    if not parts.indirect:
        _check_parameters(low, parts, graph.functions[parts.target])
    start = len(low.kernel.registers)
    low.kernel.registers.append(len(targets))
    for name in targets:
        low.call_targets.append((len(low.kernel.registers) + 1, name))
        low.kernel.registers += [(graph.addresses[name] - CODE_WINDOW) >> 8, 0, 0]
    caller = low.current
    address = low.read(parts.target, 64) if parts.indirect else 0
    operands = [start, address, graph.frame(caller).size, low.frame_register()]
    low.emit("call", operands, "branch", immediate=int(parts.indirect))


def _check_parameters(low: FunctionLowering, parts: Call, callee: Function) -> None:
    """Caller and callee must agree on where everything lies."""
    declared = {one.name: one for one in low.current.variables}
    actual = [declared[one] for one in (*parts.results, *parts.arguments)]
    formal = [*callee.results, *callee.parameters]
    if sequence(actual) != sequence(formal):
        raise low.unsupported("a call with other parameters than the function has")


def _argument(low: FunctionLowering, parameter: Operand, width: int) -> int:
    """A register loaded from a call's `.param` variable."""
    found = low.find_symbol(parameter) if isinstance(parameter, str) else None
    if found is None:
        raise low.unsupported("an argument that is no variable")
    target = low.register(low.temporary(width))
    _, base, wide, offset = locate(low, Address(str(parameter), 0), "param")
    low.emit(
        f"ld_u{width}_{width}_v1",
        [target, 0, 0, 0, base],
        "mov",
        flags=wide,
        immediate=offset,
        memory=low.memory("param", "load", width // 8),
        extra=SPACES["local"],
    )
    return target


def _print(low: FunctionLowering, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    pointers = [_argument(low, one, 64) for one in arguments]
    count = low.register(low.temporary(32))
    low.emit("vprintf", [count, *pointers], "branch")
    _give(low, results, count, 32)


def _give(low: FunctionLowering, results: tuple[Operand, ...], value: int, width: int) -> None:
    """A register into the `.param` variable of a call's result, where it has one."""
    if not results:
        return
    _, base, wide, offset = locate(low, Address(str(results[0]), 0), "param")
    low.emit(
        f"st_u{width}_{width}_v1",
        [value, 0, 0, 0, base],
        "mov",
        flags=wide,
        immediate=offset,
        memory=low.memory("param", "store", width // 8),
        extra=SPACES["local"],
    )


def _allocate(low: FunctionLowering, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    (size,) = (_argument(low, one, 64) for one in arguments)
    address = low.register(low.temporary(64))
    low.emit("heap_allocate", [address, size], "branch")
    _note_heap(low)
    _give(low, results, address, 64)


def _free(low: FunctionLowering, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    (address,) = (_argument(low, one, 64) for one in arguments)
    low.emit("heap_free", [0, address], "branch")
    _note_heap(low)


def _note_heap(low: FunctionLowering) -> None:
    """Addresses depend on the order of blocks, and what lies there on all of them."""
    low.kernel.order_dependent = low.kernel.communicates = True


def _fail(low: FunctionLowering, results: tuple[Operand, ...], arguments: tuple[Operand, ...]) -> None:
    widths = (64, 64, 32, 64)
    read = [_argument(low, one, width) for one, width in zip(arguments, widths, strict=False)]
    low.emit("assertfail", [0, *read], "branch")


_SYSTEM_CALLS = {"vprintf": _print, "__assertfail": _fail, "malloc": _allocate, "free": _free}

CONTROL = {
    "bra": jump,
    "brx": jump_table,
    "ret": leave,
    "exit": leave,
    "trap": stop,
    "brkpt": stop,
    "call": call,
    "bar": barrier,
    "barrier": barrier,
    "shfl": shuffle,
    "vote": vote,
    "match": match,
    "redux": reduce,
    "elect": elect,
    "activemask": active_mask,
    "nanosleep": sleep,
    "createpolicy": create_policy,
    "fence": fence,
    **dict.fromkeys(
        ("membar", "prefetch", "prefetchu", "discard", "applypriority", "griddepcontrol",
         "setmaxnreg", "pmevent"),
        nothing,
    ),
}  # fmt: skip
