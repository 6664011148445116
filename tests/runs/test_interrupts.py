"""Ctrl-C while threads wait."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading

from kernelblaster.runs.interrupts import run_to_end

SCRIPT = """
import asyncio, threading
from kernelblaster.runs.interrupts import run_to_end

closed = threading.Event()

async def search():
    loop = asyncio.get_running_loop()

    def hand_over():
        closed.wait(10)
        loop.call_soon_threadsafe(print)

    waiting.append(threading.Thread(target=hand_over))
    waiting[0].start()
    raise KeyboardInterrupt

waiting = []
try:
    run_to_end(search())
except KeyboardInterrupt:
    closed.set()
    waiting[0].join(10)
    print("interrupted")
"""


def test_threads_that_come_too_late_are_not_complained_of() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


def test_a_search_runs_where_a_loop_runs_already() -> None:
    async def search() -> str:
        return threading.current_thread().name

    async def notebook() -> str:
        return run_to_end(search())

    assert asyncio.run(notebook()) != threading.current_thread().name
