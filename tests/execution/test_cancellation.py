"""The token of a run: who asks, what the handler sees, and from which thread."""

import datetime
import threading

import pytest

from runwick.contracts.cancelling import Cancellation, CancellationCause
from runwick.contracts.errors import JobCancelled
from runwick.execution.cancellation import NEVER, Token
from tests.execution.heard import DEADLINE_S

AT_ONCE = datetime.timedelta(0)
LONG = datetime.timedelta(seconds=DEADLINE_S)


def test_nobody_has_asked_yet() -> None:
    token: Cancellation = Token()
    assert not token.causes
    assert not token.is_set()
    assert not token.wait(AT_ONCE)
    token.raise_if_set()
    assert repr(token) == "<Cancellation not asked for>"


def test_causes_add_up_and_are_told_with_the_exception() -> None:
    token = Token()
    token.ask(CancellationCause.SHUTDOWN)
    token.ask(CancellationCause.USER_REQUESTED)
    token.ask(CancellationCause.SHUTDOWN)
    both = CancellationCause.SHUTDOWN | CancellationCause.USER_REQUESTED
    assert (token.causes, token.is_set(), token.wait()) == (both, True, True)
    with pytest.raises(JobCancelled) as raised:
        token.raise_if_set()
    assert raised.value.causes == both
    assert repr(token) == "<Cancellation USER_REQUESTED|SHUTDOWN>"


def test_a_thread_that_waits_is_woken() -> None:
    token, waits = Token(), threading.Event()
    answers = []

    def wait() -> None:
        waits.set()
        answers.append(token.wait(LONG))

    waiting = threading.Thread(target=wait)
    waiting.start()
    assert waits.wait(DEADLINE_S)
    token.ask(CancellationCause.LEASE_LOST)
    waiting.join(DEADLINE_S)
    assert answers == [True]


def test_asking_from_many_threads_loses_no_cause() -> None:
    token = Token()
    askers = [threading.Thread(target=token.ask, args=(cause,)) for cause in CancellationCause for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join(DEADLINE_S)
    assert set(token.causes) == set(CancellationCause)


def test_a_run_that_nobody_can_ask_is_never_stopped() -> None:
    assert not NEVER.is_set()
    assert not NEVER.causes
