"""A store in which every act has something to do, and each act with arguments that are the same at each sending."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from runwick.contracts.activity import ExecutorActivity, Mark, Report, StackAnswer
from runwick.contracts.attempts import Attempt, Lane
from runwick.contracts.controls import ControlAction, JobTarget, SteerAction
from runwick.contracts.dispatching import Command
from runwick.contracts.limits import LimitKind
from runwick.contracts.listing import AuditFilter, JobFilter
from runwick.contracts.outcomes import BlackBox, Death, IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.revealing import AuditNote, Secret
from runwick.contracts.states import LEASED_STATES, JobState, Priority
from runwick.contracts.stores import Act, Store
from tests.conformance.ground import (
    ACTOR,
    APPLICATION,
    BUILD,
    FAILURE,
    HIGH,
    KINDS,
    LARGE,
    LEASE_MS,
    MEDIUM,
    RECOVERY_MS,
    SUCCESS,
    Bench,
    capped,
    held,
    resource,
    window,
)
from tests.conformance.scene import INVOICES, LANES, NEW_KIND, NEW_LANE, Scene, set_scene

Make = Callable[[Store], Act[Any]]
"""Makes an act of a store, the same whenever it is called."""

CRASH: Final = Outcome(
    OutcomeKind.CRASHED, code="executor_crashed", death=Death("signal", 9), black_box=BlackBox("lines", "stack")
)
IF_CANCELLED: Final = IfCancelled(OutcomeKind.CANCELLED, "cancel_requested")
REQUEST: Final = bytes(32)
DESK: Final = Lane("desk", Priority.HIGH)
"""What is due in it needs places and a window, and not all get theirs."""


class Limits(NamedTuple):
    """Who has which key and who holds what, besides the scene; jobs as they stand there."""

    live: JobTarget
    """It waits, and has the active key ``a`` and the window key ``w``."""
    failed: JobTarget
    """Its active key is nobody's now."""
    robbed: JobTarget
    """It has failed as well, and its active key is the live one's."""
    holder: Attempt
    """It holds the scanner, which has room for one; two wait in its line."""
    in_line: JobTarget
    """The first of them."""
    revoked: Attempt
    """It holds the plotter, has not begun and is asked to stop; one waits in its line."""
    called: JobTarget
    """It was called in for the copier, in whose line another one waits."""


class Stage(NamedTuple):
    """What stands in the store, who made it, and what is there besides the scene."""

    bench: Bench
    scene: Scene
    limits: Limits
    cancelled: list[Attempt]
    """Leased and asked to stop; the last one has not begun."""
    waits: JobTarget
    """A job that is due."""


def staged(bench: Bench) -> Stage:
    """Set the stage in an empty store."""
    scene = set_scene(bench)
    limits = _set_limits(bench)
    bench.dispatch(payload=LARGE)
    cancelled = bench.claim().attempts
    bench.cancel(*(attempt.job_id for attempt in cancelled))
    bench.control(bench.order(ControlAction.LOOK, scene.running.job_id))
    (waiting,) = bench.dispatch()
    return Stage(bench, scene, limits, cancelled, bench.target(waiting))


def _set_limits(bench: Bench) -> Limits:
    """Besides what is answered: a holder whose lease has run out, and one that was called in and is past its expiry,
    each with a line behind it."""
    robbed, failed = (_failed(bench, active_key=key) for key in ("a", "b"))
    keys: dict[str, Any] = {"active_key": "a", "window_key": "w", "window_ms": 3_600_000, "fingerprint": REQUEST}
    (live,) = bench.dispatch(delay_ms=3_600_000, **keys)
    holder, (in_line, _) = _crowd(bench, "scanner", 2)
    revoked, _ = _crowd(bench, "plotter", 1, payload=LARGE)
    bench.cancel(revoked.job_id)
    former, (called, _) = _crowd(bench, "copier", 2)
    bench.succeed(former)
    former, _ = _crowd(bench, "shredder", 1, expires_in_ms=1)
    low = Lane("shredder", Priority.LOW)
    bench.dispatch(lane=low, scopes=(resource("shredder"),))
    assert bench.claim(lanes=[low]).parked == 1
    bench.succeed(former)
    _crowd(bench, "binder", 1, lease_ms=1)
    bench.clock.advance_ms(1)
    bench.dispatch(lane=DESK, scopes=(resource("stapler"), resource("glue", 2)), active_key="c")
    bench.dispatch(lane=DESK, scopes=(resource("stapler"),))
    bench.dispatch(lane=DESK, scopes=(resource("glue", 2),))
    bench.dispatch(2, lane=DESK, rates=(window("post", 1),))
    target = bench.target
    return Limits(target(live), target(failed), target(robbed), holder, target(in_line), revoked, target(called))


