"""What every part of the desk stands on: the store, how it is asked, and how somebody's job is looked up.

::

    permission at all? ── no ──▶ Forbidden
      └─ yes ▸ read the job ▸ there, and within the caller's reach? ── no ──▶ JobNotFound, in the same words for both
"""

from collections.abc import Callable
from typing import TypeVar

from runwick.contracts.ambient import Clock, Ids
from runwick.contracts.errors import InvalidArgument, JobNotFound
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.stores import Act, JobRecord, Store
from runwick.management.commands import is_number
from runwick.management.desk.application import Application
from runwick.management.permissions import Caller, Permission
from runwick.management.sending import sending
from runwick.management.service import CommandId
from runwick.runtime.asking import ask_async

T = TypeVar("T")

PAGE_MAX = 100
"""Rows of one page."""


class Ground:
    """The application's store, as the desk asks it.

    Args:
        application: whose jobs.
        store: gives the store, opened.
        ids: makes ids of commands.
        clock: limits how long a command is tried.
        side: the application's own code; None works on its store alone.
    """

    def __init__(
        self,
        application: str,
        store: Callable[[], Store],
        ids: Ids,
        clock: Clock,
        side: Application | None = None,
    ) -> None:
        self.application = application
        self._opened = store
        self._ids = ids
        self._clock = clock
        self._side = side

    @property
    def _store(self) -> Store:
        return self._opened()

    async def _ask(self, act: Act[T]) -> T:
        """Have the store do something that changes nothing."""
        return await self._store.run_async(act)

    async def _send(self, act: Act[T], command_id: bytes) -> T:
        """Have the store do something once, however often its answer is lost.

        Raises:
            StoreError: nothing was written.
            ControlOutcomeUnknown: it may or may not have been applied.
        """
        return await ask_async(self._store, sending(act, command_id, self._clock))

    def _command_id(self, given: CommandId) -> bytes:
        """The caller's, or a new one. Only None asks for a new one: an empty one is a mistake, and would not be known
        when it is sent again."""
        return self._ids.ordered() if given is None else id_bytes(given)

    async def _job(self, caller: Caller, permission: Permission, job_id: bytes) -> JobRecord:
        """The job, if there is one for which the caller has the permission. What is hidden is read like what is not
        there, and refused afterwards in the same words.

        Raises:
            JobNotFound: there is none for him.
        """
        record = await self._ask(self._store.job(self.application, job_id))
        if record is None or not caller.allowed.covers(permission, record.lane.queue, record.tenant):
            raise no_job(job_id)
        return record


def no_job(job_id: bytes) -> JobNotFound:
    """The answer for a job that does not exist, as far as the caller may know."""
    return JobNotFound("not_found", f"no job {id_text(job_id)} in this application")


def check_limit(limit: int) -> int:
    """The length of a page.

    Raises:
        InvalidArgument: it is none (code ``invalid_argument``).
    """
    if not is_number(limit, 1, PAGE_MAX):
        raise InvalidArgument("invalid_argument", f"limit is {limit!r}; give a whole number from 1 to {PAGE_MAX}")
    return limit
