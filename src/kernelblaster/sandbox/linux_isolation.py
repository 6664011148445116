"""System calls that shut a process in: namespaces, mounts, capabilities, a filter against forks.

Runs between fork and exec in the supervisor. Standard library only, and little of it: it is loaded for every command.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import platform
import re
import socket
import struct
from collections.abc import Mapping, Sequence

_CLONE_NEWNS = 0x00020000
_CLONE_NEWUTS = 0x04000000
_CLONE_NEWIPC = 0x08000000
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWPID = 0x20000000
_CLONE_NEWNET = 0x40000000
_CLONE_THREAD = 0x00010000
_SIGCHLD = 17
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAPBSET_DROP = 24
_PR_CAP_AMBIENT, _CLEAR_AMBIENT = 47, 4
_LAST_CAPABILITY = 63
_SYS_ADMIN, _PERFMON, _DAC_OVERRIDE = 21, 38, 1
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT = 1, 2, 4, 8, 32
_BIND, _REC, _PRIVATE, _DETACH = 4096, 16384, 1 << 18, 2
_KEPT_FLAGS = {
    "nosuid": _NOSUID,
    "nodev": _NODEV,
    "noexec": _NOEXEC,
    "noatime": 1024,
    "nodiratime": 2048,
    "relatime": 1 << 21,
}
_NODES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = {"fd": "", "stdin": "/0", "stdout": "/1", "stderr": "/2"}
_NEW, _OLD = "/new", "/old"
_LISTING = "/.listing"

_libc = ctypes.CDLL(None, use_errno=True)


def libc() -> ctypes.CDLL:
    """The C library, with its errno kept."""
    return _libc


def _system_call(number: int, *arguments: int | bytes | None) -> int:
    """Raw system call; integers are passed as wide as a register."""
    words = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result: int = _libc.syscall(ctypes.c_long(number), *words)
    return result


def _require(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


# ---------------------------------------------------------------------- namespaces


def clone_into_namespaces(*, network: bool) -> tuple[int, bool]:
    """Fork into namespaces of its own, whose first process the child is.

    Returns the child's number, 0 in the child, and whether it is in a user namespace, too, as it must be without the
    privileges of root. Raises OSError where the kernel refuses.
    """
    flags = _SIGCHLD | _CLONE_NEWNS | _CLONE_NEWPID | _CLONE_NEWIPC | _CLONE_NEWUTS | (0 if network else _CLONE_NEWNET)
    number = _SYSTEM_CALLS[platform.machine()][2]
    for extra in (0, _CLONE_NEWUSER):
        pid = _system_call(number, flags | extra, 0, 0, 0, 0)
        if pid >= 0:
            return pid, bool(extra)
    _require(pid, "clone")
    raise AssertionError


def map_user(uid: int, gid: int) -> None:
    """Keep this process' user and group in its new user namespace."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        path = f"/proc/self/{name}"
        try:
            with open(path, "w") as file:
                file.write(text)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error


def isolate_network() -> bool:
    """Move this process to an empty network namespace with a loopback of its own. False where refused."""
    uid, gid = os.geteuid(), os.getegid()
    if _libc.unshare(_CLONE_NEWNET) != 0:
        if _libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
            return False
        map_user(uid, gid)
    raise_loopback()
    return True


