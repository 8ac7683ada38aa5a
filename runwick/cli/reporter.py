"""What a command that runs a worker says: one line when something happened, one quiet line of progress otherwise.

As text for people, or as one JSON object a line for machines. It says nothing about payloads, results or errors.
"""

import datetime
import os
import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TextIO

import msgspec

from runwick.app.drifts import drift_text
from runwick.contracts.health import HealthStatus
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import OutcomeKind, Settlement
from runwick.contracts.stores import Outlook
from runwick.management.deaths import death_text
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.version import __version__
from runwick.worker.tally import Tally


class Reporter(Protocol):
    """Tells what happens, in its own form."""

    def opened(self, about: "Opening") -> None: ...
    def ready(self, about: "Opening", seconds: float) -> None: ...
    def happened(self, event: str, text: str, facts: Mapping[str, Any]) -> None: ...
    def progress(
        self, tally: Tally, share: float | None, outlook: Outlook | None, running: int, elapsed_s: float
    ) -> None: ...
    def summary(self, tally: Tally, share: float | None, left: Outlook | None, elapsed_s: float) -> None: ...


class Opening(msgspec.Struct, frozen=True, kw_only=True):
    """What a command says of itself before it starts."""

    program: str
    """The command as it is typed."""
    target: str
    """What it was told to run, as ``--app`` takes it."""
    app_dir: str
    """From where it is loaded."""
    application: str
    store: str
    """In a phrase without secrets."""
    size: Mapping[str, int]
    """How much runs at once, by the thing that is counted: ``{"cores": 2, "executors": 3}``; the last one is it."""
    pools: Mapping[str, int]
    """The size of each pool."""
    accounting: str | None
    """What is measured of every attempt; None when nothing is."""
    notes: Sequence[str]
    force: str
    """What a second and a third signal do."""
    grade: str | None = None
    """How surely runs are stopped when their lease is over; None where nothing can be stopped."""


