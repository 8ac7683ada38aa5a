"""Reads a store after a run: jobs, events and audit through its public reads, the rest from its tables."""

import contextlib
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import psycopg

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.history import AuditRecord, EventKind, JobEvent
from runwick.contracts.policies import JobPolicy
from runwick.contracts.stores import Act, Store
from runwick.stores.redis.packed import STATES, policy_of
from scripts.servers.redis import RedisServer
from tests.chaos.history import History, StoredClosing, StoredJob
from tests.chaos.limit_log import LoggedMemoryStore, logged_library, read_redis
from tests.chaos.reading_limits import LimitRows, memory_limits, postgres_limits, redis_limits, sqlite_limits
from tests.redis.recount import asked

PAGE = 500


class JobRow(NamedTuple):
    job_id: bytes
    operation_id: bytes
    policy: JobPolicy
    payload_bytes: int
    lives_ms: int | None


class Rows(NamedTuple):
    """What is read from the tables."""

    jobs: list[JobRow]
    closings: list[StoredClosing]
    claimed_at_ms: Mapping[bytes, int]
    """By attempt id."""
    limits: LimitRows


def read_history(
    store: Store, application: str, rows: Rows, *, lanes: Sequence[Lane], kinds: frozenset[Kind], **rest: Any
) -> History:
    """The history of a run that has come to rest; `rest` is what the store does not know."""
    records = {job.job_id: store.run(store.job(application, job.job_id)) for job in rows.jobs}
    outlook = store.run(store.outlook(application, lanes, kinds))
    return History(
        application=application,
        jobs=[
            StoredJob(
                record=record,
                operation_id=job.operation_id,
                policy=job.policy,
                payload_bytes=job.payload_bytes,
                lives_ms=job.lives_ms,
            )
            for job in rows.jobs
            if (record := records[job.job_id]) is not None
        ],
        closings=rows.closings,
        claimed_at_ms=rows.claimed_at_ms,
        events=read_events(store, application),
        audit=_audit(store, application),
        limit_log=rows.limits.log,
        scopes=rows.limits.scopes,
        windows=rows.limits.windows,
        keys_held=rows.limits.keys_held,
        live=outlook.due + outlook.later + outlook.leased + outlook.undecodable + outlook.paused,
        **rest,
    )


def read_events(store: Store, application: str, after: str | None = None, page: int = PAGE) -> list[JobEvent]:
    """All events behind a cursor."""
    return _pages(lambda cursor: store.events(application, cursor, page), "events", store, after)


def _audit(store: Store, application: str) -> list[AuditRecord]:
    return _pages(lambda cursor: store.audit(application, cursor, PAGE), "records", store, None)


def _pages(make: Callable[[str | None], Act[Any]], entries: str, store: Store, after: str | None) -> list[Any]:
    found: list[Any] = []
    more = True
    while more:
        page = store.run(make(after))
        found += getattr(page, entries)
        after, more = page.cursor, page.more
    return found


class _Last(NamedTuple):
    """What a job that has ended knows of its last closing."""

    revision: int | None
    executions: int | None
    cancel_requested_at_ms: int | None


def memory_rows(store: LoggedMemoryStore, claimed_at_ms: Mapping[bytes, int]) -> Rows:
    """From a memory store, which forgets all but the last closing's numbers and when it was claimed."""
    rows = list(store.tables.rows.values())
    last = {
        (row.command.job_id, row.generation): _Last(row.revision, row.executions, row.cancel_requested_at_ms)
        for row in rows
        if row.state.terminal
    }
    jobs = [
        JobRow(row.command.job_id, row.command.operation_id, row.command.policy, len(row.command.payload), row.lives_ms)
        for row in rows
    ]
    closings = _closings_told([event for _, event in store.tables.events], last)
    return Rows(jobs, closings, claimed_at_ms, memory_limits(store))


def _closings_told(events: Sequence[JobEvent], last: Mapping[tuple[bytes, int], _Last]) -> list[StoredClosing]:
    """As events tell of them: `last` knows more of some, and of the others at least when they were cancelled."""
    cancelled = {(event.job_id, event.generation): event.at_ms for event in reversed(events) if event.state == "cancel"}
    closings = []
    for event in events:
        if event.what is EventKind.JOB_ENDED:
            at = event.job_id, event.generation
            known = last.get(at, _Last(None, None, cancelled.get(at)))
            closings.append(
                _closing(event.job_id, event.generation, event.state or "", event.code, event.at_ms, *known)
            )
    return closings


