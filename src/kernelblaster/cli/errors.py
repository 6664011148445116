"""Turns exceptions into one line, a hint and an exit code.

An exception of an unknown type is a bug; its traceback is shown.
"""

from __future__ import annotations

import errno
import io
import logging
import os
import signal
import sqlite3
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import typer
from rich.markup import escape

from kernelblaster.cli.early import raise_when_interrupted
from kernelblaster.errors import ExitCode, KernelBlasterError, MachineError, UsageError, was_interrupted

_HINTS = {
    errno.ENOSPC: "make room there and give the same command again; what is finished is kept",
    errno.EDQUOT: "make room within your quota and give the same command again; what is finished is kept",
    errno.EACCES: "choose a place that can be written, for example with --out",
    errno.EPERM: "choose a place that can be written, for example with --out",
    errno.EROFS: "choose a place that can be written, for example with --out",
    errno.ENOENT: "name a place that can be made and written, for example with --out",
    errno.ENOTDIR: "name a place that can be made and written, for example with --out",
    errno.ENAMETOOLONG: "give a shorter name",
    errno.EMFILE: "raise the limit of open files: ulimit -n 4096",
}


class _CurrentStderr(logging.Handler):
    """Writes to what standard error is at that moment: a live view takes its place for a while."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr)


def prepare_process() -> None:
    """What the process of a command needs, once, before it starts."""
    # Python has no stream where the shell closed it (`>&-`); what would go there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    # A locale may lack characters that models and people write; losing a result over one of them helps nobody.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if not Path(os.environ.get("TMPDIR") or "/").is_dir():
        # Python looks for another place by itself; compilers have to be told of it.
        os.environ["TMPDIR"] = tempfile.gettempdir()
    # A terminated run cleans up as an interrupted one does: its tensors may fill the shared memory. So does one whose
    # terminal is gone, unless it was started with nohup.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, signal.default_int_handler)
    raise_when_interrupted()
    logging.basicConfig(format="%(message)s", level=logging.WARNING, handlers=[_CurrentStderr()])
    # Why a model is asked again, and when: the wait may be minutes.
    logging.getLogger("kernelblaster.models").setLevel(logging.INFO)


def exit_code_of(command: Callable[[], object]) -> int:
    """Run a command; returns its exit code, having told what went wrong."""
    try:
        return _exit_code_of(command)
    except Exception as error:
        if was_interrupted(error):
            return _interrupted()
        raise


def _exit_code_of(command: Callable[[], object]) -> int:
    try:
        code = command()
        sys.stdout.flush()
        if code == ExitCode.INTERRUPTED:
            # Typer turns KeyboardInterrupt into this code.
            raise KeyboardInterrupt
        return code if isinstance(code, int) else int(ExitCode.OK)
    except KernelBlasterError as error:
        return _interrupted() if was_interrupted(error) else _tell(error)
    except typer.TyperException as error:
        usage = _usage(error)
        # A group that was called without a command has printed its help, and has nothing to add.
        return _tell(usage) if usage.message else int(usage.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        return _without_reader()
    except OSError as error:
        return _tell(_of_system(error))
    except sqlite3.OperationalError as error:
        hint = "see whether its disk has room and can be written; what is finished is kept"
        return _tell(MachineError(f"a database of the run cannot be used: {error}", hint=hint))


def _interrupted() -> int:
    print("\ninterrupted; what is finished is kept, and the same command goes on from there", file=sys.stderr)
    return int(ExitCode.INTERRUPTED)


def leave(code: int) -> NoReturn:
    """End the process. An interrupted one does not wait for threads that wait for candidates: those die with it."""
    if code == ExitCode.INTERRUPTED:
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def tell(message: str, *, hint: str) -> None:
    """Say on standard error, in one line each, what is wrong and what to do about it."""
    from kernelblaster.cli.terminal import SafeConsole

    console = SafeConsole(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]error:[/] {escape(message)}")
    if hint:
        console.print(f"  [dim]->[/] {escape(hint)}")


def _tell(error: KernelBlasterError) -> int:
    tell(error.message, hint=error.hint)
    return int(error.exit_code)


def _usage(error: typer.TyperException) -> UsageError:
    """What the parser of arguments found."""
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "kernelblaster"
    # A validator's word for itself, before what it says.
    message = error.format_message().replace(": Value error, ", ": ")
    return UsageError(message, hint=f"see `{command} --help`")


def _of_system(error: OSError) -> MachineError:
    """What the operating system refused."""
    what = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename else ""
    return MachineError(f"{where}{what}", hint=_HINTS.get(error.errno or 0, "see `kernelblaster doctor`"))


def _without_reader() -> int:
    """The reader of our output is gone (`| head`); there is nobody left to tell."""
    # What is still buffered would be written, and fail again, when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(ExitCode.FAILED)
