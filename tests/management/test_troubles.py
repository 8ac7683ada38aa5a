"""Each rule about what is wrong: where it begins to hold, and that it holds no longer."""

from typing import Any

from runwick.contracts.activity import WorkerRecord
from runwick.contracts.administration import WORKER_ALIVE_MS, Admission
from runwick.contracts.attempts import WorkerPresence
from runwick.contracts.listing import COUNTED_MAX, Backlog, RunRecord
from runwick.management.desk.troubles import (
    ALL_FAILED_MIN,
    BEHIND_MS,
    COMPARED,
    COMPARED_MIN,
    DEATHS_MIN,
    RECENT_MS,
    QueueSight,
    Sight,
    troubles_of,
)
from tests.management.runs import NOW_MS, a_run


def codes(**changes: Any) -> list[str]:
    """What is wrong where nothing is, but for these."""
    return [trouble.code for trouble in troubles_of(sight(**changes))]


def sight(**changes: Any) -> Sight:
    values: dict[str, Any] = {"now_ms": NOW_MS, "admission": Admission.OPEN, "queues": (), "workers": (), "runs": ()}
    return Sight(**{**values, **changes})


def queue(*, is_paused: bool = False, is_served: bool = True, **changes: Any) -> list[QueueSight]:
    values: dict[str, Any] = {
        "queue": "images",
        "due": 0,
        "later": 0,
        "blocked": 0,
        "leased": 0,
        "oldest_due_at_ms": None,
    }
    return [QueueSight(Backlog(**{**values, **changes}), is_paused, is_served)]


def failing(count: int, of: int, first: int = 0) -> list[RunRecord]:
    """So many failed runs of so many."""
    return [a_run(first + number, outcome="failed" if number < count else "succeeded") for number in range(of)]


def test_nothing_is_wrong_with_work_that_flows() -> None:
    assert codes(queues=queue(due=5, leased=2, oldest_due_at_ms=NOW_MS - BEHIND_MS), runs=failing(1, 100)) == []


def test_a_queue_is_behind_when_its_oldest_waits_too_long() -> None:
    late: dict[str, Any] = {"due": 5, "oldest_due_at_ms": NOW_MS - BEHIND_MS - 1}
    assert codes(queues=queue(**late)) == ["queue_behind"]
    assert codes(queues=queue(**late, is_paused=True)) == ["queue_paused"]
    assert codes(queues=queue(**late, is_served=False)) == ["no_worker"]
    [trouble] = troubles_of(sight(queues=queue(**{**late, "due": COUNTED_MAX})))
    assert trouble.text.endswith("has waited 1 min 0 s, and 10,000 jobs or more are due.")
    assert (trouble.queue, trouble.severity) == ("images", "error")


def test_a_queue_with_due_jobs_is_served_by_somebody() -> None:
    assert codes(queues=queue(due=1, is_served=False)) == ["no_worker"]
    (trouble,) = troubles_of(sight(queues=queue(due=1, blocked=2, is_served=False)))
    assert trouble.text == "No living worker serves queue images, where 3 jobs are waiting."
    assert codes(queues=queue(blocked=1, is_served=False)) == ["no_worker"]
    assert codes(queues=queue(blocked=1, is_served=False, is_paused=True)) == ["queue_paused"]
    assert codes(queues=queue(later=1, is_served=False)) == []


def test_a_paused_queue_is_a_trouble_while_something_waits_in_it() -> None:
    for waits in ("due", "later", "blocked"):
        assert codes(queues=queue(is_paused=True, **dict[str, Any]({waits: 1}))) == ["queue_paused"]
    assert codes(queues=queue(is_paused=True, leased=1)) == []


def test_executors_that_die_are_counted_by_type() -> None:
    dead = [a_run(n, outcome="crashed", death="out_of_memory") for n in range(DEATHS_MIN)]
    done = [a_run(n) for n in range(DEATHS_MIN, 100)]
    [trouble] = troubles_of(sight(runs=[*dead, *done]))
    assert trouble.text == "Executors die under image.thumbnail: 3 of its last 100 runs (3 killed for memory)."
    assert (trouble.code, trouble.name) == ("executors_dying", "image.thumbnail")
    assert codes(runs=[*dead[1:], *done]) == []
    old = [a_run(n, outcome="crashed", death="signal", ended_at_ms=NOW_MS - RECENT_MS) for n in range(DEATHS_MIN)]
    assert codes(runs=old) == []


