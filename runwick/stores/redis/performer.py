"""Runs one act on one connection, call by call, and says honestly what a failure means.

::

    act ── call ──▶ FCALL ──▶ server ──▶ writes so far, its time, answer ──▶ act ── call ──▶ … ──▶ answer
                                └─ error, silence ──▶ `faults`: was anything written?

Each call is one function, whole or not at all. An act applies what it is asked for in its last call; those before it
only prepare it. A library that the server does not have is loaded, once for each call, and the call sent again: nothing
of it had run.

Before the first act of an application that writes, and again after each look at the server, the server is asked whether
this user may do all that acts do: an ACL that forbids one command of a function would end it with half of it written.
"""

from typing import Any, Final, NoReturn, TypeVar

import msgspec
import redis.exceptions

from runwick.contracts.stores import Act
from runwick.runtime.crossings import reach
from runwick.stores.redis import faults
from runwick.stores.redis.calls import Call, Calls
from runwick.stores.redis.connection import Connection
from runwick.stores.redis.history import History
from runwick.stores.redis.library import Library
from runwick.stores.redis.opening import Opening
from runwick.stores.redis.profile import NEW_WORK
from runwick.stores.redis.works import Connections

T = TypeVar("T")

_answered: Final = msgspec.msgpack.Decoder(tuple[int, int, msgspec.Raw]).decode


class Performer:
    """Runs acts, on any thread.

    Args:
        opening: opened the connections.
        history: of the store.
        library: the functions.
    """

    def __init__(self, opening: Opening, history: History, library: Library) -> None:
        self._opening = opening
        self._history = history
        self._library = library
        self._permitted: dict[str, int] = {}
        """Applications for which all was permitted, and at which look at the server."""

    def perform(self, connections: Connections, act: Act[T]) -> T:
        """Run an act.

        Raises:
            StoreError: nothing was written.
            OutcomeUnknown: it may or may not be applied.
        """
        self._history.check()
        if act.name in NEW_WORK:
            self._opening.check_fit()
        steps = act.steps()
        try:
            call = _first(steps, act)
            while True:
                call = steps.send(self._ask(connections, act, call))
        except StopIteration as end:
            answer: T = end.value
            return answer
        finally:
            steps.close()

    def _ask(self, connections: Connections, act: Act[Any], call: Call) -> msgspec.Raw:
        with connections() as connection:
            asked_ms = self._opening.own_ms()
            reply = self._execute(connection, act, call)
            answered_ms = self._opening.own_ms()
        writes, now_ms, answer = _answered(reply)
        self._opening.learn_time(now_ms, asked_ms, answered_ms)
        self._history.learn(call.application, writes)
        return answer

    def _execute(self, connection: Connection, act: Act[Any], call: Call) -> bytes:
        is_sent = is_answered = False
        try:
            if not (act.reads_only or call.is_preparation):
                self._check_permitted(connection, call.application)
            reach("redis.sending")
            is_sent = True
            try:
                reply = self._call(connection, call)
            except redis.exceptions.ResponseError as error:
                if not faults.is_function_missing(error):
                    raise
                is_sent = False
                self._library.load(connection.ask)
                is_sent = True
                reply = self._call(connection, call)
            is_answered = True
            reach("redis.answered")
            return reply
        except Exception as error:
            situation = faults.Situation(act.name, self._opening.shown, self._opening.limit_s * 1000)
            writes = is_sent and not (act.reads_only or call.is_preparation)
            if is_answered or not (connection.is_sound or faults.code_of(error)):
                _raise(faults.unanswered(error, situation, writes=writes), error)
            if faults.is_cut_short(error):
                _raise(faults.cut_short(error, situation, writes=writes), error)
            _raise(self._history_of(error, call) or faults.refused(error, situation, call.application), error)

    def _check_permitted(self, connection: Connection, application: str) -> None:
        looks = self._opening.looks
        if self._permitted.get(application) == looks:
            return
        question = b"FCALL", self._library.function("permitted"), 1, _prefix(application)
        try:
            connection.ask(*question)
        except redis.exceptions.ResponseError as error:
            if not faults.is_function_missing(error):
                raise
            self._library.load(connection.ask)
            connection.ask(*question)
        self._permitted[application] = looks

    def _call(self, connection: Connection, call: Call) -> bytes:
        keys = (1, _prefix(call.application)) if call.application else (0,)
        reply: bytes = connection.ask(
            b"FCALL",
            self._library.function(call.function),
            *keys,
            self._history.store_id or b"",
            self._history.writes(call.application),
            call.arguments,
        )
        return reply

    def _history_of(self, error: Exception, call: Call) -> Exception | None:
        """What the gate found of the store's past; None when that is not what `error` says."""
        found = str(error).partition(" ")[2].strip()
        match faults.code_of(error):
            case "RWIDENTITY":
                return self._history.met_other(bytes.fromhex(found))
            case "RWHISTORY":
                return self._history.went_back(call.application, int(found))
            case "RWNOSTORE":  # whoever opened the connection has met one
                return self._history.is_gone()
        return None


def _prefix(application: str) -> str:
    """What the names of all its keys begin with."""
    return f"rw:{{{application}}}:"


def _first(steps: Calls[Any], act: Act[Any]) -> Call:
    try:
        return next(steps)
    except (OverflowError, ValueError) as error:  # a value that cannot be packed
        _raise(faults.unpackable(error, act.name), error)


def _raise(meant: Exception, error: Exception) -> NoReturn:
    if meant is error:
        raise error
    raise meant from error
