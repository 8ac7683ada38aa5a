"""The context of one run, as its handler and its providers see it. It computes what is asked for, when it is asked."""

import datetime
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import msgspec

from runwick.contracts.cancelling import Cancellation
from runwick.contracts.identity import id_text
from runwick.contracts.jobs import Job
from runwick.contracts.limits import Fence
from runwick.declarations.catalog import JobEntry
from runwick.execution.run import Run
from runwick.wire.profile import PROFILE_ID, PROFILE_VERSION

_METADATA: Final = msgspec.json.Decoder(dict[str, str])
_EPOCH: Final = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


class RunContext:
    """Implements `runwick.contracts.context.JobContext`, which documents the properties."""

    __slots__ = ("_application", "_cancellation", "_entry", "_items", "_metadata", "_payload", "_run")

    def __init__(self, application: str, run: Run, entry: JobEntry, payload: Job, cancellation: Cancellation) -> None:
        self._application = application
        self._run = run
        self._entry = entry
        self._payload = payload
        self._cancellation = cancellation
        self._metadata: Mapping[str, str] | None = None
        self._items: dict[Any, Any] | None = None

    @property
    def application(self) -> str:
        return self._application

    @property
    def job_id(self) -> str:
        return id_text(self._run.job_id)

    @property
    def attempt_id(self) -> str:
        return id_text(self._run.attempt_id)

    @property
    def job_name(self) -> str:
        return self._run.name

    @property
    def created_at(self) -> datetime.datetime:
        return _EPOCH + datetime.timedelta(milliseconds=self._run.created_at_ms)

    @property
    def execution_number(self) -> int:
        return self._run.execution

    @property
    def max_executions(self) -> int:
        return self._run.max_executions

    @property
    def generation(self) -> int:
        return self._run.generation

    @property
    def queue(self) -> str:
        return self._run.queue

    @property
    def priority(self) -> str:
        return self._run.priority.value

    @property
    def original_payload_version(self) -> int:
        return self._run.version

    @property
    def current_payload_version(self) -> int:
        return self._entry.kind.version

    @property
    def serializer_profile_id(self) -> str:
        return PROFILE_ID

    @property
    def serializer_profile_version(self) -> int:
        return PROFILE_VERSION

    @property
    def payload(self) -> Job:
        return self._payload

    @property
    def metadata(self) -> Mapping[str, str]:
        if self._metadata is None:
            stored = self._run.metadata
            self._metadata = MappingProxyType(_METADATA.decode(stored)) if stored else _NOTHING
        return self._metadata

    @property
    def tenant(self) -> str | None:
        return self._run.tenant

    @property
    def trace(self) -> Mapping[str, str]:
        carried = {"traceparent": self._run.traceparent, "tracestate": self._run.tracestate}
        return MappingProxyType({name: value for name, value in carried.items() if value is not None})

    @property
    def cancellation(self) -> Cancellation:
        return self._cancellation

    @property
    def fences(self) -> Sequence[Fence]:
        return self._run.fences

    @property
    def items(self) -> dict[Any, Any]:
        if self._items is None:
            self._items = {}
        return self._items

    def __repr__(self) -> str:
        return f"<JobContext {self.job_name} {self.job_id}, execution {self.execution_number} of {self.max_executions}>"
