"""Whether an application's store can be used, as data for the list of everything that is wrong."""

from typing import TYPE_CHECKING

from runwick.app.stores import open_store
from runwick.config.options import StoreOptions
from runwick.contracts.errors import ConfigurationError, Problem, StoreError
from runwick.contracts.stores import Store

if TYPE_CHECKING:
    from runwick.app.runwick import Runwick


def sound_store(rw: "Runwick", problems: list[Problem]) -> Store | None:
    """The store, checked and closed again; None when it is refused, and that is among `problems` then.

    It is opened without the application's options, so that nothing wrong with those hides what is wrong with it.
    """
    try:
        store = open_store(rw.store_url, StoreOptions(), rw.clock, rw.ids)
    except ConfigurationError:
        return None  # there is none to open: a problem of the configuration, known already
    try:
        store.check()
    except StoreError as refused:
        problems.append(store_problem(refused))
        return None
    finally:
        store.close()
    return store


def store_problem(refused: StoreError) -> Problem:
    """What a store said when it refused to be used."""
    return Problem(refused.code, "store", f"{refused.message}.")
