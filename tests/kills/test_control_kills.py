"""Whoever sends a control is killed: what was answered stays, and what was not is there whole or not at all.

Each reading, and each sending again, is a new process.
"""

import os
import signal
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
import psycopg
import pytest

from runwick.contracts.controls import ControlAction, ControlCommand, ControlReply
from runwick.contracts.history import EventKind
from runwick.contracts.identity import id_text
from tests.conformance.ground import APPLICATION, Bench
from tests.conformance.places import Database
from tests.conformance.scene import Scene, seen, set_scene
from tests.kills.fire import wait_for
from tests.kills.stands import KILLED, PostgresStand, RedisStand, Stand, Tables, each_kill, elsewhere
from tests.sqlite.processes import Child, Peer

CANCEL, RETRY, RERUN, LOOK = ControlAction.CANCEL, ControlAction.RETRY, ControlAction.RERUN, ControlAction.LOOK

ORDERS: Final[dict[str, tuple[ControlAction, Callable[[Scene], list[bytes]]]]] = {
    "cancel, waiting": (CANCEL, lambda scene: [scene.dispatched.job_id]),
    "cancel, running": (CANCEL, lambda scene: [scene.running.job_id]),
    "cancel_many": (CANCEL, lambda scene: scene.job_ids),
    "retry": (RETRY, lambda scene: [scene.failed]),
    "rerun": (RERUN, lambda scene: [scene.succeeded]),
    "look": (LOOK, lambda scene: [scene.running.job_id]),
}


class Case:
    """A scene and a command about it."""

    def __init__(self, stand: Stand, name: str) -> None:
        action, targets = ORDERS[name]
        self.stand = stand
        self.bench = stand.bench()
        self.scene = set_scene(self.bench)
        self.order = self.bench.order(action, *(self.scene.targets[job] for job in targets(self.scene)))
        self.audited = len(self.bench.audit())
        self.before = self.told()

    def send(self) -> str:
        """Send the command through a store of this process's own; answers the reply as JSON."""
        store = self.bench.another()
        return msgspec.json.encode(store.run(store.control(self.order))).decode()

    def sent(self) -> ControlReply:
        """What another process is answered."""
        return _reply(elsewhere(self.send))

    def told(self) -> Any:
        """All that another process reads."""
        return elsewhere(lambda: msgspec.json.encode(_read(self.bench, self.scene)).decode())


def _read(bench: Bench, scene: Scene) -> object:
    store = bench.another()
    return seen(bench, scene, store), store.run(store.events(APPLICATION, None, 1_000))


def _reply(text: str) -> ControlReply:
    return msgspec.json.decode(text, type=ControlReply)


def check_done(case: Case, reply: ControlReply) -> None:
    """What was answered is what stands, and was written once."""
    done = [answer for answer in reply.answers if answer.code is None]
    assert done
    for answer in reply.answers:
        job = case.bench.job(answer.job_id)
        assert (job.state, job.generation, job.revision) == (answer.state, answer.generation, answer.revision)
    audit = case.bench.audit()[case.audited :]
    assert [record.job_id for record in audit] == [answer.job_id for answer in done]
    assert {record.command_id for record in audit} == {case.order.command_id}
    events = [event for event in case.bench.events() if event.what is EventKind.CONTROLLED]
    assert [event.job_id for event in events] == [answer.job_id for answer in done]
    looks = [request.attempt_id for request in case.bench.renew().looks]
    assert looks == [answer.attempt_id for answer in done if answer.attempt_id is not None]


@pytest.mark.parametrize("name", ORDERS)
def test_f148_what_was_answered_outlives_who_asked(stand: Stand, name: str) -> None:
    case = Case(stand, name)

    def ask(peer: Peer) -> None:
        peer.say(case.send())
        peer.hear()

    with Child(ask) as operator:
        reply = _reply(operator.hear())
        os.kill(operator.pid, signal.SIGKILL)
        assert operator.end() == KILLED
    found = case.told()
    again = case.sent()
    assert again == msgspec.structs.replace(reply, replayed=True)
    assert case.told() == found
    check_done(case, reply)


def check_whole_or_absent(case: Case) -> bool:
    """Of a command whose sender was killed; answers whether it was applied."""
    found = case.told()
    first = case.sent()
    after = case.told()
    assert found == (after if first.replayed else case.before)
    assert case.before != after
    assert case.sent() == msgspec.structs.replace(first, replayed=True)
    assert case.told() == after
    check_done(case, first)
    return first.replayed


APPLIED: Final = {
    "SqliteStand": {("sqlite.committed", 1): True},
    "PostgresStand": {
        ("postgres.sending", 1): False,
        ("postgres.sending", 2): False,
        ("postgres.answered", 1): False,
        ("postgres.answered", 2): True,
    },
    "RedisStand": {("redis.sending", 1): False, ("redis.answered", 1): True},
}
"""Whether a command is applied when its sender is killed at a crossing for the n-th time: on PostgreSQL it asks for the
numbers of names first."""


