"""What a command sees of the machine: the plan that bubblewrap, namespaces or Landlock carry out.

Strongest first: bubblewrap, where it is installed; user, mount and process namespaces made here; Landlock; limits
alone. The first two give a command a file system of its own: what its `SystemView` shows of the system, private `/tmp`
and `/dev/shm`, what its `FileView` names, and nothing else. No home directory, no problem directory, no knowledge base,
no other candidate is there to be read. Landlock, which containers mostly allow, refuses to open anything else instead
of hiding it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Generic, TypeVar

from kernelblaster.paths import data_dir

Result = TypeVar("Result")
PRIVATE_BYTES = 1 << 30
"""Most that a command may put into its private `/tmp`, and into its private `/dev/shm`."""
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/opt/nvidia", "/nix/store", "/sys")
_TOOL_FOLDERS = (
    *("/bin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"),
    *("/usr/bin", "/usr/include", "/usr/lib32", "/usr/lib64", "/usr/libx32", "/usr/libexec"),
    *("/usr/local/bin", "/usr/local/include", "/usr/local/lib/gcc", "/usr/local/lib64", "/usr/local/libexec"),
)
"""Programs, headers and libraries that compilers and binutils consist of; more of `/usr/lib` in `_tool_libraries`."""
SHARED_PREFIXES = (Path("/"), Path("/usr"), Path("/usr/local"))
"""Where a tool is installed among everything else, so that its installation is no folder of its own."""
_TOOL_SETTINGS = ("alternatives", "ld.so.cache")
"""Of `/etc`: links to tools, and where the dynamic linker finds libraries."""
_PROGRAM_SETTINGS = ("ld.so.cache", "nvidia")
_SETTINGS = (
    *("alternatives", "group", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime", "nsswitch.conf", "nvidia"),
    "passwd",
)
"""Of `/etc`: what the dynamic linker and the C library read. No keys, no passwords."""
_CONTROLS = ("/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus")
"""What root could change the machine with, even without privileges."""
_DEVICES = ("nvidia*", "nvhost*", "nvmap", "dxg")


class Isolation(StrEnum):
    """How a command is kept apart from the rest of the machine, strongest first."""

    BUBBLEWRAP = "bubblewrap"
    NAMESPACES = "namespaces"
    LANDLOCK = "landlock"
    """It sees names of files, but opens only those of its view; no signal of its leaves it (since Linux 6.12)."""
    LIMITS = "limits"
    """It is bounded, has a clean environment and mostly no network, but sees the files that this user sees."""

    @property
    def isolates(self) -> bool:
        """Whether a command under it cannot read the files of this user."""
        return self is not Isolation.LIMITS


LEVELS = tuple(Isolation)
"""Strongest first."""


def weaker(level: Isolation) -> tuple[Isolation, ...]:
    """A level and those below it, strongest first."""
    return LEVELS[LEVELS.index(level) :]


@dataclass(frozen=True)
class WorkingLevel(Generic[Result]):
    """The strongest level in which something works.

    Attributes:
        level: the level.
        result: what came of it there.
        refused: stronger levels, and why it did not work in each.
    """

    level: Isolation
    result: Result
    refused: Mapping[Isolation, Exception]

    @property
    def reason(self) -> Exception | None:
        """Why it does not work in the strongest level that was tried; None when it does."""
        return next(iter(self.refused.values()), None)


def strongest_working(
    levels: Iterable[Isolation], attempt: Callable[[Isolation], Result], failure: type[Exception]
) -> WorkingLevel[Result]:
    """Attempt something under each level until one does not raise `failure`; the first `failure` when all do."""
    refused: dict[Isolation, Exception] = {}
    for level in levels:
        try:
            return WorkingLevel(level, attempt(level), refused)
        except failure as error:
            refused[level] = error
    raise next(iter(refused.values()))


class SystemView(IntEnum):
    """How much of the system a command sees beside what its `FileView` names, least first."""

    NOTHING = 0
    """A few nodes of `/dev`: everything that it needs is named."""
    TOOLS = 1
    """Compilers and binutils with their headers and libraries: no settings, no `/proc`, no `/sys`, no GPU."""
    PROGRAM = 2
    """What CUDA's driver asks for: settings, `/proc`, `/sys` and the GPU. Libraries and programs are named."""
    WHOLE = 3
    """All system folders, and what a program sees: profilers and sanitizers are at home in many places."""


