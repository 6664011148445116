"""Digests that identify requests. They are stored in ledgers, exchanges and recordings: their recipe may not change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

from kernelblaster.models.base import Message, Request


def messages_digest(messages: Sequence[Message]) -> str:
    """SHA-256, in hexadecimal, of roles and contents."""
    return _sha256([[message.role, message.content] for message in messages])


def request_digest(request: Request) -> str:
    """SHA-256, in hexadecimal, of the slot and the messages: the identity of a request."""
    return _sha256([request.slot, messages_digest(request.messages)])


def _sha256(value: Sequence[object]) -> str:
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()