def test_failures_rise_against_the_runs_before() -> None:
    def compared(last: int, before: int) -> list[str]:
        return codes(runs=[*failing(last, COMPARED), *failing(before, COMPARED, COMPARED)])

    assert compared(10, 5) == ["failures_rising"]
    assert compared(5, 0) == ["failures_rising"]
    assert compared(10, 6) == compared(4, 0) == compared(0, 20) == []
    assert codes(runs=failing(10, COMPARED)) == []
    few = [*failing(10, COMPARED), *failing(0, COMPARED_MIN - 1, COMPARED)]
    assert codes(runs=few) == []
    [trouble] = troubles_of(sight(runs=[*failing(10, COMPARED), *failing(2, COMPARED, COMPARED)]))
    text = "Failures of image.thumbnail are rising: 20 % of its last 50 runs, after 4 % of the 50 before."
    assert trouble.text == text


def test_what_mostly_fails_is_a_trouble_whether_it_rises_or_not() -> None:
    assert codes(runs=failing(COMPARED // 2, 2 * COMPARED)) == ["failures_many"]
    assert codes(runs=failing(COMPARED_MIN, COMPARED_MIN)) == ["failures_many"]
    assert codes(runs=failing(COMPARED_MIN - 2, COMPARED_MIN - 1)) == []


def test_of_few_runs_it_is_a_trouble_when_every_one_failed() -> None:
    [trouble] = troubles_of(sight(runs=failing(6, 6)))
    assert trouble.text == "Nothing of image.thumbnail succeeds: 6 of its last 6 runs failed."
    assert (trouble.code, trouble.severity, trouble.name) == ("failures_many", "error", "image.thumbnail")
    assert codes(runs=failing(ALL_FAILED_MIN, ALL_FAILED_MIN)) == ["failures_many"]
    assert codes(runs=failing(COMPARED_MIN - 1, COMPARED_MIN - 1)) == ["failures_many"]
    assert codes(runs=failing(ALL_FAILED_MIN - 1, ALL_FAILED_MIN - 1)) == codes(runs=failing(5, 6)) == []
    old = [a_run(n, outcome="failed", ended_at_ms=NOW_MS - RECENT_MS) for n in range(6)]
    stopped = [a_run(n, outcome="cancelled") for n in range(6)]
    assert codes(runs=old) == codes(runs=stopped) == []


def test_a_closed_application_says_so() -> None:
    for mode, severity in ((Admission.DRAIN, "warning"), (Admission.MAINTENANCE, "error")):
        [trouble] = troubles_of(sight(admission=mode))
        assert (trouble.code, trouble.severity) == ("admission_closed", severity)


def test_a_worker_is_lost_for_an_hour() -> None:
    def lost(silent_ms: int, departed_at_ms: int | None = None) -> list[str]:
        presence = WorkerPresence(
            worker=bytes(16), application="shop", host="host-1", process=7, queues=["images"], executors=2
        )
        record = WorkerRecord(
            presence=presence,
            seen_at_ms=NOW_MS - silent_ms,
            departed_at_ms=departed_at_ms,
            told_at_ms=None,
            executors=(),
        )
        return codes(workers=[record])

    assert lost(WORKER_ALIVE_MS) == lost(RECENT_MS - 1) == ["worker_lost"]
    assert lost(WORKER_ALIVE_MS - 1) == lost(RECENT_MS) == lost(WORKER_ALIVE_MS, NOW_MS) == []


def test_errors_come_before_warnings() -> None:
    wrong = sight(
        admission=Admission.DRAIN,
        queues=[*queue(is_paused=True, due=1), *queue(queue="mails", due=1, is_served=False)],
        runs=failing(COMPARED, COMPARED),
    )
    assert [trouble.code for trouble in troubles_of(wrong)] == [
        "no_worker",
        "failures_many",
        "admission_closed",
        "queue_paused",
    ]