@dataclass(frozen=True)
class FileView:
    """What a command sees beside its working directory. Paths are absolute.

    Attributes:
        readable: files and directories.
        writable: directories.
        system: what of the system; None leaves that to the view that it is joined with, and is `WHOLE` at last.
        counters: keep the privileges, if this process has them, without which the driver refuses hardware counters.
    """

    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    system: SystemView | None = None
    counters: bool = False

    def __or__(self, other: FileView) -> FileView:
        wanted = [view.system for view in (self, other) if view.system is not None]
        return FileView(
            (*self.readable, *other.readable),
            (*self.writable, *other.writable),
            max(wanted, default=None),
            self.counters or other.counters,
        )


class MountKind(StrEnum):
    """What a step of a plan puts at its path."""

    READABLE = "readable"
    WRITABLE = "writable"
    DEVICE = "device"
    DEVICES = "devices"
    """The nodes that every program expects: null, zero, full, random, urandom, tty, and links to descriptors."""
    PROCESSES = "processes"
    MEMORY = "memory"
    """An empty file system in memory, of `bytes`."""
    LINK = "link"


@dataclass(frozen=True)
class MountStep:
    """One entry of the file system that a command sees.

    Attributes:
        kind: what lies there.
        path: where.
        source: the file or directory shown there, or what a link says; without symbolic links.
        bytes: size of a file system in memory.
    """

    kind: MountKind
    path: str
    source: str = ""
    bytes: int = 0


def plan(view: FileView, cwd: Path) -> list[MountStep]:
    """The whole file system of a command, parents before children."""
    shows = SystemView.WHOLE if view.system is None else view.system
    system = [*_folders(shows), *(_shown(MountKind.READABLE, path) for path in _settings(shows))]
    roots = {step.path for step in system}
    named = (*view.readable, *(_library_path() if shows is SystemView.WHOLE else ()))
    asked = {path: real for path, real in _existing(named) if not _below(path, roots)}
    writable = dict(_existing((*view.writable, cwd)))
    kinds = {path: MountKind.READABLE for path in asked if not _below(os.path.dirname(path), asked)}
    kinds |= dict.fromkeys(writable, MountKind.WRITABLE)
    real = asked | writable
    # A folder that is shown whole would be mounted over parts of it that are shown for the system's sake.
    system = [step for step in system if not _below(step.path, kinds)]
    shown = [MountStep(kind, path, real[path]) for path, kind in kinds.items()]
    shown.sort(key=lambda step: (step.path.count("/"), step.path))
    data = data_dir()
    hidden = [MountStep(MountKind.MEMORY, str(data))] if data.is_dir() and _below(str(data), roots) else []
    return [*system, *hidden, *_fresh(shows), *shown]


def _fresh(shows: SystemView) -> list[MountStep]:
    """What no folder of the system is: processes, devices, private memory."""
    private = [
        MountStep(MountKind.DEVICES, "/dev"),
        MountStep(MountKind.MEMORY, "/dev/shm", bytes=PRIVATE_BYTES),
        MountStep(MountKind.MEMORY, "/tmp", bytes=PRIVATE_BYTES),
    ]
    if shows < SystemView.PROGRAM:
        return private
    return [
        MountStep(MountKind.PROCESSES, "/proc"),
        *(_shown(MountKind.READABLE, Path(name)) for name in _CONTROLS if os.path.exists(name)),
        *private,
        *(_shown(MountKind.DEVICE, path) for pattern in _DEVICES for path in sorted(Path("/dev").glob(pattern))),
    ]


def as_words(steps: Sequence[MountStep]) -> list[dict[str, str | int]]:
    """A plan as JSON can carry it."""
    return [asdict(step) for step in steps]


def bubblewrap_command(
    bwrap: Path, steps: Sequence[MountStep], view: FileView, cwd: Path, *, network: bool, root: bool
) -> list[str]:
    """Arguments to put before a command; a descriptor of its system call filter goes between them and `--`.

    Args:
        network: whether it keeps this machine's network.
        root: whether this process has the privileges of root, which the command then loses. Without them a new user
            namespace lends it some; bubblewrap thinks of that itself unless this user is root in name.
    """
    options = ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    options += [] if network else ["--unshare-net"]
    if root:
        options += ["--cap-drop", "ALL", *(["--cap-add", "CAP_SYS_ADMIN"] if view.counters else [])]
    elif os.geteuid() == 0:
        options += ["--unshare-user"]
    for step in steps:
        options += _options(step)
    return [str(bwrap), *options, "--remount-ro", "/", "--chdir", str(cwd)]


