"""Both ends of the harness' socket agree: numbers of the packets, and what damaged ones are taken for."""

from __future__ import annotations

import re
import time
from enum import IntEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.devices.failures import RunFailure
from kernelblaster.devices.harness.channel import Channel, MalformedPacket, Packet, PacketBuilder
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