def raise_loopback() -> None:
    """Profilers talk to the program over loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as interface:
        fcntl.ioctl(interface, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


# ---------------------------------------------------------------------- file system


def _mount(source: str, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
    _require(_libc.mount(texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3]), f"mount {target}")


def _pivot(root: str, put_old: str) -> None:
    number = {"x86_64": 155, "aarch64": 41}[platform.machine()]
    _require(_system_call(number, root.encode(), put_old.encode()), "pivot_root")


def enter_root(steps: Sequence[Mapping[str, str | int]], cwd: str) -> None:
    """Make the file system that the steps describe this process' own (see `isolation.Step`), read-only at its root.

    Raises OSError, naming what could not be mounted.
    """
    _mount("none", "/", None, _REC | _PRIVATE)
    _mount("tmpfs", "/tmp", "tmpfs", _NOSUID | _NODEV, "mode=755,size=16m")
    os.mkdir(f"/tmp{_NEW}")
    os.mkdir(f"/tmp{_OLD}")
    _mount(f"/tmp{_NEW}", f"/tmp{_NEW}", None, _BIND)
    _pivot("/tmp", f"/tmp{_OLD}")
    os.chdir("/")
    for step in steps:
        _carry_out(step)
    _require(_libc.umount2(_OLD.encode(), _DETACH), "umount")
    os.chdir(_NEW)
    _pivot(".", ".")
    _require(_libc.umount2(b".", _DETACH), "umount")
    _seal(steps)
    os.chdir(cwd)


def _carry_out(step: Mapping[str, str | int]) -> None:
    kind, path, source = str(step["kind"]), str(step["path"]), str(step["source"])
    target = _NEW + path
    if kind == "link":
        os.symlink(source, target)
    elif kind == "processes":
        os.makedirs(target, exist_ok=True)
        _mount("proc", target, "proc", _NOSUID | _NODEV | _NOEXEC)
    elif kind == "devices":
        _make_devices(target)
    elif kind == "memory":
        os.makedirs(target, exist_ok=True)
        _mount("tmpfs", target, "tmpfs", _NOSUID | _NODEV, f"mode=1777,size={step['bytes'] or 4096}")
    else:
        _bind(_OLD + source, target)


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
    _mount(source, target, None, _BIND | _REC)


def _make_devices(target: str) -> None:
    os.makedirs(target)
    _mount("tmpfs", target, "tmpfs", _NOSUID, "mode=755,size=64k")
    for name in _NODES:
        if os.path.exists(f"{_OLD}/dev/{name}"):
            _bind(f"{_OLD}/dev/{name}", f"{target}/{name}")
    for name, end in _LINKS.items():
        os.symlink(f"/proc/self/fd{end}", f"{target}/{name}")
    os.mkdir(f"{target}/shm")


def _seal(steps: Sequence[Mapping[str, str | int]]) -> None:
    """Make every mount read-only, also those below a folder that was shown, unless a step says that it is written."""
    open_kinds = ("writable", "device", "memory", "processes")
    kinds = {str(step["path"]): str(step["kind"]) in open_kinds for step in steps}
    # Device nodes are written through their drivers, not through the mount.
    kinds |= {f"/dev/{name}": True for name in _NODES}
    for path, options in _mounts():
        if not kinds.get(_nearest(path, kinds), False) and "ro" not in options:
            flags = sum(flag for name, flag in _KEPT_FLAGS.items() if name in options)
            _mount("none", path, None, _BIND | _REMOUNT | _RDONLY | flags)


def _nearest(path: str, kinds: Mapping[str, bool]) -> str:
    while path not in kinds and path != "/":
        path = os.path.dirname(path)
    return path


def _mounts() -> list[tuple[str, list[str]]]:
    """Mount points and their options, as the kernel lists them in a `/proc` that is there only meanwhile."""
    os.mkdir(_LISTING)
    _mount("proc", _LISTING, "proc", _NOSUID | _NODEV | _NOEXEC)
    found = []
    with open(f"{_LISTING}/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            words = line.split(" ")
            path = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), words[4])
            if path != _LISTING:
                found.append((path, words[5].split(",")))
    _require(_libc.umount2(_LISTING.encode(), _DETACH), "umount")
    os.rmdir(_LISTING)
    return found


# ---------------------------------------------------------------------- Landlock

_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446
_READ = 0b1101
"""Execute, read files, read directories; as the kernel numbers rights."""
_ON_FILES = 0b0100_0000_0000_0111
"""Rights that a file can carry: execute, write, read, truncate."""
_RIGHTS = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF}
"""Version of the interface -> rights on files that it knows; control of devices, which came later, stays free."""
_TCP, _SCOPES = 0b11, 0b11
_SCOPE_VERSION, _TCP_VERSION = 6, 4


def landlock_version() -> int:
    """Version of the kernel's Landlock interface, negative where there is none. Signals are restricted from 6 on."""
    return _system_call(_LANDLOCK_CREATE, None, 0, 1)