class Outlet:
    """Where the lines go. When nobody reads them any more, as after ``| head``, they go nowhere: the work goes on."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def say(self, line: str) -> None:
        """Write one line, at once."""
        try:
            print(line, file=self._out, flush=True)
        except BrokenPipeError:
            # What the stream still holds would be tried again with every line, and at the end of the process.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._out.fileno())
            os.close(nowhere)


class TextReporter:
    """For people."""

    def __init__(self, out: TextIO) -> None:
        self._outlet = Outlet(out)
        self._all_cores = ""

    def opened(self, about: Opening) -> None:
        cores = about.size.get("cores", 0)
        self._all_cores = {1: "the core", 2: "both cores"}.get(cores, f"all {cores} cores")
        size = " → ".join(f"{number} {noun.removesuffix('s' * (number == 1))}" for noun, number in about.size.items())
        self._say(f"{about.program} {__version__} · {about.application} · {about.store} · {size}")
        if len(about.pools) > 1:
            self._say(f"pools: {', '.join(f'{name} {number}' for name, number in about.pools.items())}")
        accounting = f"accounting: {'off' if about.accounting is None else f'{about.accounting} of every attempt'}"
        self._say(accounting if about.grade is None else f"stopping grade: {about.grade} · {accounting}")
        for note in about.notes:
            self._say(f"note: {note}")

    def ready(self, about: Opening, seconds: float) -> None:
        dashboard = f"dashboard: {_dashboard_command(about)}"
        self._say(f"ready in {seconds:.2f} s · {dashboard} · stop: Ctrl-C drains, again {about.force}")

    def happened(self, event: str, text: str, facts: Mapping[str, Any]) -> None:
        self._say(f"{_time_of_day()}  {text}")

    def progress(
        self, tally: Tally, share: float | None, outlook: Outlook | None, running: int, elapsed_s: float
    ) -> None:
        parts = [
            f"{tally.done:,} done",
            f"{running:,} running",
            *([] if share is None else [self._in_handlers(share)]),
            f"{tally.retried:,} retried",
            f"{tally.failed:,} failed",
        ]
        if outlook is not None and outlook.oldest_due_ms is not None:
            parts.append(f"oldest waiting {outlook.oldest_due_ms / 1000:.1f} s")
        if outlook is not None and outlook.blocked:
            parts.append(f"{outlook.blocked:,} in line for a limit")
        if outlook is not None and outlook.paused:
            parts.append(f"{outlook.paused:,} in paused queues")
        self._say(f"{_time_of_day()}  {' · '.join(parts)}")

    def summary(self, tally: Tally, share: float | None, left: Outlook | None, elapsed_s: float) -> None:
        self._say(
            f"stopped: {tally.succeeded:,} succeeded · {tally.failed:,} failed · {tally.retried:,} retried · "
            f"{tally.released:,} given back · {elapsed_s:.1f} s"
            + ("" if share is None else f" · {self._in_handlers(share)}")
        )
        if left is not None:
            paused = f" · {left.paused:,} in paused queues" if left.paused else ""
            self._say(f"left: {left.later:,} not due yet · {left.undecodable:,} that this worker cannot decode{paused}")

    def _in_handlers(self, share: float) -> str:
        return f"{share:.1%} of {self._all_cores} in handlers".replace("%", " %")

    def _say(self, line: str) -> None:
        self._outlet.say(line)


class JsonReporter:
    """For machines: one object a line, ``event`` first."""

    def __init__(self, out: TextIO) -> None:
        self._outlet = Outlet(out)

    def opened(self, about: Opening) -> None:
        self._say(
            "opened",
            program=about.program,
            application=about.application,
            store=about.store,
            **about.size,
            pools=about.pools,
            accounting=about.accounting is not None,
            grade=about.grade,
            notes=about.notes,
        )

    def ready(self, about: Opening, seconds: float) -> None:
        self._say("ready", **about.size, seconds=round(seconds, 4))

    def happened(self, event: str, text: str, facts: Mapping[str, Any]) -> None:
        self._say(event, text=text, **facts)

    def progress(
        self, tally: Tally, share: float | None, outlook: Outlook | None, running: int, elapsed_s: float
    ) -> None:
        self._say(
            "progress",
            **_counts(tally),
            waiting=None if outlook is None else outlook.due,
            blocked=None if outlook is None else outlook.blocked,
            paused=None if outlook is None else outlook.paused,
            parked=tally.parked,
            deferred=tally.deferred,
            running=running,
            **_measured(share),
            elapsed_s=round(elapsed_s, 3),
        )

    def summary(self, tally: Tally, share: float | None, left: Outlook | None, elapsed_s: float) -> None:
        self._say(
            "summary",
            **_counts(tally),
            released=tally.released,
            recovered=tally.recovered,
            elapsed_s=round(elapsed_s, 4),
            **_measured(share),
            handler_cpu_s=None if share is None else round(tally.handler_cpu_us / 1e6, 4),
            supervisor_cpu_s=round(time.process_time(), 4),
            left=None if left is None else _left(left),
        )

    def _say(self, event: str, **facts: Any) -> None:
        self._outlet.say(msgspec.json.encode({"event": event, **facts}).decode())


def report_worker_events(bus: Bus, reporter: Reporter) -> None:
    """Let the reporter say what the worker publishes beyond its quiet progress."""

    succeeded = OutcomeKind.SUCCEEDED  # before Python 3.12 looking a member up in its class is a call

    def settled(event: events.Settled) -> None:
        for settlement in event.settlements:
            if settlement.outcome.kind is not succeeded:
                reporter.happened("attempt_ended", *_unsuccessful(settlement))

    def refused(event: events.SettlementRefused) -> None:
        job = id_text(event.attempt.job_id)
        text = f"the result of {event.attempt.kind.name} {job} was refused: {event.error}"
        reporter.happened("settlement_refused", text, {"job_id": job, "error": event.error})

    def lease_lost(event: events.LeaseLost) -> None:
        job = id_text(event.attempt.job_id)
        text = f"lost the lease of {event.attempt.kind.name} {job}: {event.reason}"
        reporter.happened("lease_lost", text, {"job_id": job, "reason": event.reason})

    def delayed(event: events.SettlementDelayed) -> None:
        text = f"{event.attempts} results could not be stored yet: {event.error}; again in {event.pause_s:.1f} s"
        reporter.happened("settlement_delayed", text, {"tries": event.tries, "error": event.error})

    def loop_failed(event: events.LoopFailed) -> None:
        reporter.happened("loop_failed", f"{event.loop} failed and goes on: {event.error}", {"loop": event.loop})

    def call_failed(event: events.StoreCallFailed) -> None:
        text = f"the store does not answer {event.act}, which is repeated: {event.error}"
        reporter.happened("store_call_failed", text, {"act": event.act, "code": event.code, "error": event.error})

    def call_answered(event: events.StoreCallAnswered) -> None:
        text = f"the store answers {event.act} again, after {event.seconds:.1f} s"
        reporter.happened("store_call_answered", text, {"act": event.act, "seconds": round(event.seconds, 3)})

    def claims_refused(event: events.ClaimsRefused) -> None:
        reporter.happened("claims_refused", f"no work is claimed: {event.reason}", {"reason": event.reason})

    def claims_admitted(event: events.ClaimsAdmitted) -> None:
        text = f"work is claimed again, after {event.seconds:.1f} s"
        reporter.happened("claims_admitted", text, {"seconds": round(event.seconds, 3)})

    def stopped(event: events.WorkerStopped) -> None:
        if left := event.left_to_leases:
            ends = "the end of 1 attempt was" if left == 1 else f"the ends of {left} attempts were"
            text = f"{ends} not stored; when their leases have run out, these jobs go on elsewhere"
            reporter.happened("left_to_leases", text, {"attempts": left})

    def history_broken(event: events.HistoryBroken) -> None:
        text = (
            f"{event.leases} leases are lost, their runs are stopped and nothing more is written; this worker ends: "
            f"{event.reason}"
        )
        reporter.happened("history_broken", text, {"leases": event.leases, "reason": event.reason})

    def recovered(event: events.Recovered) -> None:
        text = f"recovered {event.count} attempts whose lease had run out"
        reporter.happened("recovered", text, {"count": event.count})

    def expired(event: events.Expired) -> None:
        reporter.happened("expired", f"{event.count} jobs expired before they began", {"count": event.count})

    def drifted(event: events.LimitDrifted) -> None:
        drift = event.drift
        facts = {"kind": drift.kind.value, "key": drift.key, "stored": drift.stored, "declared": drift.declared}
        reporter.happened("limit_drifted", drift_text(drift), facts)

    def mended(event: events.LimitsMended) -> None:
        text = f"{event.count} scopes counted their holds wrongly and were set right; please report this"
        reporter.happened("limits_mended", text, {"count": event.count})

    def predecessor(event: events.PredecessorRecovered) -> None:
        text = f"recovered {event.count} attempts of a predecessor that is dead"
        reporter.happened("predecessor_recovered", text, {"count": event.count, "worker": id_text(event.worker)})

    def ended_unbegun(event: events.EndedUnbegun) -> None:
        for attempt in event.attempts:
            job = id_text(attempt.job_id)
            text = f"{attempt.kind.name} {job} ended before it began ({event.code})"
            reporter.happened("ended_unbegun", text, {"job_id": job, "name": attempt.kind.name, "code": event.code})

    def asked(event: events.AttemptAsked) -> None:
        job, cause = id_text(event.attempt.job_id), (event.cause.name or "").lower()
        text = f"{event.attempt.kind.name} {job} is asked to stop ({cause})"
        reporter.happened("attempt_asked", text, {"job_id": job, "cause": cause})

    def stack(event: events.StackShown) -> None:
        doing = event.executor
        job = None if doing.job_id is None else id_text(doing.job_id)
        text = f"executor {doing.number} runs {doing.name} {job} ({doing.phase}):\n{event.text.rstrip()}"
        facts = {"executor": doing.number, "pid": doing.process, "job_id": job, "name": doing.name}
        reporter.happened("stack", text, {**facts, "phase": doing.phase})

    told: dict[str, str | None] = {}

    def health(event: events.HealthChanged) -> None:
        # What else may be wrong has lines of its own.
        pools = [role for role in event.health.roles if role.role.startswith("pool ")]
        wrong = {role.role: role.code for role in pools if role.status is not HealthStatus.HEALTHY}
        if wrong == told:
            return
        told.clear()
        told.update(wrong)
        listed = "; ".join(f"{role.role}: {role.text or role.code}" for role in pools if role.role in wrong)
        facts = {"status": event.health.status.value, "ready": event.health.ready, "roles": wrong}
        reporter.happened("health", f"health: {listed or 'every pool has its executors again'}", facts)

    def draining(event: events.DrainStarted) -> None:
        text = f"stopping: {event.running} running, nothing new begins"
        reporter.happened("draining", text, {"running": event.running})

    bus.listen(events.Settled, settled)
    bus.listen(events.SettlementRefused, refused)
    bus.listen(events.LeaseLost, lease_lost)
    bus.listen(events.SettlementDelayed, delayed)
    bus.listen(events.LoopFailed, loop_failed)
    bus.listen(events.StoreCallFailed, call_failed)
    bus.listen(events.StoreCallAnswered, call_answered)
    bus.listen(events.ClaimsRefused, claims_refused)
    bus.listen(events.ClaimsAdmitted, claims_admitted)
    bus.listen(events.HistoryBroken, history_broken)
    bus.listen(events.Recovered, recovered)
    bus.listen(events.Expired, expired)
    bus.listen(events.LimitDrifted, drifted)
    bus.listen(events.LimitsMended, mended)
    bus.listen(events.PredecessorRecovered, predecessor)
    bus.listen(events.EndedUnbegun, ended_unbegun)
    bus.listen(events.AttemptAsked, asked)
    bus.listen(events.StackShown, stack)
    bus.listen(events.HealthChanged, health)
    bus.listen(events.DrainStarted, draining)
    bus.listen(events.WorkerStopped, stopped)


def _unsuccessful(settlement: Settlement) -> tuple[str, dict[str, object]]:
    """What to tell of an attempt that did not succeed, as a sentence and as facts."""
    attempt, outcome = settlement.attempt, settlement.outcome
    job = id_text(attempt.job_id)
    why = f" ({settlement.code})" if settlement.code != outcome.code else ""
    died = "" if outcome.death is None else f": {death_text(outcome.death)}"
    text = (
        f"{attempt.kind.name} {job} execution {attempt.execution} of {attempt.policy.max_executions}: "
        f"{outcome.kind.value} ({outcome.code}{died}), now {settlement.state.value}{why}"
    )
    facts = {"name": attempt.kind.name, "outcome": outcome.kind.value, "state": settlement.state.value}
    return text, {"job_id": job, **facts, "code": outcome.code}


def _counts(tally: Tally) -> dict[str, int]:
    return {
        "done": tally.done,
        "succeeded": tally.succeeded,
        "failed": tally.failed,
        "retried": tally.retried,
    }


def _left(left: Outlook) -> dict[str, int]:
    return {"later": left.later, "undecodable": left.undecodable, "paused": left.paused}


def _measured(share: float | None) -> dict[str, float]:
    """What is known of the time inside handlers: nothing where threads share the process."""
    return {} if share is None else {"share_in_handlers": round(share, 4)}


def _dashboard_command(about: Opening) -> str:
    """The command that opens the dashboard, to be typed here."""
    is_here = Path(about.app_dir).resolve() == Path.cwd()
    return shlex.join(["runwick", "web", "--app", about.target, *([] if is_here else ["--app-dir", about.app_dir])])


def _time_of_day() -> str:
    return datetime.datetime.now().astimezone().strftime("%H:%M:%S")