def sqlite_rows(path: Path) -> Rows:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        jobs = connection.execute(
            "SELECT job.id, job.operation_id, policy.json, job.payload_bytes, job.expires_at_ms - job.created_at_ms "
            "FROM runwick_job AS job JOIN runwick_policy AS policy ON policy.id = job.policy"
        ).fetchall()
        closings = connection.execute(
            "SELECT job.id, closing.generation, closing.state, closing.code, closing.ended_at_ms, closing.revision, "
            "closing.executions, closing.cancel_requested_at_ms "
            "FROM runwick_closing AS closing JOIN runwick_job AS job ON job.position = closing.job"
        ).fetchall()
        claims = connection.execute(
            "SELECT attempt.attempt_id, claim.claimed_at_ms FROM runwick_attempt AS attempt "
            "JOIN runwick_claim AS claim ON claim.id = attempt.claim"
        ).fetchall()
        limits = sqlite_limits(connection)
    return Rows([_job(*row) for row in jobs], [_closing(*row) for row in closings], dict(claims), limits)


def postgres_rows(url: str) -> Rows:
    with psycopg.connect(url) as connection:
        jobs = connection.execute(
            "SELECT job.id, job.operation_id, policy.json, job.payload_bytes, job.expires_at_ms - job.created_at_ms "
            "FROM runwick.job AS job JOIN runwick.policy AS policy ON policy.id = job.policy"
        ).fetchall()
        closings = connection.execute(
            "SELECT job, generation, state, code, ended_at_ms, revision, executions, cancel_requested_at_ms "
            "FROM runwick.closing "
            "UNION ALL SELECT job, generation, 'succeeded', NULL, ended_at_ms, revision, executions, NULL "
            "FROM runwick.attempt WHERE revision IS NOT NULL"
        ).fetchall()
        claims = connection.execute("SELECT attempt_id, claimed_at_ms FROM runwick.attempt").fetchall()
        limits = postgres_limits(connection)
    return Rows(
        [_job(*map(_plain, row)) for row in jobs],
        [_closing(*map(_plain, row)) for row in closings],
        {attempt.bytes: at_ms for attempt, at_ms in claims if at_ms is not None},
        limits,
    )


def redis_rows(server: RedisServer, store: Store, application: str) -> Rows:
    """From a Redis store, which keeps no more of closings than a memory store does."""
    rows: list[Any] = asked(server, logged_library(), "chaos_rows", application)
    log, claimed_at_ms = read_redis(server, application)
    jobs = [
        JobRow(job_id, operation, policy_of(text), *rest)
        for job_id, operation, text, *rest in (row[:5] for row in rows)
    ]
    last = {
        (job_id, generation): _Last(revision, executions, cancelled_at_ms)
        for job_id, *_, state, generation, revision, executions, cancelled_at_ms, _, _ in rows
        if STATES[state].terminal
    }
    closings = _closings_told(read_events(store, application), last)
    return Rows(jobs, closings, claimed_at_ms, redis_limits(server, application, log, rows))


def _plain(value: Any) -> Any:
    return value.bytes if isinstance(value, UUID) else value


def _job(job_id: bytes, operation_id: bytes, policy: str, payload_bytes: int, lives_ms: int | None) -> JobRow:
    return JobRow(job_id, operation_id, msgspec.json.decode(policy, type=JobPolicy), payload_bytes, lives_ms)


def _closing(
    job_id: bytes,
    generation: int,
    state: str,
    code: str | None,
    ended_at_ms: int,
    revision: int | None,
    executions: int | None,
    cancel_requested_at_ms: int | None,
) -> StoredClosing:
    return StoredClosing(
        job_id=job_id,
        generation=generation,
        state=state,
        code=code,
        ended_at_ms=ended_at_ms,
        revision=revision,
        executions=executions,
        cancel_requested_at_ms=cancel_requested_at_ms,
    )
