import datetime

import pytest

from runwick.app.waiting import pauses_s
from runwick.contracts import InvalidArgument
from tests.ambient import FakeClock


def test_pauses_grow_up_to_a_quarter_of_a_second_and_end_in_time() -> None:
    clock = FakeClock()
    pauses = []
    for pause_s in pauses_s(datetime.timedelta(seconds=3), clock):
        pauses.append(pause_s)
        clock.advance_ms(round(pause_s * 1000, 6))  # type: ignore[arg-type]
    assert pauses[0] == 0.005
    assert pauses[:-1] == sorted(pauses[:-1])
    assert max(pauses) == 0.25
    assert abs(sum(pauses) - 3) < 1e-6


def test_no_time_means_no_pause() -> None:
    assert list(pauses_s(datetime.timedelta(0), FakeClock())) == []
    assert list(pauses_s(datetime.timedelta(seconds=-1), FakeClock())) == []


def test_a_number_is_no_timeout() -> None:
    with pytest.raises(InvalidArgument, match=r"timeout is 2; give a timedelta") as caught:
        next(pauses_s(2, FakeClock()))  # type: ignore[arg-type]
    assert caught.value.code == "invalid_time"
