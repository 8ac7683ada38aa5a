"""What limits throughput now: each answer, and where it stops being the answer."""

from typing import Any

from runwick.contracts.activity import ExecutorActivity, WorkerRecord
from runwick.contracts.administration import Admission
from runwick.contracts.attempts import WorkerPresence
from runwick.contracts.listing import Backlog, RunRecord
from runwick.management.bodies import LimitingBody
from runwick.management.desk.limiting import OVER_MS, WAITED_MS, Flow, HostSeen, limiting
from runwick.management.desk.machine import Machine
from runwick.management.desk.troubles import QueueSight
from tests.management.runs import MIB, NOW_MS, a_run

QUIET = HostSeen(supervisor_cores=0.1, idle=0.5)


def worker(executors: int = 2, host: str = "one", **doing: Any) -> WorkerRecord:
    presence = WorkerPresence(
        worker=b"w" * 16, application="shop", host=host, process=7, queues=("images",), executors=executors
    )
    busy = [ExecutorActivity(number=1, pool="main", phase="handle", **doing)] if doing else []
    return WorkerRecord(presence=presence, seen_at_ms=NOW_MS, departed_at_ms=None, told_at_ms=NOW_MS, executors=busy)


def runs(occupied: float, cores: float) -> list[RunRecord]:
    """Runs that kept so many executors, and so many cores, busy over the last `OVER_MS`."""
    each_ms = OVER_MS // 10
    return [
        a_run(
            number,
            ended_at_ms=NOW_MS - number * each_ms,
            begun_at_ms=NOW_MS - (number + 1) * each_ms,
            wall_us=round(occupied * each_ms * 1_000),
            cpu_user_us=round(cores * each_ms * 1_000),
            cpu_system_us=0,
        )
        for number in range(10)
    ]


def queue(*, is_paused: bool = False, is_served: bool = True, waits: bool = False, **changes: int) -> QueueSight:
    counts = {"due": 0, "later": 0, "blocked": 0, "leased": 0, **changes}
    since_ms = NOW_MS - WAITED_MS if waits else None
    return QueueSight(Backlog(queue="images", oldest_due_at_ms=since_ms, **counts), is_paused, is_served)


def judged(occupied: float = 0.2, cores: float = 0.1, **changes: Any) -> LimitingBody:
    values: dict[str, Any] = {
        "now_ms": NOW_MS,
        "admission": Admission.OPEN,
        "queues": (),
        "workers": [worker()],
        "runs": runs(occupied, cores),
        "machine": Machine(cores=2, memory_bytes=8192 * MIB),
    }
    return limiting(Flow(**{**values, **changes}))


def test_without_workers_nothing_else_is_said() -> None:
    found = judged(workers=())
    assert (found.factor, found.facts[0]) == ("no_worker", "supervisor: its share of a core is not recorded")
    assert judged(admission=Admission.DRAIN).factor == "admission"


def test_handlers_that_fill_the_cores_are_the_limit() -> None:
    found = judged(occupied=1.9, cores=1.7)
    assert (found.factor, found.text) == (
        "handlers",
        "Handlers are the limit: they use 1.7 of 2 cores. Quicker handlers or more cores help; more executors do not.",
    )
    assert found.facts[0] == "handlers: 95 % of 2 executors busy, cores in them 1.70 of 2, over 10.0 s"
    alone = judged(occupied=1.0, cores=0.9, workers=[worker(executors=1)])
    assert alone.text.endswith("every executor computes, on 0.9 of 2 cores. One executor for each core helps.")
    assert judged(occupied=1.9, cores=1.7, workers=[worker(), worker(host="two")]).factor != "handlers"


def test_executors_full_of_handlers_that_wait_are_too_few() -> None:
    assert judged(occupied=1.6, cores=0.2).factor == "waiting_handlers"
    assert judged(occupied=1.5, cores=0.2).factor == "no_jobs"


def test_runs_under_way_count_as_far_as_they_have_come() -> None:
    since_ms = NOW_MS - 2 * OVER_MS
    busy = worker(1, job_id=b"j" * 16, attempt_id=b"a" * 16, begun_at_ms=since_ms, cpu_us=1_000)
    assert judged(runs=(), workers=[busy]).factor == "waiting_handlers"


def test_between_waiting_jobs_and_idle_executors_lies_supervisor_or_store() -> None:
    waiting = [queue(due=9, waits=True)]
    assert judged(queues=waiting).factor == "supervisor_or_store"
    assert judged(queues=waiting, host=HostSeen(0.8, 0.4)).factor == "supervisor"
    found = judged(queues=waiting, host=HostSeen(0.79, 0.4))
    assert found.factor == "store"
    assert "Executors are idle for 90 % of their time although jobs are due" in found.text
    assert "supervisor: 79 % of a core just now, all of its threads together" in found.facts
    assert judged(queues=[queue(due=9)], host=QUIET).factor == "no_jobs", "they have not waited long"
    assert judged(queues=[queue(due=9, waits=True, is_served=False)], host=QUIET).factor == "unserved"


def test_a_machine_that_others_use_is_the_limit() -> None:
    full = HostSeen(0.3, 0.1)
    assert judged(queues=[queue(due=9, waits=True)], host=full).factor == "machine"
    assert judged(occupied=1.9, cores=0.4, host=full).factor == "machine"
    assert judged(occupied=1.9, cores=1.7, host=full).factor == "handlers"
    assert judged(host=full).factor == "no_jobs", "nothing waits"


def test_starving_executors_are_told_where_the_jobs_are() -> None:
    found = judged(queues=[queue(blocked=3), queue(later=4), queue(is_paused=True, due=5)])
    assert (found.factor, found.text) == (
        "limits",
        "Limits are the limit: 3 jobs are in line for room that they have set, while executors are idle.",
    )
    paused = judged(queues=[queue(later=4), queue(is_paused=True, due=5, waits=True)])
    assert (paused.factor, paused.text) == ("paused", "Executors are idle while 5 jobs are in paused queues.")
    assert paused.facts[-1] == "waiting: 5 due, 0 in line for limits, 5 in paused queues"
    assert judged(queues=[queue(is_served=False, due=1)]).text.endswith(
        "while 1 job is in queues that no living worker serves."
    )
    assert judged(queues=[queue(later=4)]).text == "Executors are idle: 4 jobs are not due yet, and nothing else waits."
    assert judged().factor == "no_jobs"


def test_how_late_settlements_arrive_is_a_fact_where_clocks_agree() -> None:
    late = [
        a_run(number, begun_at_ms=NOW_MS - 100, ended_at_ms=NOW_MS, wall_us=90_000, cpu_user_us=0, cpu_system_us=0)
        for number in range(5)
    ]
    assert any("settled within 10 ms" in fact for fact in judged(runs=late).facts)
    assert not any("settled within" in fact for fact in judged(runs=late[:4]).facts)
    apart = [a_run(number, begun_at_ms=NOW_MS, ended_at_ms=NOW_MS - 9, wall_us=1) for number in range(5)]
    assert not any("settled within" in fact for fact in judged(runs=apart).facts)
