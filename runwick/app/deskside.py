"""The application's side of the operators' desk: its declarations, and the options of this process."""

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, Protocol

from runwick.config.bounds import table
from runwick.config.durations import duration_text
from runwick.config.sizes import bytes_text
from runwick.config.sources import PREFIX, STORE, Environment
from runwick.contracts.dispatching import DispatchOptions, Prepared
from runwick.contracts.errors import DispatchValidationError, InvalidArgument
from runwick.contracts.jobs import Job
from runwick.declarations.catalog import Catalog, JobEntry
from runwick.management.desk.application import Setting
from runwick.wire.limits import PAYLOAD_MAX_BYTES
from runwick.wire.strict import decode_strict

_UNSET_TEXT: Final = "none"


class Prepares(Protocol):
    """What makes a dispatch of a record; `runwick.dispatch.dispatcher.Dispatcher` does."""

    def prepare(self, job: Job, options: DispatchOptions) -> Prepared: ...


class DeskSide:
    """One application as its operators' desk deals with it.

    Args:
        name: the application.
        catalog: gives its declarations, checked and frozen.
        dispatcher: prepares dispatches.
        options: the options objects of this process, as they hold.
        environment: what the environment said of them.
        description: gives one phrase for the store, without secrets.
    """

    def __init__(
        self,
        name: str,
        catalog: Callable[[], Catalog],
        dispatcher: Prepares,
        options: Collection[Any],
        environment: Environment,
        description: Callable[[], str],
    ) -> None:
        self.name: Final = name
        self._catalog = catalog
        self._dispatcher = dispatcher
        self._options = options
        self._environment = environment
        self._description = description

    def declared_queues(self) -> Collection[str]:
        return self._catalog().queues

    def declared_names(self) -> Collection[str]:
        return sorted(kind.name for kind in self._catalog().jobs)

    def prepare(self, name: str, payload: bytes, options: DispatchOptions) -> Prepared:
        entry = self._entry(name)
        if entry is None:
            # It does not say which ones there are: whoever may dispatch need not know them all.
            raise DispatchValidationError("unknown_job", f"application {self.name} declares no job {name!r}")
        if len(payload) > PAYLOAD_MAX_BYTES:
            message = f"a payload may have {PAYLOAD_MAX_BYTES:,} bytes, this has {len(payload):,}"
            raise DispatchValidationError("payload_too_large", message)
        return self._dispatcher.prepare(_record(entry, payload), options)

    def time_limit_ms(self, name: str) -> int | None:
        entry = self._entry(name)
        return None if entry is None else entry.policy.execution_timeout_ms

    def settings(self) -> list[Setting]:
        source = "code" if self._environment.store is None else STORE
        store = Setting("store", self._description(), source)
        return [store, *(setting for options in self._options for setting in self._of(options))]

    def _entry(self, name: str) -> JobEntry | None:
        return next((entry for kind, entry in self._catalog().jobs.items() if kind.name == name), None)

    def _of(self, options: Any) -> Iterator[Setting]:
        usual = type(options)()
        for name, option in table(type(options)).items():
            value = getattr(options, name)
            source = "default" if value == getattr(usual, name) else "code"
            if name in self._environment.options:
                source = PREFIX + name.upper()
            yield Setting(name, _TEXTS[option.unit](value) if value is not None else _UNSET_TEXT, source)


def _record(entry: JobEntry, payload: bytes) -> Job:
    try:
        return decode_strict(payload, entry.record)
    except InvalidArgument as refused:
        raise DispatchValidationError(refused.code, f"{entry.record.__name__} {refused.message}") from None
    except Exception as error:  # whatever the record's __post_init__ raises
        message = f"{entry.record.__name__} refuses it: {type(error).__name__}"
        raise DispatchValidationError("invalid_payload", message) from None


def _switch_text(value: bool) -> str:
    return "true" if value else "false"


_TEXTS: Final[Mapping[str, Callable[[Any], str]]] = {
    "duration": duration_text,
    "count": str,
    "bytes": bytes_text,
    "switch": _switch_text,
}
