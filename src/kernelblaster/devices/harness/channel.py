"""The judge's end of the socket to a harness program: packets with descriptors, within a deadline and a bounded size.

`include/kernelblaster/wire.hpp` is the other end and describes the layout. Whatever comes over the socket may have been
written by a candidate: a packet that does not read as the expected one is the candidate's failure, never the judge's.

Each reply is sealed: it ends with a keyed hash of a number, which counts replies, and the packet. The key is drawn for
each channel and sent first, before any code of a candidate is loaded; the harness keeps it where no candidate can read.
What comes without its seal was written by somebody else, or is an old reply once more.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import secrets
import select
import socket
import struct
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

from kernelblaster.devices.failures import RunFailure, RunFailureKind
from kernelblaster.devices.harness.protocol import HarnessRequest
from kernelblaster.sandbox.text import printable, printable_lines

MOST_PACKET_BYTES = 128 << 10
MOST_DESCRIPTORS = 200
KEY_BYTES, SEAL_BYTES = 32, 16


class MalformedPacket(RunFailure):
    """A packet does not hold the fields that it should: somebody else has written to the socket."""

    def __init__(self, reason: str) -> None:
        super().__init__(RunFailureKind.RUNTIME, f"something else was written to the harness' socket: {reason}")


class ForgedReply(RunFailure):
    """A packet does not carry the proof that the harness wrote it now."""

    def __init__(self) -> None:
        super().__init__(
            RunFailureKind.POLICY, "something other than the harness answers the judge: a reply without its seal"
        )


class Packet:
    """Reads the fields of a received packet in order. Every method raises MalformedPacket."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def i32(self) -> int:
        """A signed 32-bit integer."""
        return int(self._take("i"))

    def u64(self) -> int:
        """An unsigned 64-bit integer."""
        return int(self._take("Q"))

    def u8(self) -> int:
        """An unsigned byte."""
        return int(self._take("B"))

    def u32(self) -> int:
        """An unsigned 32-bit integer."""
        return int(self._take("I"))

    def f64(self) -> float:
        """A double."""
        return float(self._take("d"))

    def text(self) -> str:
        """One line in printable ASCII; other bytes are escaped."""
        return printable(self._bytes())

    def lines(self) -> str:
        """Lines in printable ASCII; other bytes are escaped."""
        return printable_lines(self._bytes())

    def end(self) -> None:
        """Nothing may be left."""
        if self._at != len(self._data):
            raise MalformedPacket("a packet is too long")

    def _bytes(self) -> bytes:
        count = self.u32()
        if count > len(self._data) - self._at:
            raise MalformedPacket("a text is longer than its packet")
        self._at += count
        return self._data[self._at - count : self._at]

    def _take(self, kind: str) -> Any:
        layout = struct.Struct(f"<{kind}")
        if layout.size > len(self._data) - self._at:
            raise MalformedPacket("a packet is too short")
        (value,) = layout.unpack_from(self._data, self._at)
        self._at += layout.size
        return value


class PacketBuilder:
    """Builds a packet.

    Args:
        kind: what it asks for.
    """

    def __init__(self, kind: int) -> None:
        self._data = bytearray(struct.pack("<B", kind))

    def u8(self, value: int) -> Self:
        """Append an unsigned byte."""
        return self._put("B", value)

    def u32(self, value: int) -> Self:
        """Append an unsigned 32-bit integer."""
        return self._put("I", value)

    def u64(self, value: int) -> Self:
        """Append an unsigned 64-bit integer."""
        return self._put("Q", value)

    def i64(self, value: int) -> Self:
        """Append a signed 64-bit integer."""
        return self._put("q", value)

    def f64(self, value: float) -> Self:
        """Append a double."""
        return self._put("d", value)

    def text(self, value: str) -> Self:
        """Append UTF-8 text."""
        data = value.encode()
        self._data += struct.pack("<I", len(data)) + data
        return self

    def raw(self, value: bytes) -> Self:
        """Append bytes, whose number both ends know."""
        self._data += value
        return self

    def list_u64(self, values: Sequence[int]) -> Self:
        """Append a list of unsigned 64-bit integers."""
        self._data += struct.pack(f"<I{len(values)}Q", len(values), *values)
        return self

    def list_i64(self, values: Sequence[int]) -> Self:
        """Append a list of signed 64-bit integers."""
        self._data += struct.pack(f"<I{len(values)}q", len(values), *values)
        return self

    @property
    def data(self) -> bytes:
        """The packet."""
        return bytes(self._data)

    def _put(self, kind: str, value: float) -> Self:
        self._data += struct.pack(f"<{kind}", value)
        return self


class Channel:
    """A socket to one harness program. A context manager: leaving it closes both ends that are still here.

    The other end, `theirs`, becomes the program's standard input; close it once the program has started.
    """

    def __init__(self) -> None:
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._poll = select.poll()
        self._poll.register(self._ours, select.POLLIN)
        self._key = secrets.token_bytes(KEY_BYTES)
        self._received = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ours.close()
        self.theirs.close()

    def send_key(self, deadline: float) -> None:
        """Send what replies are sealed with: the first packet. Raises as `send`."""
        self.send(PacketBuilder(HarnessRequest.KEY).raw(self._key), deadline=deadline)

    def send(self, message: PacketBuilder, descriptors: Sequence[int] = (), *, deadline: float) -> None:
        """Send a packet.

        Raises:
            TimeoutError: the program reads nothing until `deadline` (time.monotonic).
            BrokenPipeError: it is gone.
            ValueError: the packet is too long for the harness.
        """
        if len(message.data) > MOST_PACKET_BYTES or len(descriptors) > MOST_DESCRIPTORS:
            raise ValueError("a packet is too long")
        self._ours.settimeout(max(deadline - time.monotonic(), 1e-3))
        try:
            socket.send_fds(self._ours, [message.data], list(descriptors))
        except ConnectionResetError:
            raise BrokenPipeError from None
        except OSError as error:
            if error.errno == errno.ETOOMANYREFS:
                raise BrokenPipeError from None  # it takes no descriptors any more
            raise

    def receive(self, deadline: float, watched_s: float = 0.0) -> Packet | None:
        """The next reply; None when the program has closed its end.

        Args:
            deadline: of time.monotonic.
            watched_s: for how long the socket is looked at without rest, by one who reads a clock when the reply is
                there: to be woken takes some 30 us, now more and now less.

        Raises:
            TimeoutError: nothing came until `deadline`.
            ForgedReply: it does not carry its seal.
        """
        rest = min(deadline, time.monotonic() + watched_s)
        while time.monotonic() < rest and not self._has_data():
            pass
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._ours.settimeout(left)
        try:
            data, files, _, _ = socket.recv_fds(self._ours, MOST_PACKET_BYTES, 0)
        except ConnectionResetError:
            return None
        assert not files  # none were asked for
        return Packet(self._opened(data)) if data else None

    def _has_data(self) -> bool:
        """Whether a packet, or the end, is there."""
        return bool(self._poll.poll(0))

    def _opened(self, data: bytes) -> bytes:
        """The packet under its seal. Raises ForgedReply."""
        packet, found = data[:-SEAL_BYTES], data[-SEAL_BYTES:]
        if not packet or not hmac.compare_digest(found, seal(self._key, self._received, packet)):
            raise ForgedReply
        self._received += 1
        return packet


def seal(key: bytes, number: int, packet: bytes) -> bytes:
    """The seal of the reply of that number, from 0 on."""
    return hashlib.blake2s(struct.pack("<Q", number) + packet, digest_size=SEAL_BYTES, key=key).digest()
