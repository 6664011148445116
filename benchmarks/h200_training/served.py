"""Asks a model that `train serve` would serve: letters of trained weights, long texts of the base, a search."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from kernelblaster.training.arms import BASE
from kernelblaster.training.serving import ServedModel, serve
from kernelblaster.training.stages import Stage

AT_ONCE = 8
TOKENS = 256
_WAIT_S = 300
_SEARCH_S = 120


def ask_served(opened: Callable[[str], ServedModel], device: str, size: str, work: Path) -> Iterator[dict[str, Any]]:
    """Seconds and tokens of requests alone and at once, and how a search ends whose model answers by letter.

    Args:
        opened: makes a served model of weights by their name.
        device, size: of the search.
        work: where it writes.

    Yields a figure by its name, as soon as it is there.
    """
    url = _served(opened(BASE))
    for count in (1, AT_ONCE):
        yield {f"{count} at once": _asked(url, BASE, ["softmax " * 32] * count, TOKENS)}
    began = time.monotonic()
    url = _served(opened(Stage.MIDEND))
    yield {"load_seconds": time.monotonic() - began}
    yield {"letters": _asked(url, Stage.MIDEND, ["m Softmax"] * AT_ONCE, 1)}
    yield {"search": _searched(url, device, size, work)}


def _served(model: ServedModel) -> str:
    ready: list[str] = []
    up = threading.Event()
    threading.Thread(target=serve, args=(model, 0, lambda url: (ready.append(url), up.set())), daemon=True).start()
    if not up.wait(_WAIT_S):
        raise TimeoutError("the server did not begin to answer")
    return ready[0]


def _asked(url: str, model: str, questions: Sequence[str], tokens: int) -> dict[str, Any]:
    began = time.monotonic()
    with ThreadPoolExecutor(len(questions)) as threads:
        replies = list(threads.map(lambda text: _reply(url, model, text, tokens), questions))
    seconds = time.monotonic() - began
    written = sum(reply["usage"]["completion_tokens"] for reply in replies)
    texts = [reply["choices"][0]["message"]["content"] for reply in replies]
    return {
        "requests": len(replies),
        "seconds": seconds,
        "tokens": written,
        "tokens_per_second": written / seconds,
        "texts": [text[:1] for text in texts],
    }


def _reply(url: str, model: str, text: str, tokens: int) -> dict[str, Any]:
    body = {"model": model, "messages": [{"role": "user", "content": text}], "max_completion_tokens": tokens}
    request = Request(
        f"{url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}, method="POST"
    )
    with urlopen(request, timeout=_WAIT_S) as answer:
        reply: dict[str, Any] = json.load(answer)
    return reply


def _searched(url: str, device: str, size: str, work: Path) -> dict[str, Any]:
    """A search of one step: random weights write no kernel, so that it ends without one."""
    command = [
        sys.executable, "-m", "kernelblaster", "run", "--problem-numbers", "23", "--base-url", url,
        "--model", str(Stage.MIDEND), "--out", str(work / "search"),
        "--device", device, "--size", size, "--rollouts", "1", "--steps", "1", "--max-completion-tokens", "16",
    ]  # fmt: skip
    began = time.monotonic()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_SEARCH_S, check=False)
    except subprocess.TimeoutExpired:
        return {"exit_code": None, "seconds": time.monotonic() - began, "end": "it was ended for want of time"}
    return {
        "exit_code": done.returncode,
        "seconds": time.monotonic() - began,
        "end": (done.stdout + done.stderr)[-1500:],
    }
