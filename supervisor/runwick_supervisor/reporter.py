"""What `runwick-supervise` says: one line when something happened, one quiet line of progress otherwise.

As text for people, or as one JSON object a line for machines. It says nothing about payloads, results or errors.
"""

import datetime
import time
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

import msgspec

from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import OutcomeKind, Settlement
from runwick.contracts.stores import Outlook
from runwick.telemetry import events
from runwick.telemetry.bus import Bus
from runwick.version import __version__
from runwick.worker.tally import Tally


class Reporter(Protocol):
    """Tells what happens, in its own form."""

    def opened(
        self, *, application: str, store: str, cores: int, executors: int, accounting: bool, notes: list[str]
    ) -> None: ...
    def ready(self, *, executors: int, seconds: float) -> None: ...
    def happened(self, event: str, text: str, facts: Mapping[str, Any]) -> None: ...
    def progress(self, tally: Tally, share: float, outlook: Outlook | None, running: int, elapsed_s: float) -> None: ...
    def summary(self, tally: Tally, share: float, left: Outlook | None, elapsed_s: float) -> None: ...


class TextReporter:
    """For people."""

    def __init__(self, out: TextIO, cores: int) -> None:
        self._out = out
        self._all_cores = {1: "the core", 2: "both cores"}.get(cores, f"all {cores} cores")

    def opened(
        self, *, application: str, store: str, cores: int, executors: int, accounting: bool, notes: list[str]
    ) -> None:
        self._say(
            f"runwick-supervise {__version__} · {application} · {store} · "
            f"{_count(cores, 'core')} → {_count(executors, 'executor')}"
        )
        self._say(f"accounting: {'cpu, memory, faults and switches of every attempt' if accounting else 'off'}")
        for note in notes:
            self._say(f"note: {note}")

    def ready(self, *, executors: int, seconds: float) -> None:
        self._say(f"ready in {seconds:.2f} s · stop: Ctrl-C drains, again kills")

    def happened(self, event: str, text: str, facts: Mapping[str, Any]) -> None:
        self._say(f"{_time_of_day()}  {text}")

    def progress(self, tally: Tally, share: float, outlook: Outlook | None, running: int, elapsed_s: float) -> None:
        parts = [
            f"{tally.done:,} done",
            f"{share:.1%} of {self._all_cores} in handlers".replace("%", " %"),
            f"{tally.retried:,} retried",
            f"{tally.failed:,} failed",
        ]
        if outlook is not None and outlook.oldest_due_ms is not None:
            parts.append(f"oldest waiting {outlook.oldest_due_ms / 1000:.1f} s")
        self._say(f"{_time_of_day()}  {' · '.join(parts)}")

    def summary(self, tally: Tally, share: float, left: Outlook | None, elapsed_s: float) -> None:
        self._say(
            f"stopped: {tally.succeeded:,} succeeded · {tally.failed:,} failed · {tally.retried:,} retried · "
            f"{tally.released:,} given back · {elapsed_s:.1f} s · "
            + f"{share:.1%} of {self._all_cores} in handlers".replace("%", " %")
        )
        if left is not None:
            self._say(f"left: {left.later:,} not due yet · {left.undecodable:,} that this worker cannot decode")

    def _say(self, line: str) -> None:
        print(line, file=self._out, flush=True)


class JsonReporter:
    """For machines: one object a line, ``event`` first."""

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def opened(
        self, *, application: str, store: str, cores: int, executors: int, accounting: bool, notes: list[str]
    ) -> None:
        self._say(
            "opened",
            application=application,
            store=store,
            cores=cores,
            executors=executors,
            accounting=accounting,
            notes=notes,
        )

    def ready(self, *, executors: int, seconds: float) -> None:
        self._say("ready", executors=executors, seconds=round(seconds, 4))

    def happened(self, event: str, text: str, facts: Mapping[str, Any]) -> None:
        self._say(event, text=text, **facts)

    def progress(self, tally: Tally, share: float, outlook: Outlook | None, running: int, elapsed_s: float) -> None:
        self._say(
            "progress",
            **_counts(tally),
            waiting=None if outlook is None else outlook.due,
            running=running,
            share_in_handlers=round(share, 4),
            elapsed_s=round(elapsed_s, 3),
        )

    def summary(self, tally: Tally, share: float, left: Outlook | None, elapsed_s: float) -> None:
        self._say(
            "summary",
            **_counts(tally),
            released=tally.released,
            recovered=tally.recovered,
            elapsed_s=round(elapsed_s, 4),
            share_in_handlers=round(share, 4),
            handler_cpu_s=round(tally.handler_cpu_us / 1e6, 4),
            supervisor_cpu_s=round(time.process_time(), 4),
            left=None if left is None else {"later": left.later, "undecodable": left.undecodable},
        )

    def _say(self, event: str, **facts: Any) -> None:
        print(msgspec.json.encode({"event": event, **facts}).decode(), file=self._out, flush=True)


def report_worker_events(bus: Bus, reporter: Reporter) -> None:
    """Let the reporter say what the worker publishes beyond its quiet progress."""

    def settled(event: events.Settled) -> None:
        for settlement in event.settlements:
            if settlement.outcome.kind is not OutcomeKind.SUCCEEDED:
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

    def recovered(event: events.Recovered) -> None:
        text = f"recovered {event.count} attempts whose lease had run out"
        reporter.happened("recovered", text, {"count": event.count})

    def draining(event: events.DrainStarted) -> None:
        text = f"stopping: {event.running} running, nothing new begins"
        reporter.happened("draining", text, {"running": event.running})

    bus.listen(events.Settled, settled)
    bus.listen(events.SettlementRefused, refused)
    bus.listen(events.LeaseLost, lease_lost)
    bus.listen(events.SettlementDelayed, delayed)
    bus.listen(events.LoopFailed, loop_failed)
    bus.listen(events.Recovered, recovered)
    bus.listen(events.DrainStarted, draining)


def _unsuccessful(settlement: Settlement) -> tuple[str, dict[str, object]]:
    """What to tell of an attempt that did not succeed, as a sentence and as facts."""
    attempt, outcome = settlement.attempt, settlement.outcome
    job = id_text(attempt.job_id)
    why = f" ({settlement.code})" if settlement.code != outcome.code else ""
    text = (
        f"{attempt.kind.name} {job} execution {attempt.execution} of {attempt.policy.max_executions}: "
        f"{outcome.kind.value} ({outcome.code}), now {settlement.state.value}{why}"
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


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _time_of_day() -> str:
    return datetime.datetime.now().astimezone().strftime("%H:%M:%S")