def _failed(bench: Bench, **changes: Any) -> bytes:
    lane = Lane("archive", Priority.HIGH)
    (job_id,) = bench.dispatch(lane=lane, **changes)
    (attempt,) = bench.claim(lanes=[lane]).attempts
    bench.settle(attempt, FAILURE, JobState.FAILED, code="executions_exhausted")
    return job_id


def _crowd(
    bench: Bench, key: str, waiting: int, *, lease_ms: int = LEASE_MS, **changes: Any
) -> tuple[Attempt, list[bytes]]:
    """A job that holds a resource with room for one, and the jobs in its line; all in a queue of its name."""
    needs = {"lane": Lane(key, Priority.HIGH), "scopes": (resource(key),), **changes}
    _, *line = bench.dispatch(1 + waiting, **needs)
    claim = bench.claim(lanes=[needs["lane"]], lease_ms=lease_ms)
    (holder,) = claim.attempts
    assert claim.parked == waiting
    return holder, line


def decided(attempt: Attempt) -> Settlement:
    """What recovery writes."""
    abandoned = Outcome(OutcomeKind.ABANDONED, code="lease_lost")
    return Settlement(attempt, abandoned, JobState.RETRYING, delay_ms=0, if_cancelled=IF_CANCELLED)


def _settlements(stage: Stage) -> list[Settlement]:
    failed = Settlement(stage.scene.lapsed, CRASH, JobState.RETRYING, "executor_crashed", 1_000, IF_CANCELLED)
    return [
        Settlement(stage.scene.running, SUCCESS, JobState.SUCCEEDED),
        failed,
        msgspec.structs.replace(failed, attempt=stage.cancelled[0]),
    ]


def _report(stage: Stage) -> Report:
    """All that a worker can tell at once."""
    running = stage.scene.running
    return stage.bench.report(
        executors=[ExecutorActivity(number=1, pool="main", phase="handle", job_id=running.job_id)],
        marks=[Mark(stage.cancelled[0].job, stage.cancelled[0].claim_token, stage.bench.clock.now_ms())],
        stacks=[StackAnswer(running.attempt_id, "File …")],
    )


def _keyed(bench: Bench) -> list[Command]:
    """One that finds a job by both keys, one by the window's alone, and one that is new and brings new limits."""
    keys: dict[str, Any] = {"window_key": "w", "window_ms": 3_600_000, "fingerprint": REQUEST}
    needs = {"scopes": (resource("scanner"), resource("press")), "rates": (window("post", 1), window("parcels", 9))}
    new = {**keys, "active_key": "d", "window_key": "v"}
    return [bench.command(active_key="a", **keys), bench.command(**keys), bench.command(**new, **needs)]


def acts(stage: Stage, *further: Command) -> dict[str, Make]:
    """Each act of the store; some in more ways than one: those that say so meet limits or keys, the others do not, but
    for the sweeps, which meet all there is.

    Args:
        stage: what is in the store.
        further: what is dispatched as well.
    """
    return {**_acts_of_work(stage, further), **_acts_of_people(stage), **_reads(stage)}


def _acts_of_work(stage: Stage, further: tuple[Command, ...]) -> dict[str, Make]:
    bench, scene, limits, cancelled, _ = stage
    commands, keyed = [bench.command(), *further, bench.command()], _keyed(bench)
    by_hand = [bench.command(scopes=(resource("press"),))]
    note = AuditNote(actor=ACTOR, reason="the customer called")
    needs = [capped(HIGH.queue, 3), resource("scanner", 2)]
    plan, judged = bench.plan(), bench.plan(lanes=[DESK])
    batch, told, renewed = _settlements(stage), _report(stage), held(scene.running, scene.lapsed)
    plain, freed = ([Settlement(attempt, SUCCESS, JobState.SUCCEEDED)] for attempt in (scene.running, limits.holder))
    return {
        "dispatch": lambda store: store.dispatch(commands),
        "dispatch, keyed": lambda store: store.dispatch(keyed),
        "dispatch, by hand": lambda store: store.dispatch(by_hand, note=note),
        "resolve": lambda store: store.resolve(APPLICATION, scene.dispatched.operation_id),
        "register": lambda store: store.register(APPLICATION, [HIGH, NEW_LANE], frozenset({NEW_KIND})),
        "register, capped": lambda store: store.register(APPLICATION, [MEDIUM], frozenset({BUILD}), needs),
        "claim": lambda store: store.claim(plan),
        "claim, judged": lambda store: store.claim(judged),
        "begin": lambda store: store.begin(scene.reserved),
        "begin, cancelled": lambda store: store.begin(cancelled[-1]),
        "begin, cancelled and freeing": lambda store: store.begin(limits.revoked),
        "release": lambda store: store.release([scene.running, scene.reserved, cancelled[0]]),
        "release, freeing": lambda store: store.release([limits.holder, limits.revoked]),
        "settle": lambda store: store.settle(batch),
        "settle, numbers alone": lambda store: store.settle(plain),
        "settle, freeing": lambda store: store.settle(freed),
        "renew": lambda store: store.renew(told, renewed, LEASE_MS, RECOVERY_MS),
        "recover": lambda store: store.recover(APPLICATION, decided, 100),
        "recover, of a worker": lambda store: store.recover(APPLICATION, decided, 100, worker=bench.worker),
        "expire": lambda store: store.expire(APPLICATION, 100),
        "tend": lambda store: store.tend(APPLICATION, None, 100),
        "depart": lambda store: store.depart(bench.presence()),
    }


