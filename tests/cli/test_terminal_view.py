"""What a person at a terminal sees, on a pseudo terminal."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import sys
import termios
from io import StringIO
from pathlib import Path

import pytest
from cli_support import BROKEN, FASTER, clean_environment, write_recording
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kernelblaster.cli.terminal import SafeConsole, visible
from kernelblaster.errors import ExitCode

COLOUR = re.compile(r"\x1b\[[0-9;]*3[0-9][0-9;]*m")
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(arguments: list[object], cwd: Path, columns: int = 110, **settings: str) -> tuple[int, str]:
    """Exit code of a command, and all that it wrote to a terminal."""
    pid, descriptor = pty.fork()
    if pid == 0:
        os.chdir(cwd)
        environment = clean_environment(TERM="xterm-256color", **settings)
        os.execve(sys.executable, [sys.executable, "-m", "kernelblaster", *map(str, arguments)], environment)
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
    written = b""
    while True:
        try:
            data = os.read(descriptor, 1 << 16)
        except OSError:  # Linux says so when the other end is closed.
            break
        if not data:
            break
        written += data
    os.close(descriptor)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), written.decode()


@pytest.mark.nvcc
@pytest.mark.usefixtures("nvcc")
def test_a_run_is_a_table_that_refreshes(tmp_path: Path, dataset: Path) -> None:
    recording = write_recording(tmp_path / "rec.jsonl", BROKEN, FASTER)
    arguments = ["run", "--recording", recording, "--dataset-dir", dataset, "--rollouts=1", "--steps=1"]
    code, written = on_terminal([*arguments, "--device=emulated"], tmp_path)
    assert code == ExitCode.OK, written
    text = CONTROL.sub("", written)
    assert "best, modelled" in text
    assert re.search(r"level1/023 .* 1 of 2 ", text)
    assert re.search(r"(compiling|running) a kernel (for|of) level1/023[^(\n]*\(\d+ s\)", text)
    assert COLOUR.search(written)
    assert written.endswith("\x1b[?25h") or "\x1b[?25h" in written  # the cursor is back
    width = max(len(line) for line in re.split(r"[\r\n]", text) if line.startswith("level1/023"))
    assert width <= 110


@pytest.mark.parametrize(("settings", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colours_can_be_switched_off(tmp_path: Path, settings: dict[str, str], coloured: bool) -> None:
    code, written = on_terminal(["evaluate", "23", "missing.cu"], tmp_path, **settings)
    assert code == ExitCode.USAGE
    assert "missing.cu" in written
    assert bool(COLOUR.search(written)) == coloured


HOSTILE = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202eb\rc"


def test_nothing_that_is_shown_is_obeyed_by_the_terminal() -> None:
    shown = StringIO()
    console = SafeConsole(file=shown, force_terminal=True, width=200)
    table = Table("x")
    table.add_row(HOSTILE)
    for one in (HOSTILE, Text(HOSTILE), table, Panel(HOSTILE)):
        console.print(one, style="red")
    with Live(Text(HOSTILE), console=console, auto_refresh=False) as live:
        live.update(Text("after" + HOSTILE), refresh=True)
    assert "\x1b[31m" in shown.getvalue()
    left = CONTROL.sub("", shown.getvalue().replace("\r", "")).replace("\n", "")
    assert left.isprintable()
    assert "\x1b[2J" not in shown.getvalue()
    assert visible(HOSTILE).isprintable()
