"""Every statement of every operation on SQLite fails once in every way, and what is said of it is true.

For each operation the n-th statement fails, n = 1, 2, … until there are no more:

    said ──────────────────── the file ──────────────── sent again
    StoreError                as before                 the answer of the first time
    OutcomeUnknown            as before, or as after    the answer of the first or of a second time
    an answer                 as after                  the answer of a second time
"""

import asyncio
import functools
import itertools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from runwick.contracts.administration import WORKER_ALIVE_MS, Admission, Capability
from runwick.contracts.attempts import Kind
from runwick.contracts.errors import MigrationError, OutcomeUnknown, RunwickError, StoreError
from runwick.runtime.desk import Order
from runwick.stores.migrations import migrations
from runwick.stores.sqlite.administer import SqliteAdministration
from runwick.stores.sqlite.migrate import migrate
from runwick.stores.sqlite.revision import FOLDER
from tests.conformance.scene import acts_of_the_protocol
from tests.faults.failing_sqlite import FAULTS, LOST, Saboteur
from tests.faults.sqlite_site import (
    Opened,
    SameIds,
    Site,
    State,
    Undisturbed,
    on_open_store,
    state_of,
    undisturbed,
)
from tests.faults.stage import Make, Stage, acts
from tests.sqlite import revision_1


def outcome_of(attempt: Callable[[], Any]) -> Any:
    """The answer, or the error that Runwick gives; any other error is a fault of its own."""
    try:
        return attempt()
    except RunwickError as error:
        return error


def check(said: Any, found: State, normal: Undisturbed, *, goes_by_steps: bool) -> bool:
    """Whether what was said is true of the file; answers whether the operation was applied."""
    if isinstance(said, OutcomeUnknown) or (goes_by_steps and isinstance(said, StoreError)):
        assert found in (normal.before, normal.after)
    elif isinstance(said, StoreError):
        assert found == normal.before, said
    else:
        assert found == normal.after, said
    return found == normal.after


def campaign(saboteur: Saboteur, site: Site, opened: Opened, *, goes_by_steps: bool = False) -> int:
    """Let every statement fail in every way; answers how many times something failed.

    Args:
        saboteur: of all connections.
        site: where the file is.
        opened: the operation.
        goes_by_steps: whether an error only says that it did not get to its end.
    """
    normal = undisturbed(site, opened)
    failures = 0
    for fault in FAULTS:
        for number in itertools.count(1):
            path = site.copy()
            run, close = opened(path)
            saboteur.arm(fault, number)
            said = outcome_of(run)
            has_failed = saboteur.statements >= number
            saboteur.disarm()
            if not has_failed:
                close()
                break
            failures += 1
            applied = check(said, state_of(path), normal, goes_by_steps=goes_by_steps)
            assert run() == (normal.second if applied else normal.first), (fault, number, said)
            assert state_of(path) == normal.after, (fault, number, said)
            close()
    return failures


STATEMENTS: Final = {
    "dispatch": 15,
    "dispatch, keyed": 23,
    "dispatch, by hand": 20,
    "resolve": 4,
    "register": 12,
    "register, capped": 12,
    "claim": 14,
    "claim, judged": 28,
    "begin": 5,
    "begin, cancelled": 9,
    "begin, cancelled and freeing": 24,
    "release": 9,
    "release, freeing": 28,
    "settle": 15,
    "settle, numbers alone": 8,
    "settle, freeing": 24,
    "renew": 18,
    "recover": 24,
    "recover, of a worker": 37,
    "expire": 22,
    "tend": 36,
    "depart": 4,
    "cancel": 18,
    "cancel, limited": 28,
    "retry": 15,
    "retry, keyed": 16,
    "rerun": 15,
    "look": 15,
    "pause": 16,
    "resume": 37,
    "set_capacity": 23,
    "reveal": 15,
    "reveal, of an attempt": 16,
    "jobs": 11,
    "runs": 13,
    "backlogs": 12,
    "names": 10,
    "audited": 11,
    "events": 10,
    "audit": 10,
    "workers": 4,
    "stack": 4,
    "why": 13,
    "queues": 4,
    "scopes": 4,
    "rates": 4,
    "standing": 4,
    "job": 5,
    "outlook": 16,
    "costliest": 4,
}
"""How many statements each act here consists of, from BEGIN to COMMIT. One more costs every caller."""


def tried(stage: Stage) -> dict[str, Make]:
    """All acts; the dispatch is for an application, and of a kind, that are new as well."""
    return acts(stage, stage.bench.command(application="office", kind=Kind("new", 1)))


@pytest.mark.parametrize("name", STATEMENTS)
def test_an_act_of_which_any_statement_fails(saboteur: Saboteur, site: Site, stage: Stage, name: str) -> None:
    make = tried(stage)[name]

    assert campaign(saboteur, site, on_open_store(site, make)) == STATEMENTS[name] * len(FAULTS)