@pytest.mark.parametrize("name", ORDERS)
def test_f148_what_was_not_answered_is_there_whole_or_not_at_all(stand: Stand, name: str) -> None:
    applied = {}
    for crossing, nth, case in each_kill(stand, lambda: Case(stand, name), Case.send):
        applied[crossing, nth] = check_whole_or_absent(case)
    assert applied == APPLIED[type(stand).__name__]


@pytest.mark.parametrize("name", ["retry", "rerun"])
def test_f149_a_job_is_never_without_a_life_and_never_has_two(stand: Stand, name: str) -> None:
    """Killed at each crossing: the last generation stands closed, or the next one waits, and one commit has done it."""
    opened = []
    for _, _, case in each_kill(stand, lambda: Case(stand, name), Case.send):
        closed, live, written = lives(stand, case.order)
        assert closed == [1]
        assert (live, written) in [([], []), ([2], ["audit", "command", "hot"])]
        opened.append(bool(live))
        whats = [event.what for event in case.bench.events() if event.job_id == case.order.targets[0].job_id]
        assert whats[-1] is (EventKind.CONTROLLED if live else EventKind.JOB_ENDED)
        assert whats.count(EventKind.CONTROLLED) == len(live)
    assert opened == list(APPLIED[type(stand).__name__].values())


def lives(stand: Stand, order: ControlCommand) -> tuple[list[int], list[int], list[str]]:
    """The generations that are closed and the one that is live, and what was written with that: in one transaction,
    which PostgreSQL names."""
    job_id, command_id = order.targets[0].job_id, order.command_id
    if isinstance(stand, RedisStand):
        return _told_lives(stand, order)
    assert isinstance(stand, Tables)
    sqlite, postgres = f"x'{job_id.hex()}'", f"'{id_text(job_id)}'"
    of_job = f"(SELECT position FROM runwick_job WHERE id = {sqlite})"

    def generations(table: str, besides: str = "") -> list[int]:
        found = stand.rows(
            f"SELECT generation FROM runwick_{table} WHERE job = {of_job} ORDER BY 1",
            f"SELECT generation FROM runwick.{table} WHERE job = {postgres} {besides} ORDER BY 1",
        )
        return [generation for (generation,) in found]

    written = stand.rows(
        f"SELECT 'audit', 0 FROM runwick_audit WHERE job = {of_job} "
        f"UNION ALL SELECT 'command', 0 FROM runwick_command WHERE id = x'{command_id.hex()}' "
        f"UNION ALL SELECT 'hot', 0 FROM runwick_hot WHERE job = {of_job} ORDER BY 1",
        f"SELECT 'audit', xmin::text FROM runwick.audit WHERE job = {postgres} "
        f"UNION ALL SELECT 'command', xmin::text FROM runwick.command WHERE id = '{id_text(command_id)}' "
        f"UNION ALL SELECT 'hot', xmin::text FROM runwick.hot WHERE job = {postgres} ORDER BY 1",
    )
    assert len({transaction for _, transaction in written}) <= 1
    successes = f"UNION ALL SELECT generation FROM runwick.attempt WHERE job = {postgres} AND revision IS NOT NULL"
    return generations("closing", successes), generations("hot"), [table for table, _ in written]


def _told_lives(stand: RedisStand, order: ControlCommand) -> tuple[list[int], list[int], list[str]]:
    """The same as the store tells it: what it writes at once is one function."""
    bench, job_id = stand.standing, order.targets[0].job_id
    told = [event for event in bench.events() if event.job_id == job_id]
    job = bench.job(job_id)
    live = [] if job.state.terminal else [job.generation]
    audited = any(record.command_id == order.command_id for record in bench.audit())
    written = {"audit": audited, "command": stand.kept(order.command_id), "hot": bool(live)}
    closed = [event.generation for event in told if event.what is EventKind.JOB_ENDED]
    return closed, live, [what for what, is_there in written.items() if is_there]


@pytest.fixture
def server_stand(killed_database: Database) -> Iterator[PostgresStand]:
    stand = PostgresStand(killed_database)
    yield stand
    stand.close()


@pytest.mark.parametrize("name", ORDERS)
def test_f148_f149_killed_while_the_server_works_it_is_whole_or_absent(server_stand: PostgresStand, name: str) -> None:
    """The command is on its way when who sent it dies: the server waits with it for a transaction of somebody else."""
    case = Case(server_stand, name)
    ask = server_stand.database.execute
    with psycopg.connect(server_stand.database.url) as other:
        other.execute(
            "INSERT INTO runwick.command (application, id, at_ms, fingerprint, reply) "
            "SELECT id, %s::uuid, 0, '', '' FROM runwick.application",
            (id_text(case.order.command_id),),
        )
        waiting = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        with Child(lambda peer: case.send()) as operator:
            wait_for(lambda: bool(ask(waiting)), "the command to wait in the server")
            ((session,),) = ask(waiting)
            os.kill(operator.pid, signal.SIGKILL)
            assert operator.end() == KILLED
        assert case.told() == case.before
        other.rollback()
    wait_for(lambda: ask("SELECT 1 FROM pg_stat_activity WHERE pid = %s", session) == [], "its session to end")
    check_whole_or_absent(case)
