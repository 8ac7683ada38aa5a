"""What a claim makes of the rows that its statement answers."""

from collections.abc import Sequence
from typing import Any, Final

import pytest

from runwick.stores.postgres.judging import Found, plain
from runwick.stores.postgres.marks import Look, Marks
from tests.ambient import FakeClock

NOW_MS: Final = 1_000
LANES: Final = (7, 4)


@pytest.fixture
def look() -> Look:
    return Marks(FakeClock()).look(LANES, [0, 0], frozenset({1}))


def head(found: int) -> tuple[Any, ...]:
    return (NOW_MS, False, False, None, False, NOW_MS, found, *[None] * 19)


def row(lane: int, due_at_ms: int, job: int) -> tuple[Any, ...]:
    return (*[None] * 7, due_at_ms, job.to_bytes(16, "big"), lane, *[None] * 16)


def found_of(look: Look, rows: Sequence[tuple[Any, ...]]) -> Found | None:
    steps = plain(look, [128, 128], ())
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(rows)
    found: Found | None = end.value.value
    return found


def test_jobs_come_in_the_order_of_their_lanes_and_there_in_claim_order(look: Look) -> None:
    found = found_of(look, [head(4), row(4, 1, 1), row(7, 9, 2), row(7, 8, 4), row(7, 8, 3)])
    assert found is not None
    assert [(job[2], job[0], job[1][-1]) for job in found.taken] == [(7, 8, 3), (7, 8, 4), (7, 9, 2), (4, 1, 1)]
    assert (found.about, found.now_ms) == ("now", NOW_MS)


def test_where_one_is_missing_what_the_claim_holds_is_read(look: Look) -> None:
    """It changed while the claim looked, and was left alone; its place in the claim stays empty."""
    found = found_of(look, [head(3), row(7, 1, 1), row(7, 1, 3)])
    assert found is not None
    assert (found.about, found.taken, found.seen) == ("claimed_before", (), {})
