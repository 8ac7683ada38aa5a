"""The conversation between parent and zygote: whole messages with their descriptors, or a broken link."""

import datetime
import os
import socket
from collections.abc import Iterator

import pytest

from runwick import ExecutorOptions
from runwick.contracts.errors import Problem
from runwick_supervisor.link import Boot, Born, Fork, Link, LinkBroken, Refused, storable


@pytest.fixture
def links() -> Iterator[tuple[Link, Link]]:
    parent, theirs = Link.pair()
    zygote = Link(theirs)
    yield parent, zygote
    parent.close()
    zygote.close()


def test_a_message_crosses_with_its_descriptors(links: tuple[Link, Link]) -> None:
    parent, zygote = links
    reading, writing = os.pipe()
    request = Fork(3, True, ExecutorOptions(memory_soft=2**30, recycle_age=datetime.timedelta(hours=1)))
    parent.send(request, [writing])
    message, (received,) = zygote.receive()
    assert message == request
    os.write(received, b"same pipe")
    assert os.read(reading, 20) == b"same pipe"
    assert not os.get_inheritable(received)
    for descriptor in (reading, writing, received):
        os.close(descriptor)


def test_a_long_message_is_received_piece_by_piece(links: tuple[Link, Link]) -> None:
    parent, zygote = links
    message = Refused((Problem("import_failed", "x", "long " * 20_000),))
    zygote.send(message)
    assert parent.receive() == (message, [])
    with pytest.raises(BlockingIOError):
        parent.receive()


def test_half_a_message_is_kept_until_the_rest_is_there(links: tuple[Link, Link]) -> None:
    parent, zygote = links
    zygote._socket.send(b"+\x83\xa4type\xa4Born")
    with pytest.raises(BlockingIOError):
        parent.receive()
    zygote._socket.send(b".\xa8executor\x01\xa3pid\x02")
    assert parent.receive() == (Born(1, 2), [])


@pytest.mark.parametrize("junk", [b".junk", b".\x81\xa4type\xa4Fork", b".", b".\xff\xff"])
def test_what_is_no_message_breaks_the_link_and_keeps_no_descriptor(links: tuple[Link, Link], junk: bytes) -> None:
    parent, zygote = links
    reading, writing = os.pipe()
    socket.send_fds(zygote._socket, [junk], [writing])
    os.close(writing)
    with pytest.raises(LinkBroken):
        parent.receive()
    assert os.read(reading, 1) == b"", "nobody holds the other end any more"
    os.close(reading)


def test_the_end_of_the_other_side_breaks_the_link_both_ways() -> None:
    parent, theirs = Link.pair()
    theirs.close()
    with pytest.raises(LinkBroken, match="gone"):
        parent.receive()
    with pytest.raises(LinkBroken):
        parent.send(Boot("x", "y"))
    parent.close()


def test_text_that_is_no_utf8_is_shown_by_its_escapes() -> None:
    assert storable("a\ud800b") == "a\\ud800b"