def restrict_files(steps: Sequence[Mapping[str, str | int]], *, network: bool) -> None:
    """Refuse to read or write any file but those that the steps show, from now on, and to signal other processes.

    What a path cannot say is left out: there is no private `/tmp`, and names and sizes of files can still be asked for.
    Raises OSError where the kernel has no Landlock.
    """
    version = landlock_version()
    _require(version, "Landlock")
    rights = _RIGHTS[min(version, max(_RIGHTS))]
    words = [rights, 0 if network or version < _TCP_VERSION else _TCP, _SCOPES]
    known = 3 if version >= _SCOPE_VERSION else 2 if version >= _TCP_VERSION else 1
    rules = _system_call(_LANDLOCK_CREATE, struct.pack(f"{known}Q", *words[:known]), 8 * known, 0)
    _require(rules, "Landlock")
    for path, allowed in _landlock_rules(steps, rights):
        _allow_beneath(rules, path, allowed)
    _require(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    _require(_system_call(_LANDLOCK_RESTRICT, rules, 0), "Landlock")
    os.close(rules)


def _landlock_rules(steps: Sequence[Mapping[str, str | int]], rights: int) -> list[tuple[str, int]]:
    found = [(f"/dev/{name}", rights) for name in _NODES]
    for step in steps:
        path, kind = str(step["path"]), str(step["kind"])
        if kind == "readable":
            found.append((path, _READ))
        elif kind == "processes":
            # Threads are named through files of their own process.
            found += [(path, _READ), (f"{path}/self", rights)]
        elif kind in ("writable", "device"):
            found.append((path, rights))
    return found


def _allow_beneath(rules: int, path: str, allowed: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return  # one of the usual nodes that this machine does not have
    if not os.path.isdir(path):
        allowed &= _ON_FILES
    beneath = 1
    result = _system_call(_LANDLOCK_ADD, rules, beneath, struct.pack("=Qi", allowed, place), 0)
    os.close(place)
    _require(result, f"Landlock {path}")


# ---------------------------------------------------------------------- privileges


def give_up_privileges(*, counters: bool, isolated: bool) -> None:
    """Let no program that is executed from now on gain privileges, not even those that root has.

    Hardware counters may ask for some. Without isolation the files of other users' directories stay within reach, as
    they are for the process that made the working directory.
    """
    kept = {_SYS_ADMIN, _PERFMON} if counters else set()
    if not isolated:
        kept.add(_DAC_OVERRIDE)
    for capability in range(_LAST_CAPABILITY + 1):
        if capability not in kept:
            _libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
    if not counters:
        _libc.prctl(_PR_CAP_AMBIENT, _CLEAR_AMBIENT, 0, 0, 0)
    _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


class _Instruction(ctypes.Structure):
    _fields_ = (("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte), ("k", ctypes.c_uint))


class _Program(ctypes.Structure):
    _fields_ = (("len", ctypes.c_ushort), ("filter", ctypes.POINTER(_Instruction)))


_NO_CALL = 0xFFFFFFFF
_SYSTEM_CALLS = {
    # machine: (audit architecture, seccomp, clone, clone3, fork, vfork, first call number of another ABI)
    "x86_64": (0xC000003E, 317, 56, 435, 57, 58, 0x40000000),
    "aarch64": (0xC00000B7, 277, 220, 435, _NO_CALL, _NO_CALL, _NO_CALL),
}


def no_fork_filter() -> bytes | None:
    """A filter that lets a process make threads and no processes, as the kernel takes it; None where none is known."""
    if platform.machine() not in _SYSTEM_CALLS:
        return None
    architecture, _, clone, clone3, fork, vfork, foreign = _SYSTEM_CALLS[platform.machine()]
    load, equal, at_least, any_bit, give = 0x20, 0x15, 0x35, 0x45, 0x06
    allow, refuse = 0x7FFF0000, 0x00050000
    lines = [
        (load, 0, 0, 4),  # the architecture of the call
        (equal, 0, 8, architecture),
        (load, 0, 0, 0),  # its number
        (at_least, 6, 0, foreign),
        (equal, 5, 0, fork),
        (equal, 4, 0, vfork),
        (equal, 4, 0, clone3),  # its flags lie in memory, out of a filter's sight: libc falls back to clone
        (equal, 0, 4, clone),
        (load, 0, 0, 16),  # the flags of clone
        (any_bit, 2, 0, _CLONE_THREAD),
        (give, 0, 0, refuse | errno.EPERM),
        (give, 0, 0, refuse | errno.ENOSYS),
        (give, 0, 0, allow),
    ]
    return b"".join(bytes(_Instruction(*line)) for line in lines)


def forbid_forks() -> bool:
    """Let this process make threads, and no processes, from now on. False where the kernel refuses."""
    code = no_fork_filter()
    if code is None or _libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    count = len(code) // ctypes.sizeof(_Instruction)
    program = _Program(count, (_Instruction * count).from_buffer_copy(code))
    set_filter, keep_speculation = 1, 4
    number = _SYSTEM_CALLS[platform.machine()][1]
    return _system_call(number, set_filter, keep_speculation, ctypes.addressof(program)) == 0