def test_an_opening_of_which_any_statement_fails(saboteur: Saboteur, site: Site, stage: Stage) -> None:
    makes = acts(stage)

    def opened(path: Path) -> tuple[Callable[[], Any], Callable[[], None]]:
        store = site.store(path)
        return lambda: (store.run(makes["dispatch"](store)), store.run(makes["job"](store))), store.close

    assert campaign(saboteur, site, opened, goes_by_steps=True) > 30 * len(FAULTS)


def test_a_check_of_which_any_statement_fails(saboteur: Saboteur, site: Site, stage: Stage) -> None:
    def opened(path: Path) -> tuple[Callable[[], Any], Callable[[], None]]:
        store = site.store(path)
        return store.check, store.close

    assert campaign(saboteur, site, opened) >= 8 * len(FAULTS)


def test_every_act_is_tried(stage: Stage) -> None:
    assert list(tried(stage)) == list(STATEMENTS)
    assert set(STATEMENTS) >= acts_of_the_protocol()


CHANGES: Final[dict[str, Callable[[SqliteAdministration], Any]]] = {
    "set_admission": lambda operator: operator.set_admission(Admission.DRAIN, None),
    "activate": lambda operator: operator.activate(Capability.SCHEDULER, revision_1.APPLICATION, "operator"),
    "reidentify": lambda operator: operator.reidentify(),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_by_the_operator_of_which_any_statement_fails(saboteur: Saboteur, site: Site, name: str) -> None:
    revision_1.install(site.start)
    migrate(site.start, site.clock, SameIds())
    if name == "reidentify":
        SqliteAdministration(site.start, site.clock, SameIds()).set_admission(Admission.DRAIN, None)
        SqliteAdministration(site.start, site.clock, SameIds()).set_admission(Admission.MAINTENANCE, None)
        site.clock.advance_ms(WORKER_ALIVE_MS)

    def opened(path: Path) -> tuple[Callable[[], Any], Callable[[], None]]:
        operator = SqliteAdministration(path, site.clock, SameIds())
        return lambda: CHANGES[name](operator), operator.close

    assert campaign(saboteur, site, opened) > 50


def released(folder: Path, revision: int) -> Path:
    """A folder with the first migrations alone."""
    folder = folder / f"first-{revision}"
    folder.mkdir(exist_ok=True)
    for migration in sorted(FOLDER.glob("*.sql"))[:revision]:
        shutil.copy(migration, folder)
    return folder


@pytest.mark.parametrize("revision", range(2, len(migrations(FOLDER)) + 1))
def test_a_migration_of_which_any_statement_fails(saboteur: Saboteur, site: Site, revision: int) -> None:
    revision_1.install(site.start)
    folders = [released(site.start.parent, number) for number in (revision - 1, revision)]
    migrate(site.start, site.clock, SameIds(), folder=folders[0])

    def opened(path: Path) -> tuple[Callable[[], Any], Callable[[], None]]:
        return lambda: migrate(path, site.clock, SameIds(), folder=folders[1]), lambda: None

    assert campaign(saboteur, site, opened, goes_by_steps=True) > 10 * len(FAULTS)


def test_a_migration_whose_commit_loses_its_answer_is_gone_on_with(saboteur: Saboteur, site: Site) -> None:
    revision_1.install(site.start)
    before = state_of(site.copy())
    for number in itertools.count(1):
        path = site.copy()
        saboteur.arm(LOST, number)
        said = outcome_of(functools.partial(migrate, path, site.clock, SameIds()))
        saboteur.disarm()
        if state_of(path) != before:
            break
    assert isinstance(said, MigrationError)
    assert said.code == "migration_connection_lost"
    rest = tuple(migration.label for migration in migrations(FOLDER)[2:])
    assert migrate(path, site.clock, SameIds()).applied == rest


def test_two_acts_that_share_a_transaction_of_which_any_statement_fails(
    saboteur: Saboteur, site: Site, stage: Stage
) -> None:
    makes = [acts(stage)[name] for name in ("dispatch", "settle")]
    loop = asyncio.new_event_loop()

    def states_of(order: Sequence[Make]) -> State:
        path = site.copy()
        store = site.store(path)
        for make in order:
            store.run(make(store))
        store.close()
        return state_of(path)

    singly = {applied: states_of([makes[place] for place in applied]) for applied in [(), (0,), (1,), (0, 1), (1, 0)]}
    failures = 0
    for fault in FAULTS:
        for number in itertools.count(1):
            path = site.copy()
            store = site.store(path)
            works = store._driver._open()
            store.check()
            saboteur.arm(fault, number)
            ends = store._driver._write_together(works, [Order(make(store), loop) for make in makes])
            has_failed = saboteur.statements >= number
            saboteur.disarm()
            if not has_failed:
                store.close()
                break
            failures += 1
            (applied,) = [set(places) for places, state in singly.items() if state == state_of(path)]
            for place, ended in enumerate(ends):
                if isinstance(ended.error, OutcomeUnknown):
                    continue
                assert isinstance(ended.error, StoreError | None)
                assert (place in applied) == (ended.error is None), (fault, number, ended)
            for make in makes:
                store.run(make(store))
            assert state_of(path) in (singly[0, 1], singly[1, 0])
            store.close()
    loop.close()
    assert failures > 100
