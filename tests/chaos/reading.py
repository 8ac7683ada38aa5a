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
from runwick.stores.memory.tables import Tables
from tests.chaos.history import History, StoredClosing, StoredJob
from tests.chaos.limit_log import LoggedMemoryStore
from tests.chaos.reading_limits import LimitRows, memory_limits, postgres_limits, sqlite_limits

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


def memory_rows(store: LoggedMemoryStore, claimed_at_ms: Mapping[bytes, int]) -> Rows:
    """From a memory store, which forgets all but the last closing's numbers and when it was claimed."""
    tables = store.tables
    rows = list(tables.rows.values())
    ended = {row.command.job_id: row for row in rows if row.state.terminal}
    closings = []
    for _, event in tables.events:
        if event.what is EventKind.JOB_ENDED:
            row = ended.get(event.job_id)
            last = row if row is not None and row.generation == event.generation else None
            closings.append(
                StoredClosing(
                    job_id=event.job_id,
                    generation=event.generation,
                    state=event.state or "",
                    code=event.code,
                    ended_at_ms=event.at_ms,
                    revision=None if last is None else last.revision,
                    executions=None if last is None else last.executions,
                    cancel_requested_at_ms=_cancelled_at_ms(tables, event),
                )
            )
    jobs = [
        JobRow(row.command.job_id, row.command.operation_id, row.command.policy, len(row.command.payload), row.lives_ms)
        for row in rows
    ]
    return Rows(jobs, closings, claimed_at_ms, memory_limits(store))


def _cancelled_at_ms(tables: Tables, end: JobEvent) -> int | None:
    """When that generation was cancelled; of one that is not the last, its events tell."""
    row = tables.rows[tables.jobs_by_id[end.job_id]]
    if row.generation == end.generation:
        return row.cancel_requested_at_ms
    for _, event in tables.events:
        if (event.job_id, event.generation, event.state) == (end.job_id, end.generation, "cancel"):
            return event.at_ms
    return None


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
            "FROM runwick.closing"
        ).fetchall()
        claims = connection.execute("SELECT attempt_id, claimed_at_ms FROM runwick.attempt").fetchall()
        limits = postgres_limits(connection)
    return Rows(
        [_job(*map(_plain, row)) for row in jobs],
        [_closing(*map(_plain, row)) for row in closings],
        {attempt.bytes: at_ms for attempt, at_ms in claims if at_ms is not None},
        limits,
    )


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
    revision: int,
    executions: int,
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
