"""Turns a batch exchange into one text file per request and back, for whoever answers by hand or with other tools.

    python benchmarks/reply_files.py prompts EXCHANGE FOLDER     # FOLDER/ID.md for each request without a reply
    python benchmarks/reply_files.py replies EXCHANGE FOLDER     # FOLDER/ID.md, where written, become replies

Together with `kernelblaster env eval ... --model-kind batch_exchange` this plays an evaluation by hand: that command
asks and ends with code 75, `prompts` writes what it asked, `replies` hands in what came back, and the command is given
again. An ID is the beginning of a request's digest. A reply is taken word for word.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kernelblaster.models.batch_exchange import COMPLETIONS_URL, REQUESTS_GLOB, ExchangeFolder

ID_LENGTH = 12
REPLIES = "replies.jsonl"
_ROLES = {"assistant": "Your reply", "user": "What you are told"}


def asked(exchange: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Digest and body of each request, answered or not, in the order in which they were asked."""
    for file in sorted(exchange.glob(REQUESTS_GLOB)):
        for line in file.read_text(encoding="utf-8").splitlines():
            request = json.loads(line)
            yield request["custom_id"], request["body"]


def reply_line(digest: str, body: dict[str, Any], text: str) -> str:
    """A line of a replies file: the answer to the request of that digest and body, word for word."""
    choices = [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]
    completion = {"id": digest, "object": "chat.completion", "model": body["model"], "choices": choices}
    line = {"custom_id": digest, "response": {"status_code": 200, "body": completion}, "error": None}
    return json.dumps({**line, "url": COMPLETIONS_URL}) + "\n"


def waiting(exchange: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Digest and body of each request that has no reply, in the order in which they were asked."""
    outstanding = set(ExchangeFolder(exchange).outstanding())
    for digest, body in asked(exchange):
        if digest in outstanding:
            outstanding.remove(digest)
            yield digest, body


def conversation(messages: list[dict[str, str]]) -> str:
    """The messages as one text; a single one as it is."""
    if len(messages) == 1:
        return messages[0]["content"]
    told = (f"===== {_ROLES.get(one['role'], one['role'])} =====\n\n{one['content']}" for one in messages)
    return "\n\n".join([*told, "===== Your next reply: the complete file in one fenced block ====="])


def write_prompts(exchange: Path, folder: Path) -> list[str]:
    """Write what waits for a reply. Returns the ids."""
    folder.mkdir(parents=True, exist_ok=True)
    found = []
    for digest, body in waiting(exchange):
        found.append(digest[:ID_LENGTH])
        (folder / f"{found[-1]}.md").write_text(conversation(body["messages"]), encoding="utf-8")
    return found


def hand_in(exchange: Path, folder: Path) -> list[str]:
    """Append the replies that are there to the exchange. Returns their ids."""
    taken = []
    with (exchange / REPLIES).open("a", encoding="utf-8") as file:
        for digest, body in waiting(exchange):
            answer = folder / f"{digest[:ID_LENGTH]}.md"
            if not answer.is_file():
                continue
            file.write(reply_line(digest, body, answer.read_text(encoding="utf-8")))
            taken.append(digest[:ID_LENGTH])
    return taken


def main() -> None:
    """Print the ids that were written or taken, one a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("way", choices=("prompts", "replies"))
    parser.add_argument("exchange", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    act = write_prompts if given.way == "prompts" else hand_in
    print("\n".join(act(given.exchange, given.folder)))


if __name__ == "__main__":
    main()