def _acts_of_people(stage: Stage) -> dict[str, Make]:
    bench, scene, limits, _, waits = stage
    cancel = bench.order(ControlAction.CANCEL, waits, scene.targets[scene.running.job_id])
    cancel_limited = bench.order(ControlAction.CANCEL, limits.live, limits.in_line, limits.called)
    retry = bench.order(ControlAction.RETRY, scene.targets[scene.failed])
    retry_keyed = bench.order(ControlAction.RETRY, limits.robbed, limits.failed)
    rerun = bench.order(ControlAction.RERUN, scene.targets[scene.succeeded])
    look = bench.order(ControlAction.LOOK, scene.targets[scene.running.job_id])
    pause = bench.steering(SteerAction.PAUSE, LimitKind.QUEUE, HIGH.queue, expected_revision=0)
    resume = bench.steering(SteerAction.RESUME, LimitKind.QUEUE, INVOICES.queue, expected_revision=1)
    raised = {"capacity": 2, "expected_revision": 1}
    payload = bench.showing(Secret.PAYLOAD, scene.failed)
    stack = bench.showing(Secret.STACK, scene.running.job_id, attempt_id=scene.running.attempt_id)
    capacity = bench.steering(SteerAction.SET_CAPACITY, LimitKind.RESOURCE, "scanner", **raised)
    return {
        "cancel": lambda store: store.control(cancel),
        "cancel, limited": lambda store: store.control(cancel_limited),
        "retry": lambda store: store.control(retry),
        "retry, keyed": lambda store: store.control(retry_keyed),
        "rerun": lambda store: store.control(rerun),
        "look": lambda store: store.control(look),
        "pause": lambda store: store.steer(pause),
        "resume": lambda store: store.steer(resume),
        "set_capacity": lambda store: store.steer(capacity),
        "reveal": lambda store: store.reveal(payload),
        "reveal, of an attempt": lambda store: store.reveal(stack),
    }


def _reads(stage: Stage) -> dict[str, Make]:
    _, scene, limits, _, _ = stage
    return {
        "jobs": lambda store: store.jobs(APPLICATION, JobFilter(states=LEASED_STATES), None, None, 100),
        "runs": lambda store: store.runs(APPLICATION, BUILD.name, None, 100),
        "backlogs": lambda store: store.backlogs(APPLICATION),
        "names": lambda store: store.names(APPLICATION),
        "audited": lambda store: store.audited(APPLICATION, AuditFilter(), None, 100),
        "events": lambda store: store.events(APPLICATION, None, 100),
        "audit": lambda store: store.audit(APPLICATION, None, 100),
        "workers": lambda store: store.workers(APPLICATION),
        "stack": lambda store: store.stack(APPLICATION, scene.running.attempt_id),
        "why": lambda store: store.why(APPLICATION, limits.in_line.job_id),
        "queues": lambda store: store.queues(APPLICATION),
        "scopes": lambda store: store.scopes(APPLICATION, LimitKind.RESOURCE, None, 100),
        "rates": lambda store: store.rates(APPLICATION, LimitKind.RESOURCE, None, 100),
        "standing": lambda store: store.standing(APPLICATION),
        "job": lambda store: store.job(APPLICATION, scene.running.job_id),
        "outlook": lambda store: store.outlook(APPLICATION, [*LANES, INVOICES, DESK], KINDS),
        "costliest": lambda store: store.costliest(APPLICATION, "cpu_us", 10),
    }
