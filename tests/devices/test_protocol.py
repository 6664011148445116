"""Both ends of the harness' socket agree: numbers of the packets, and what damaged ones are taken for."""

from __future__ import annotations

import re
import time
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.devices.failures import RunFailure
from kernelblaster.devices.harness.channel import (
    KEY_BYTES,
    Channel,
    ForgedReply,
    MalformedPacket,
    Packet,
    PacketBuilder,
    seal,
)
from kernelblaster.devices.harness.protocol import HarnessReply, HarnessRequest
from kernelblaster.paths import harness_include_dir


@pytest.mark.parametrize("kinds", [HarnessRequest, HarnessReply])
def test_numbers_are_the_same_in_both_languages(kinds: type[IntEnum]) -> None:
    text = (harness_include_dir() / "kernelblaster" / "protocol.hpp").read_text()
    body = re.search(rf"enum class {kinds.__name__}[^{{]*{{(.*?)}};", text, re.DOTALL)
    assert body is not None
    found = {name.upper(): int(number) for name, number in re.findall(r"^\s*(\w+) = (\d+),", body[1], re.MULTILINE)}
    assert found == {kind.name: kind.value for kind in kinds}


@given(st.text(), st.floats(allow_nan=False), st.integers(0, 2**32 - 1))
def test_fields_come_back(text: str, number: float, count: int) -> None:
    packet = Packet(PacketBuilder(7).text(text).f64(number).u32(count).data)
    assert packet.u8() == 7
    cleaned = packet.text()
    assert cleaned.isascii()
    assert cleaned.isprintable()
    assert (packet.f64(), packet.u32()) == (number, count)
    packet.end()


@given(st.binary(max_size=40))
def test_whatever_comes_is_a_field_or_a_failure_of_the_candidate(data: bytes) -> None:
    packet = Packet(data)

    def read_on() -> None:
        while True:
            packet.u8()
            packet.text()
            packet.f64()

    with pytest.raises(RunFailure):
        read_on()


def test_a_packet_that_is_too_long_is_malformed() -> None:
    with pytest.raises(MalformedPacket):
        Packet(b"\0").end()


def test_a_closed_end_is_seen_and_a_silent_one_ends_in_time() -> None:
    with Channel() as channel:
        with pytest.raises(TimeoutError):
            channel.receive(time.monotonic() + 0.05)
        channel.theirs.close()
        assert channel.receive(time.monotonic() + 5) is None
        with pytest.raises(BrokenPipeError):
            channel.send(PacketBuilder(1), deadline=time.monotonic() + 5)


class Harness:
    """The other end, which has received its key."""

    def __init__(self, channel: Channel) -> None:
        channel.send_key(soon())
        kind, *key = channel.theirs.recv(1000)
        assert kind == HarnessRequest.KEY
        assert len(key) == KEY_BYTES
        self.key = bytes(key)
        self.send = channel.theirs.send

    def sealed(self, number: int, packet: bytes) -> bytes:
        return packet + seal(self.key, number, packet)


def soon() -> float:
    return time.monotonic() + 5


def test_replies_are_taken_in_order_and_once() -> None:
    with Channel() as channel:
        harness = Harness(channel)
        for number, packet in enumerate((b"\4one", b"\5", b"\4three" * 100)):
            harness.send(harness.sealed(number, packet))
            received = channel.receive(soon())
            assert received is not None
            assert received.u8() == packet[0]
    with Channel() as channel:
        harness = Harness(channel)
        harness.send(harness.sealed(0, b"\4one"))
        assert channel.receive(soon()) is not None
        harness.send(harness.sealed(0, b"\4one"))
        with pytest.raises(ForgedReply):
            channel.receive(soon())


@given(st.binary(min_size=1, max_size=80), st.integers(0, 2), st.data())
def test_what_lacks_its_seal_is_forged(packet: bytes, ahead: int, data: st.DataObject) -> None:
    with Channel() as channel:
        harness = Harness(channel)
        whole = bytearray(harness.sealed(ahead, packet))
        how = data.draw(st.sampled_from(["cut", "changed", "bare", "early"] if ahead else ["cut", "changed", "bare"]))
        if how == "cut":
            del whole[data.draw(st.integers(1, len(whole) - 1)) :]
        elif how == "changed":
            whole[data.draw(st.integers(0, len(whole) - 1))] ^= data.draw(st.integers(1, 255))
        elif how == "bare":
            whole = bytearray(packet)
        harness.send(whole)
        with pytest.raises(ForgedReply):
            channel.receive(soon())


def test_another_channel_has_another_key() -> None:
    with Channel() as one, Channel() as other:
        harness = Harness(one)
        Harness(other)
        other.theirs.send(harness.sealed(0, b"\4one"))
        with pytest.raises(ForgedReply):
            other.receive(soon())