def _options(step: MountStep) -> list[str]:
    if step.kind is MountKind.MEMORY:
        return ["--size", str(step.bytes or 4096), "--tmpfs", step.path]
    if step.kind is MountKind.DEVICES:
        return ["--dev", step.path]
    if step.kind is MountKind.PROCESSES:
        return ["--proc", step.path]
    name = {
        MountKind.READABLE: "--ro-bind",
        MountKind.WRITABLE: "--bind",
        MountKind.DEVICE: "--dev-bind",
        MountKind.LINK: "--symlink",
    }
    return [name[step.kind], step.source, step.path]


def installation(executable: Path) -> list[Path]:
    """Directories that a tool needs to be seen to run: its own, or the one above its `bin`, symbolic links followed.

    Never one that holds this user's home directory, or that all tools share.
    """
    found = []
    for path in (executable, executable.resolve()):
        directory = path.parent
        own = directory.name == "bin" and directory.parent not in SHARED_PREFIXES
        root = directory.parent if own else directory
        found.append(next((choice for choice in (root, directory) if not _holds_home(choice)), path))
    return list(dict.fromkeys(found))


def named_in(argv: Sequence[str]) -> tuple[Path, ...]:
    """Existing files and directories that a compiler's arguments name, with or without an option before them."""
    words = (word.removeprefix("-I").removeprefix("-L").removeprefix("-Wl,-rpath,") for word in argv)
    return tuple(Path(word) for word in words if word.startswith("/") and os.path.exists(word))


def _folders(shows: SystemView) -> Iterator[MountStep]:
    names: tuple[str, ...] = {
        SystemView.NOTHING: (),
        SystemView.TOOLS: (*_TOOL_FOLDERS, *_tool_libraries()),
        SystemView.PROGRAM: ("/nix/store", "/sys"),
        SystemView.WHOLE: _SYSTEM,
    }[shows]
    for name in names:
        path = Path(name)
        if path.is_symlink():
            yield MountStep(MountKind.LINK, name, str(path.readlink()))
        elif path.is_dir():
            yield MountStep(MountKind.READABLE, name, name)


def _tool_libraries() -> tuple[str, ...]:
    """Where compilers' own parts and libraries lie: two folders of `/usr/lib`, or it alone where it has no others."""
    own = sorted(Path("/usr/lib").glob("*-linux-gnu*"))
    if not own:
        return ("/usr/lib",)
    return ("/usr/lib/gcc", "/usr/lib/bfd-plugins", *map(str, own))


def _settings(shows: SystemView) -> list[Path]:
    names: tuple[str, ...] = {
        SystemView.NOTHING: (),
        SystemView.TOOLS: _TOOL_SETTINGS,
        SystemView.PROGRAM: _PROGRAM_SETTINGS,
        SystemView.WHOLE: _SETTINGS,
    }[shows]
    return [path for path in (Path("/etc") / name for name in names) if path.exists()]


def _library_path() -> Iterator[Path]:
    """Directories of LD_LIBRARY_PATH, which commands inherit."""
    for entry in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep):
        if entry.startswith("/") and not _holds_home(Path(entry)):
            yield Path(entry)


def _existing(paths: Iterable[Path]) -> Iterator[tuple[str, str]]:
    """Those that are there, under their name and, where it leads through symbolic links, under the real one.

    Each with its real path. Plain strings: a process sees hundreds of libraries one by one, and several start at once.
    """
    for path in dict.fromkeys(paths):
        if os.path.exists(path):
            real = os.path.realpath(path)
            yield from ((name, real) for name in dict.fromkeys((os.path.abspath(path), real)))


def _shown(kind: MountKind, path: Path) -> MountStep:
    return MountStep(kind, str(path), os.path.realpath(path))


def _below(path: str, roots: Container[str]) -> bool:
    """Whether an absolute path, or a folder that it lies in, is one of `roots`."""
    while path not in roots:
        parent = os.path.dirname(path)
        if parent == path:
            return False
        path = parent
    return True


def _holds_home(directory: Path) -> bool:
    return Path.home().is_relative_to(directory)
