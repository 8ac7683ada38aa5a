"""Runs one act on one connection, step by step, and says honestly what a failure means.

::

    act ── step ──▶ text, parameters ──▶ server ──▶ rows ──▶ act ── step ──▶ … ──▶ answer
                                            └─ error, silence ──▶ `faults`: was anything written?

Each step is a transaction and a round trip of its own. An act that the server undid because it met others is run again
at once, for acts can be repeated.
"""

import contextlib
import functools
import random
import time
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeVar

import psycopg

from runwick.contracts.errors import OutcomeUnknown, StoreError, StoreUnavailable
from runwick.contracts.stores import Act
from runwick.runtime.crossings import reach
from runwick.stores.postgres import faults
from runwick.stores.postgres.connection import Connection
from runwick.stores.postgres.history import History
from runwick.stores.postgres.opening import Opening
from runwick.stores.postgres.works import Connections
from runwick.stores.steps import Preparation, Step

T = TypeVar("T")

_TRIES: Final = 3
"""How often an act is run that collides with others…"""
_TRIES_AT_KEYS: Final = 10
"""…and a dispatch, which may meet another one at each of its uniqueness keys."""
_PAUSE_S: Final = 0.02
"""The longest pause before it is run again; they are done by then."""


class Performer:
    """Runs acts, on any thread.

    Args:
        opening: opened the connections.
        history: of the store.
        statements: the text of a statement by its name.
    """

    def __init__(self, opening: Opening, history: History, statements: Callable[[str], str]) -> None:
        self._opening = opening
        self._history = history
        self._text: Callable[[str], bytes] = functools.cache(lambda name: statements(name).encode())

    def perform(self, connections: Connections, act: Act[T]) -> T:
        """Run an act.

        Raises:
            StoreError: nothing was written.
            OutcomeUnknown: it may or may not be applied.
        """
        tries = _TRIES_AT_KEYS if act.name == "dispatch" else _TRIES
        while True:
            self._history.check()
            try:
                return self._drive(connections, act)
            except (StoreUnavailable, OutcomeUnknown) as error:
                if tries == 1 or not faults.is_collision(error.__cause__):
                    raise
            tries -= 1
            time.sleep(random.uniform(0, _PAUSE_S))

    def _drive(self, connections: Connections, act: Act[T]) -> T:
        """The connection is held for each step alone: while one act makes its answer of the rows, the next one asks."""
        if self._history.store_id is None:
            with connections():
                pass  # an act's first step names the store, which whoever opens a connection has met
        steps = act.steps()
        has_applied = False
        try:
            step = next(steps)
            while True:
                rows = self._ask(connections, act, step, has_applied)
                has_applied = has_applied or not isinstance(step, Preparation)
                step = steps.send(rows)
        except StopIteration as end:
            answer: T = end.value
            return answer
        except (OverflowError, ValueError) as error:  # a value that cannot be sent
            _raise(faults.refused(error, self._situation(act)), error)
        finally:
            steps.close()

    def _ask(self, connections: Connections, act: Act[Any], step: Step, has_applied: bool) -> Any:
        is_connected = False
        try:
            with connections() as connection:
                is_connected = True
                return self._execute(connection, act, step, has_applied)
        except StoreError as error:
            if not is_connected and has_applied and not act.reads_only:
                raise faults.half_done(error, self._situation(act)) from error
            raise

    def _execute(self, connection: Connection, act: Act[Any], step: Step, has_applied: bool) -> Any:
        parameters: Any = step.parameters
        is_answered = False
        try:
            reach("postgres.sending")
            rows = connection.fetch(self._text(step.statement), parameters)
            is_answered = True
            reach("postgres.answered")
            return rows
        except Exception as error:
            if is_answered or not connection.is_sound:
                meant: Exception = faults.unanswered(
                    error, self._situation(act), writes=not act.reads_only, ran_out=connection.is_unanswered
                )
            elif has_applied and not act.reads_only and not faults.is_verdict(error):
                meant = faults.half_done(error, self._situation(act))
            else:
                meant = self._refused(error, connection, act)
            _raise(meant, error)

    def _refused(self, error: Exception, connection: Connection, act: Act[Any]) -> Exception:
        if (store_id := faults.other_store(error)) is not None:
            return self._history.met(store_id)
        if faults.is_about_schema(error):
            with contextlib.suppress(psycopg.Error):
                self._opening.check_revision(connection)
        return faults.refused(error, self._situation(act))

    def _situation(self, act: Act[Any]) -> faults.Situation:
        return faults.Situation(act.name, self._opening.shown, self._opening.limit_s * 1000)


def _raise(meant: Exception, error: Exception) -> NoReturn:
    if meant is error:
        raise error
    raise meant from error
