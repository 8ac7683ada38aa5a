"""What only the PostgreSQL store can show: its rows, their order, and what other transactions mean to it."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any

import psycopg
import pytest

from runwick.contracts.activity import Mark
from runwick.contracts.attempts import Attempt, Kind, Lane
from runwick.contracts.controls import ControlAction, ControlReply
from runwick.contracts.errors import InvalidArgument, StoreUnavailable
from runwick.contracts.identity import id_text
from runwick.contracts.outcomes import Answer, BlackBox, Death, IfCancelled, Outcome, OutcomeKind, Settlement
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import JobState, Priority
from runwick.contracts.stores import Act, Store
from runwick.policy.recover import recover
from runwick.policy.settle import settle
from runwick.stores.postgres.lease import PRESENCE_KEPT_MS
from runwick.stores.postgres.leased import attempt_ids
from tests.ambient import FakeDice
from tests.conformance.ground import (
    APPLICATION,
    FAILURE,
    HIGH,
    LARGE,
    LEASE_MS,
    LOW,
    SUCCESS,
    USAGE,
    Bench,
    held,
    ids_of,
    resource,
)
from tests.conformance.places import Database
from tests.postgres.asking import eventually


@pytest.fixture
def postgres_bench(postgres_database: Database) -> Iterator[Bench]:
    bench = postgres_database.bench()
    yield bench
    bench.store.close()


@contextmanager
def somebody_holds(database: Database, *attempts: Attempt) -> Iterator[None]:
    """Another transaction, perhaps a user's own, has locked the rows of these jobs."""
    with psycopg.connect(database.url) as connection:
        ids = [id_text(attempt.job_id) for attempt in attempts]
        connection.execute("SELECT job FROM runwick.hot WHERE job = ANY (%s::uuid[]) FOR UPDATE", (ids,))
        yield


@pytest.mark.parametrize("scopes", [(), (resource("printer"),)], ids=["plain", "judged"])
@pytest.mark.parametrize("others", [0, 1, 3])
def test_a_claim_keeps_the_order_of_its_lanes_however_the_server_joins(
    postgres_bench: Bench, postgres_database: Database, others: int, scopes: Any
) -> None:
    """Statistics of a table with a handful of rows make the server read that first, and the claim's rows after it."""
    postgres_bench.dispatch(others, delay_ms=LEASE_MS)
    low = postgres_bench.dispatch(lane=LOW, scopes=scopes)
    high = postgres_bench.dispatch(lane=HIGH)
    postgres_database.execute("ANALYZE runwick.hot, runwick.job")
    with closing(postgres_bench.another()) as store:
        attempts = store.run(store.claim(postgres_bench.plan())).attempts
        assert ids_of(attempts) == [*high, *low]
        attempt_ids_in_order = [attempt.attempt_id for attempt in attempts]
        assert attempt_ids_in_order == sorted(attempt_ids_in_order)


class TestRowsThatAreHeld:
    """Nothing waits for them, and nothing is decided about them."""

    def test_a_settlement_is_answered_row_by_row(self, postgres_bench: Bench, postgres_database: Database) -> None:
        postgres_bench.dispatch(3)
        attempts = postgres_bench.claim().attempts
        batch = [Settlement(attempt, SUCCESS, JobState.SUCCEEDED) for attempt in attempts]
        with somebody_holds(postgres_database, attempts[1]):
            answers = postgres_bench.run(postgres_bench.store.settle(batch))
            assert answers == [Answer.DONE, Answer.LOCKED, Answer.DONE]
        assert postgres_bench.job(attempts[1].job_id).state is JobState.RUNNING
        assert postgres_bench.run(postgres_bench.store.settle(batch)) == [Answer.DONE] * 3

    def test_a_row_that_changed_since_its_claim_began_is_taken_once_by_that_or_the_next_one(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        postgres_bench.succeed(postgres_bench.claimed())
        jobs = postgres_bench.dispatch(3)
        found: list[Attempt] = []
        claim = threading.Thread(target=lambda: found.extend(postgres_bench.claim().attempts))
        with psycopg.connect(postgres_database.url) as operator:
            operator.execute("LOCK TABLE runwick.application IN ACCESS EXCLUSIVE MODE")  # it waits at the gate
            claim.start()
            eventually(
                lambda: postgres_database.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                ),
                "the claim has begun",
            )
            change = "UPDATE runwick.hot SET revision = revision + 1 WHERE job = %s::uuid"
            postgres_database.execute(change, id_text(jobs[1]))
        claim.join()
        attempts = [*found, *postgres_bench.claim().attempts]  # which of them has it differs between servers
        assert {jobs[0], jobs[2]} <= {*ids_of(found)}
        assert sorted(ids_of(attempts)) == sorted(jobs)
        for attempt in attempts:
            assert postgres_bench.succeed(attempt) is Answer.DONE
            (record,) = postgres_bench.job(attempt.job_id).attempts
            assert (record.number, record.attempt_id) == (1, attempt.attempt_id)

    def test_a_renewal_renews_the_others(self, postgres_bench: Bench, postgres_database: Database) -> None:
        postgres_bench.dispatch(3)
        attempts = postgres_bench.claim().attempts
        postgres_bench.release(attempts[2])
        with somebody_holds(postgres_database, attempts[0]):
            renewal = postgres_bench.store.renew(postgres_bench.report(), held(*attempts), 2 * LEASE_MS, 1_000)
            beat = postgres_bench.run(renewal)
        assert (list(beat.locked), list(beat.lost)) == ([attempts[0].job], [attempts[2].job])
        postgres_bench.clock.advance_ms(LEASE_MS)
        assert ids_of(postgres_bench.recover()) == [attempts[0].job_id]

    def test_a_release_frees_the_others(self, postgres_bench: Bench, postgres_database: Database) -> None:
        postgres_bench.dispatch(2)
        attempts = postgres_bench.claim().attempts
        with somebody_holds(postgres_database, attempts[0]):
            assert postgres_bench.release(*attempts) == [Answer.LOCKED, Answer.DONE]
        assert postgres_bench.release(*attempts) == [Answer.DONE, Answer.NOT_YOURS]

    def test_a_begin_says_that_it_can_be_tried_again(self, postgres_bench: Bench, postgres_database: Database) -> None:
        attempt = postgres_bench.claimed(payload=LARGE)
        with somebody_holds(postgres_database, attempt), pytest.raises(StoreUnavailable, match="holds the row of job"):
            postgres_bench.run(postgres_bench.store.begin(attempt))
        assert postgres_bench.job(attempt.job_id).executions == 0
        assert postgres_bench.run(postgres_bench.store.begin(attempt)) is not None

    def test_a_claim_takes_the_others(self, postgres_bench: Bench, postgres_database: Database) -> None:
        job_ids = postgres_bench.dispatch(3)
        first = postgres_bench.claim(free=1).attempts
        postgres_bench.release(*first)
        with somebody_holds(postgres_database, *first):
            assert ids_of(postgres_bench.claim().attempts) == job_ids[1:]
        assert ids_of(postgres_bench.claim().attempts) == job_ids[:1]

    def test_a_recovery_recovers_the_others(self, postgres_bench: Bench, postgres_database: Database) -> None:
        job_ids = postgres_bench.dispatch(3)
        attempts = postgres_bench.claim().attempts
        postgres_bench.clock.advance_ms(LEASE_MS)
        with somebody_holds(postgres_database, attempts[0]):
            recovering = postgres_bench.store.recover(
                APPLICATION, lambda attempt: Settlement(attempt, FAILURE, JobState.RETRYING), 100
            )
            assert postgres_bench.run(recovering) == 2
        assert postgres_bench.job(job_ids[0]).state is JobState.RUNNING
        assert ids_of(postgres_bench.recover()) == job_ids[:1]

    def test_a_recovery_of_a_dead_worker_recovers_the_others(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        postgres_bench.dispatch(3)
        attempts = postgres_bench.claim().attempts
        recovering = postgres_bench.store.recover(
            APPLICATION,
            lambda attempt: Settlement(attempt, FAILURE, JobState.RETRYING),
            100,
            worker=postgres_bench.worker,
        )
        with somebody_holds(postgres_database, attempts[1]):
            assert postgres_bench.run(recovering) == 2
        assert postgres_bench.run(recovering) == 1

    def test_a_cancel_writes_nothing_and_says_that_it_can_be_tried_again(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        job_ids = postgres_bench.dispatch(3)
        (attempt,) = postgres_bench.claim(free=1).attempts
        command = postgres_bench.order(ControlAction.CANCEL, *job_ids)
        with (
            somebody_holds(postgres_database, attempt),
            pytest.raises(StoreUnavailable, match="that is to be cancelled; nothing was written"),
        ):
            postgres_bench.control(command)
        assert postgres_bench.audit() == []
        answers = postgres_bench.control(command).answers
        assert [answer.cancel_requested for answer in answers] == [True, False, False]

    def test_an_expiry_closes_the_others(self, postgres_bench: Bench, postgres_database: Database) -> None:
        job_ids = postgres_bench.dispatch(3, expires_in_ms=10)
        (first,) = postgres_bench.claim(free=1).attempts
        postgres_bench.release(first)
        postgres_bench.clock.advance_ms(10)
        with somebody_holds(postgres_database, first):
            assert postgres_bench.run(postgres_bench.store.expire(APPLICATION, 100)) == 2
        assert postgres_bench.job(job_ids[0]).state is JobState.PENDING
        assert postgres_bench.run(postgres_bench.store.expire(APPLICATION, 100)) == 1


class TestTwoAtOnce:
    def test_a_dispatch_that_somebody_is_just_sending_answers_the_same(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        """The first sending is not committed yet, so that the second one's snapshot cannot show it."""
        known, command = postgres_bench.command(), postgres_bench.command()
        postgres_bench.run(postgres_bench.store.dispatch([known]))
        answers: list[Any] = []
        with psycopg.connect(postgres_database.url) as first:
            first.execute(
                "INSERT INTO runwick.job (id, created_at_ms, operation_id, application, lane, kind, policy, "
                "payload_bytes, payload) SELECT %s::uuid, created_at_ms, %s::uuid, application, lane, kind, policy, "
                "payload_bytes, payload FROM runwick.job",
                (id_text(command.job_id), id_text(command.operation_id)),
            )
            act = postgres_bench.store.dispatch([command])
            second = threading.Thread(target=lambda: answers.append(postgres_bench.run(act)))
            second.start()
            eventually(
                lambda: postgres_database.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                ),
                "the second sending waits for the first",
            )
        second.join()
        assert [receipt.job for receipt in answers[0]] == [command.job_id]
        assert postgres_database.execute("SELECT count(*) FROM runwick.hot") == [(1,)]

    def test_many_claims_at_once_share_no_job_and_leave_none(self, postgres_bench: Bench) -> None:
        for _ in range(4):
            postgres_bench.dispatch(100)
        others = [postgres_bench.another() for _ in range(4)]
        taken: list[bytes] = []

        def work(store: Store) -> None:
            misses = 0
            while misses < 3:  # in the end, what is left may be in the hands of others for a moment
                attempts = store.run(store.claim(postgres_bench.plan(free=7))).attempts
                taken.extend(ids_of(attempts))
                misses += not attempts

        threads = [threading.Thread(target=work, args=(store,)) for store in others]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for store in others:
            store.close()
        assert (len(taken), len(set(taken))) == (400, 400)

    @staticmethod
    def insist(act: Callable[[Sequence[Any]], Act[list[Answer]]], bench: Bench, items: Sequence[Any]) -> None:
        """Send again what was locked, as a worker does."""
        while items:
            answers = bench.run(act(items))
            items = [item for item, answer in zip(items, answers, strict=True) if answer is Answer.LOCKED]

    def test_f088_workers_that_do_everything_at_once_meet_no_deadlock(self, postgres_bench: Bench) -> None:
        """Each act locks rows without waiting, so none can wait for another in a circle."""
        postgres_bench.dispatch(60)
        errors: list[BaseException] = []

        def work(bench: Bench) -> None:
            try:
                for turn in range(12):
                    attempts = bench.claim(free=8).attempts
                    bench.renew(*attempts[::-1])
                    self.insist(bench.store.release, bench, attempts[turn % 3 :: 3])
                    settlements = [
                        Settlement(attempt, FAILURE, JobState.RETRYING, delay_ms=turn % 2 or None)
                        for attempt in attempts[::-1]
                    ]
                    self.insist(bench.store.settle, bench, settlements)
                    bench.recover()
            except BaseException as error:
                errors.append(error)

        others = [postgres_bench.another() for _ in range(2)]
        benches = [postgres_bench]
        benches += [
            Bench("postgres", other, postgres_bench.clock, postgres_bench.administration, postgres_bench.another)
            for other in others
        ]
        threads = [threading.Thread(target=work, args=(bench,)) for bench in benches]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for other in others:
            other.close()
        assert errors == []
        postgres_bench.clock.advance_ms(1)
        found: list[bytes] = []

        def found_all() -> bool:
            found.extend(ids_of(postgres_bench.claim(free=128).attempts))
            return len(found) >= 60

        eventually(found_all, "a sweep to find what others gave back before the mark")
        assert len(set(found)) == len(found) == 60

    def test_of_two_that_open_a_generation_the_second_sees_the_first_even_when_that_one_has_ended(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        """The second looked before the first had begun, and waits for it at the job's key. When it may go on, the job
        has lived and ended again, so that there is nothing left at that key."""
        attempt = postgres_bench.claimed()
        postgres_bench.settle(attempt, FAILURE, JobState.FAILED)
        command = postgres_bench.order(ControlAction.RETRY, attempt.job_id)
        answers: list[ControlReply] = []
        job = id_text(attempt.job_id)
        with psycopg.connect(postgres_database.url) as first:
            first.execute(
                "INSERT INTO runwick.hot (job, due_at_ms, application, lane, kind, payload_bytes, generation, "
                "revision, max_executions) SELECT id, 0, application, lane, kind, 2, 2, 4, 3 FROM runwick.job "
                "WHERE id = %s::uuid",
                (job,),
            )
            act = postgres_bench.store.control(command)
            second = threading.Thread(target=lambda: answers.append(postgres_bench.run(act)))
            second.start()
            eventually(
                lambda: postgres_database.execute(
                    "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                ),
                "the second waits for the first",
            )
            first.execute("DELETE FROM runwick.hot")
            first.execute(
                "INSERT INTO runwick.closing (job, generation, application, revision, executions, ended_at_ms, state) "
                "SELECT job, 2, application, 6, 1, 0, 'failed' FROM runwick.closing"
            )
            first.execute(
                "INSERT INTO runwick.audit (at_ms, application, actor, action, job, generation) "
                "SELECT 0, application, 'somebody', 'retry', job, 2 FROM runwick.closing WHERE generation = 2"
            )
        second.join()
        assert [(answer.code, answer.generation) for reply in answers for answer in reply.answers] == [
            ("stale_generation", 2)
        ]
        assert postgres_database.execute("SELECT count(*) FROM runwick.hot") == [(0,)]


class TestMarks:
    def test_what_this_process_gives_back_is_found_at_once(self, postgres_bench: Bench) -> None:
        postgres_bench.dispatch(3)
        postgres_bench.clock.advance_ms(10_000)
        postgres_bench.dispatch(10)
        (early,) = postgres_bench.claim(free=1).attempts
        assert len(postgres_bench.claim(free=4).attempts) == 4
        postgres_bench.release(early)
        assert ids_of(postgres_bench.claim(free=1).attempts) == [early.job_id]
        (again,) = postgres_bench.claim(free=1).attempts
        postgres_bench.retry(again, None)
        assert ids_of(postgres_bench.claim(free=1).attempts) == [again.job_id]

    def test_what_another_process_gives_back_is_found_by_a_sweep(self, postgres_bench: Bench) -> None:
        postgres_bench.dispatch(3)
        postgres_bench.clock.advance_ms(10_000)
        postgres_bench.dispatch(10)
        (early,) = postgres_bench.claim(free=1).attempts
        assert len(postgres_bench.claim(free=4).attempts) == 4
        other = postgres_bench.another()
        other.run(other.release([early]))
        other.close()
        assert early.job_id not in ids_of(postgres_bench.claim(free=2).attempts)
        postgres_bench.clock.advance_ms(1_000)
        assert ids_of(postgres_bench.claim(free=1).attempts) == [early.job_id]

    def test_an_idle_worker_finds_it_with_its_next_claim(self, postgres_bench: Bench) -> None:
        attempt = postgres_bench.claimed()
        postgres_bench.clock.advance_ms(10_000)
        assert postgres_bench.claim().attempts == []
        other = postgres_bench.another()
        other.run(other.release([attempt]))
        other.close()
        assert ids_of(postgres_bench.claim().attempts) == [attempt.job_id]

    @pytest.mark.parametrize(("late_ms", "found"), [(249, True), (300, False)])
    def test_a_commit_may_come_a_little_late(
        self, postgres_bench: Bench, postgres_database: Database, late_ms: int, found: bool
    ) -> None:
        postgres_bench.succeed(postgres_bench.claimed())
        postgres_bench.clock.advance_ms(10_000)
        assert postgres_bench.claim().attempts == []
        in_time, late = postgres_bench.dispatch(2)
        postgres_database.execute(
            "UPDATE runwick.hot SET due_at_ms = due_at_ms - %s WHERE job = %s::uuid", late_ms, id_text(late)
        )
        taken = ids_of(postgres_bench.claim().attempts)
        assert taken == ([late, in_time] if found else [in_time])
        assert ids_of(postgres_bench.claim().attempts) == ([] if found else [late])

    def test_a_thousand_delayed_jobs_of_another_kind_make_a_claim_look_again_when_they_are_due(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        (of_another_kind,) = postgres_bench.dispatch(kind=Kind("reports.build", 2), delay_ms=1_000)
        postgres_bench.dispatch(delay_ms=60_000)
        copies = (
            "INSERT INTO runwick.hot (job, due_at_ms, application, lane, kind, payload_bytes, max_executions) "
            "SELECT gen_random_uuid(), due_at_ms + number, application, lane, kind, payload_bytes, max_executions "
            "FROM runwick.hot CROSS JOIN generate_series(%s::integer, %s::integer) AS number WHERE job = %s::uuid"
        )
        postgres_database.execute(copies, 1, 998, id_text(of_another_kind))
        assert postgres_bench.claim().next_due_in_ms == 60_000
        postgres_database.execute(copies, 999, 5_000, id_text(of_another_kind))
        assert postgres_bench.claim().next_due_in_ms == 1_999


class TestRows:
    def test_positions_number_all_append_only_rows_in_the_order_of_their_writing(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        postgres_bench.dispatch(3)
        first, *others = postgres_bench.claim().attempts
        batch = [Settlement(attempt, SUCCESS, JobState.SUCCEEDED) for attempt in others]
        postgres_bench.run(postgres_bench.store.settle([Settlement(first, FAILURE, JobState.FAILED), *batch]))
        rows = postgres_database.execute(
            "SELECT position, xid::text::bigint, 'job', id FROM runwick.job "
            "UNION ALL SELECT position, xid::text::bigint, 'attempt', job FROM runwick.attempt "
            "UNION ALL SELECT position, xid::text::bigint, 'closing', job FROM runwick.closing ORDER BY 1"
        )
        assert [table for _, _, table, _ in rows] == ["job"] * 3 + ["attempt"] * 3 + ["closing"]
        dispatched, settled = rows[0][1], rows[3][1]
        assert [xid for _, xid, _, _ in rows] == [dispatched] * 3 + [settled] * 4
        # Behind each there is room for the end that an attempt tells.
        assert len({int(str(position)) + told for position, *_ in rows for told in (0, 1)}) == 14

    def test_claims_renewals_and_releases_touch_no_index(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        def updates() -> tuple[object, ...]:
            postgres_database.execute("SELECT pg_stat_clear_snapshot()")
            (row,) = postgres_database.execute(
                "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relid = 'runwick.hot'::regclass"
            )
            return row

        postgres_database.execute("TRUNCATE runwick.hot")  # what earlier tests left dead fills its pages
        before = updates()
        postgres_bench.dispatch(100)  # so many that they fill pages: each must have room for what a claim makes of all
        attempts = postgres_bench.claim(free=100).attempts
        postgres_bench.renew(*attempts, marks=[Mark(attempts[0].job, attempts[0].claim_token, 1)])
        postgres_bench.release(*attempts)
        postgres_bench.store.close()  # statistics are sent when a session ends
        after = (int(str(before[0])) + 300, int(str(before[1])) + 300)
        eventually(lambda: updates() == after, "three hundred updates, all of them beside the row")

    def test_a_narrow_settlement_leaves_what_was_cancelled_to_the_wide_one(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        attempt = postgres_bench.claimed()
        postgres_bench.cancel(attempt.job_id)
        now_ms = postgres_bench.clock.now_ms()
        assert postgres_bench.succeed(attempt) is Answer.DONE
        assert postgres_database.execute("SELECT state, code, cancel_requested_at_ms FROM runwick.closing") == [
            ("succeeded", None, now_ms)
        ]

    def test_a_death_and_its_black_box_are_never_lost_to_a_narrow_settlement(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        for death, black_box in ((Death("signal", 9), None), (None, BlackBox("lines", "stack"))):
            crash = Outcome(OutcomeKind.CRASHED, "executor_crashed", death=death, black_box=black_box)
            attempt = postgres_bench.claimed()
            postgres_bench.settle(attempt, crash, JobState.FAILED, code="poison_job")
            (record,) = postgres_bench.job(attempt.job_id).attempts
            assert (record.death, record.black_box) == (death, black_box)
        assert postgres_database.execute("SELECT count(*) FROM runwick.detail") == [(1,)]

    def test_the_schema_counts_attempt_ids_as_the_library_does(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        firsts = [postgres_bench.ids.ordered() for _ in range(50)]
        firsts += [bytes(6) + b"\x70\x00" + half + b"\xff" * 7 for half in (b"\x80", b"\x9f", b"\xa0", b"\xbf")]
        for first in firsts:
            counted = postgres_database.execute(
                "SELECT runwick.attempt_id(%s::uuid, place)::text FROM generate_series(1, 128) AS place", id_text(first)
            )
            assert [text for (text,) in counted] == [id_text(one) for one in attempt_ids(first, range(1, 129))]

    def test_a_job_leaves_the_hot_table_when_it_ends(self, postgres_bench: Bench, postgres_database: Database) -> None:
        postgres_bench.succeed(postgres_bench.claimed())
        assert postgres_database.execute("SELECT count(*) FROM runwick.hot") == [(0,)]
        assert postgres_database.execute("SELECT count(*), max(revision) FROM runwick.attempt") == [(1, 3)]
        assert postgres_database.execute("SELECT count(*) FROM runwick.closing") == [(0,)]

    def test_a_claim_of_which_nothing_is_left_goes_with_the_next_settlement(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        count = "SELECT count(*) FROM runwick.claim"
        postgres_bench.dispatch(4)
        first, second = postgres_bench.claim(free=2).attempts, postgres_bench.claim(free=2).attempts
        postgres_bench.succeed(first[0])
        postgres_bench.succeed(first[0])  # told twice, it counts once
        postgres_bench.succeed(first[1])
        assert postgres_database.execute(count) == [(2,)]
        postgres_bench.succeed(second[0])
        assert postgres_database.execute(count) == [(1,)]
        postgres_bench.clock.advance_ms(LEASE_MS)
        assert ids_of(postgres_bench.recover()) == [second[1].job_id]
        postgres_bench.recover()
        assert postgres_database.execute(count) == [(0,)]

    def test_costs_and_owner_stand_in_columns_of_their_own(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        postgres_bench.settle(postgres_bench.claimed(), Outcome(OutcomeKind.SUCCEEDED, usage=USAGE), JobState.SUCCEEDED)
        assert postgres_database.execute(
            "SELECT wall_us, cpu_us, rss_peak_bytes, usage::json ->> 6, worker::text, claimed_at_ms "
            "FROM runwick.attempt"
        ) == [(1_200, 1_000, 1 << 33, "12", id_text(postgres_bench.worker), postgres_bench.clock.now_ms())]

    def test_two_processes_learn_each_others_names(self, postgres_bench: Bench) -> None:
        other = postgres_bench.another()
        beside = Bench("postgres", other, postgres_bench.clock, postgres_bench.administration, postgres_bench.another)
        try:
            for here, there, name in ((postgres_bench, beside, "first"), (beside, postgres_bench, "second")):
                kind, lane, policy = Kind(name, 1), Lane(name, Priority.HIGH), JobPolicy(max_crashes=len(name))
                (job_id,) = here.dispatch(kind=kind, lane=lane, policy=policy)
                (attempt,) = there.claim(lanes=[lane], kinds=frozenset({kind})).attempts
                assert (attempt.job_id, attempt.kind, attempt.lane, attempt.policy) == (job_id, kind, lane, policy)
                assert here.succeed(attempt) is Answer.DONE
        finally:
            other.close()

    def test_a_worker_is_seen_says_good_bye_and_is_forgotten_after_a_day(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        def beat() -> None:
            postgres_bench.run(postgres_bench.store.renew(postgres_bench.report(executors=[]), [], LEASE_MS, 1_000))

        seen = "SELECT host, process, queues, executors, seen_at_ms, departed_at_ms FROM runwick.worker"
        beat()
        now_ms = postgres_bench.clock.now_ms()
        assert postgres_database.execute(seen) == [("worker-1", 7, '["reports"]', 2, now_ms, None)]
        postgres_bench.run(postgres_bench.store.depart(postgres_bench.presence()))
        assert postgres_database.execute(seen) == [("worker-1", 7, '["reports"]', 2, now_ms, now_ms)]
        postgres_bench.worker = postgres_bench.ids.ordered()
        postgres_bench.clock.advance_ms(PRESENCE_KEPT_MS)
        beat()
        assert len(postgres_database.execute(seen)) == 2
        postgres_bench.clock.advance_ms(1_000)
        beat()
        now_ms = postgres_bench.clock.now_ms()
        assert postgres_database.execute(seen) == [("worker-1", 7, '["reports"]', 2, now_ms, None)]
        assert postgres_database.execute("SELECT told_at_ms, executors FROM runwick.activity") == [(now_ms, "[]")]


class TestEvents:
    def test_f026_one_that_commits_late_is_told_in_its_place_and_hides_what_came_after_it(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        (early,) = postgres_bench.dispatch()
        with psycopg.connect(postgres_database.url) as slow:
            slow.execute("SELECT pg_current_xact_id()")
            (meanwhile,) = postgres_bench.dispatch()
            page = postgres_bench.run(postgres_bench.store.events(APPLICATION, None, 100))
            assert ([event.job_id for event in page.events], page.more) == ([early], False)
            slow.execute("UPDATE runwick.job SET xid = pg_current_xact_id() WHERE id = %s::uuid", (id_text(meanwhile),))
            (later,) = postgres_bench.dispatch()
            assert postgres_bench.events(after=page.cursor) == []
        rest = postgres_bench.events(after=page.cursor)
        assert [event.job_id for event in rest] == [meanwhile, later]

    def test_the_transaction_counts_before_the_position(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        """A transaction may have drawn positions before another one began, and commit after it."""
        first, second, third = postgres_bench.dispatch(1) + postgres_bench.dispatch(1) + postgres_bench.dispatch(1)
        postgres_database.execute("UPDATE runwick.job SET position = 1 WHERE id = %s::uuid", id_text(third))
        told: list[bytes] = []
        cursor = None
        for _ in range(3):
            page = postgres_bench.run(postgres_bench.store.events(APPLICATION, cursor, 1))
            told += [event.job_id for event in page.events]
            cursor = page.cursor
        assert told == [first, second, third]

    def test_a_cursor_beyond_all_that_was_ever_told_is_of_another_store(self, postgres_bench: Bench) -> None:
        postgres_bench.dispatch()
        (event,) = postgres_bench.events()
        whose, xid, position = event.cursor.split(".")
        assert postgres_bench.events(after=f"{whose}.{xid}.{int(position) + 1}") == []
        beyond = f"{whose}.{int(xid) + 10**9}.1"
        with pytest.raises(InvalidArgument, match="is no cursor of this store") as refused:
            postgres_bench.events(after=beyond)
        assert refused.value.code == "invalid_argument"
        with pytest.raises(InvalidArgument, match="is no cursor of this store"):
            postgres_bench.audit(after=beyond)


class TestExpiry:
    def test_of_jobs_that_expired_together_the_first_ids_end_first(self, postgres_bench: Bench) -> None:
        """However they lie in the table: two that close the same ones ask for them in the same order."""
        commands = sorted(
            (postgres_bench.command(expires_in_ms=5) for _ in range(6)), key=lambda command: command.job_id
        )
        for command in reversed(commands):
            postgres_bench.run(postgres_bench.store.dispatch([command]))
        postgres_bench.clock.advance_ms(5)
        assert postgres_bench.run(postgres_bench.store.expire(APPLICATION, 2)) == 2
        states = [postgres_bench.job(command.job_id).state for command in commands]
        assert states == [JobState.FAILED] * 2 + [JobState.PENDING] * 4


class TestRecovery:
    def test_f050_a_cancel_between_its_look_and_its_write_wins(self, postgres_bench: Bench) -> None:
        attempt = postgres_bench.claimed()
        other = postgres_bench.another()
        beside = Bench("postgres", other, postgres_bench.clock, postgres_bench.administration, postgres_bench.another)

        def decide(lapsed: Attempt) -> Settlement:
            (answer,) = beside.cancel(attempt.job_id)
            assert answer.cancel_requested
            return recover(lapsed, FakeDice())

        postgres_bench.clock.advance_ms(LEASE_MS)
        assert postgres_bench.run(postgres_bench.store.recover(APPLICATION, decide, 100)) == 1
        other.close()
        job = postgres_bench.job(attempt.job_id)
        assert (job.state, job.code, job.revision) == (JobState.CANCELLED, "cancel_requested", 4)

    def test_f089_rows_that_are_in_its_way_do_not_stop_it(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        """Damage of old: the history has what recovery is about to write."""
        job_ids = postgres_bench.dispatch(3)
        attempts = postgres_bench.claim().attempts
        postgres_database.execute(
            "INSERT INTO runwick.attempt (job, generation, number, attempt_id, ended_at_ms, kind, outcome) "
            "SELECT job, generation, attempts, job, 0, kind, 'failed' FROM runwick.hot WHERE job = %s::uuid",
            id_text(attempts[1].job_id),
        )
        postgres_database.execute(
            "INSERT INTO runwick.closing (job, generation, application, revision, executions, ended_at_ms, state) "
            "SELECT job, generation, application, 9, 1, 0, 'failed' FROM runwick.hot WHERE job = %s::uuid",
            id_text(attempts[1].job_id),
        )
        postgres_bench.clock.advance_ms(LEASE_MS)
        assert len(postgres_bench.recover(JobState.FAILED, code="executions_exhausted")) == 3
        assert {postgres_bench.job(job_id).state for job_id in job_ids} == {JobState.FAILED}
        assert postgres_database.execute("SELECT count(*) FROM runwick.hot") == [(0,)]

    def test_a_renewal_never_shortens_a_lease(self, postgres_bench: Bench) -> None:
        attempt = postgres_bench.claimed()
        postgres_bench.run(postgres_bench.store.renew(postgres_bench.report(), held(attempt), 1, 1_000))
        postgres_bench.clock.advance_ms(LEASE_MS - 1)
        assert postgres_bench.recover() == []
        postgres_bench.clock.advance_ms(1)
        assert len(postgres_bench.recover()) == 1


class Woken:
    """Whether this thread was woken by what it did itself; word of it comes back from the server too, on another."""

    def __init__(self, bench: Bench) -> None:
        self._threads: list[int] = []
        self.stop = bench.store.wake_on_work(lambda: self._threads.append(threading.get_ident()))

    def __call__(self) -> bool:
        threads, self._threads = self._threads, []
        return threading.get_ident() in threads


class TestWakeUps:
    def test_what_makes_work_due_wakes_the_workers_of_this_process_at_once(self, postgres_bench: Bench) -> None:
        woken = Woken(postgres_bench)
        attempt = postgres_bench.claimed()
        assert woken()
        postgres_bench.release(attempt)
        assert woken()
        (attempt,) = postgres_bench.claim().attempts
        postgres_bench.retry(attempt, None)
        assert woken()
        (attempt,) = postgres_bench.claim().attempts
        postgres_bench.retry(attempt, 5_000)
        assert not woken()
        postgres_bench.clock.advance_ms(5_000)
        postgres_bench.claim()
        postgres_bench.clock.advance_ms(LEASE_MS)
        assert not woken()
        postgres_bench.recover()
        assert woken()
        woken.stop()

    def test_work_of_an_application_that_nobody_here_serves_wakes_nobody(self, postgres_bench: Bench) -> None:
        postgres_bench.claimed()
        woken = Woken(postgres_bench)
        postgres_bench.dispatch(application="bakery")
        assert not woken()
        postgres_bench.dispatch()
        assert woken()
        woken.stop()

    def test_a_worker_hears_what_another_process_asks_of_it_and_nothing_else(
        self, postgres_bench: Bench, postgres_database: Database
    ) -> None:
        attempt = postgres_bench.claimed()
        other = postgres_bench.another()
        operator = Bench("postgres", other, postgres_bench.clock, postgres_bench.administration, postgres_bench.another)
        woken: list[str] = []
        postgres_bench.store.wake_on_work(lambda: woken.append("work"))
        eventually(lambda: woken, "whoever begins to listen wakes everybody")
        postgres_bench.store.wake_on_requests(postgres_bench.ids.ordered(), lambda: woken.append("another"))
        postgres_bench.store.wake_on_requests(postgres_bench.worker, lambda: woken.append("it"))
        woken.clear()
        operator.cancel(attempt.job_id)
        eventually(lambda: woken, "it was asked to stop")
        operator.control(operator.order(ControlAction.LOOK, attempt.job_id))  # it has not begun: nobody is asked
        postgres_bench.marked(attempt)
        operator.control(operator.order(ControlAction.LOOK, attempt.job_id))
        eventually(lambda: woken[1:], "its stack was asked for")
        assert woken == ["it", "it"]
        other.close()


class TestNumbersThatCameEarly:
    """A batch gets its transaction's number with its first row; what it meets behind may have been committed under a
    later one. What it writes about that is told behind it all the same."""

    AHEAD = 5

    def came_later(self, database: Database) -> None:
        """Let what was written last about each live job bear a number that is still to come."""
        for table, column in (("hot", "told_xid"), ("audit", "xid"), ("attempt", "xid")):
            number = f"({column}::text::bigint + {self.AHEAD})::text::xid8"
            database.execute(f"UPDATE runwick.{table} SET {column} = {number}")

    def told(self, bench: Bench, database: Database) -> list[str | None]:
        """What is told when those numbers have come and gone."""
        for _ in range(self.AHEAD + 1):
            database.execute("SELECT pg_current_xact_id()")
        return [event.state for event in bench.events()]

    @pytest.mark.parametrize("act", ["settle", "settle_success", "release", "recover"])
    def test_the_end_of_what_was_cancelled_follows_its_cancel(
        self, postgres_bench: Bench, postgres_database: Database, act: str
    ) -> None:
        bench = postgres_bench
        attempt = bench.claimed()
        bench.cancel(attempt.job_id)
        self.came_later(postgres_database)
        match act:
            case "settle":
                bench.run(bench.store.settle([settle(attempt, FAILURE, FakeDice())]))
            case "settle_success":
                bench.succeed(attempt)
            case "release":
                bench.release(attempt)
            case "recover":
                bench.clock.advance_ms(LEASE_MS)
                bench.recover(if_cancelled=IfCancelled(OutcomeKind.CANCELLED, "cancel_requested"))
        ends = {
            "settle": ["failed", "cancelled"],
            "settle_success": ["succeeded", "succeeded"],
            "release": ["cancelled"],
            "recover": ["cancelled", "cancelled"],
        }
        assert self.told(bench, postgres_database) == [None, "cancel", *ends[act]]

    @pytest.mark.parametrize("act", ["expire", "claim"])
    def test_an_expiry_follows_the_attempt_before_it(
        self, postgres_bench: Bench, postgres_database: Database, act: str
    ) -> None:
        bench = postgres_bench
        attempt = bench.claimed(expires_in_ms=50)
        bench.retry(attempt)
        self.came_later(postgres_database)
        bench.clock.advance_ms(50)
        if act == "expire":
            assert bench.run(bench.store.expire(APPLICATION, 10)) == 1
        else:
            assert bench.claim().attempts == []
        assert self.told(bench, postgres_database) == [None, "failed", "failed"]

    def test_what_can_be_met_so_bears_its_number(self, postgres_bench: Bench, postgres_database: Database) -> None:
        numbers = "SELECT count(*), count(told_xid) FROM runwick.hot"
        first, second = postgres_bench.claimed(), postgres_bench.claimed()
        assert postgres_database.execute(numbers) == [(2, 0)]
        postgres_bench.cancel(first.job_id)
        postgres_bench.retry(second)
        assert postgres_database.execute(
            "SELECT (SELECT count(*) FROM runwick.hot JOIN runwick.audit ON hot.told_xid = audit.xid),"
            " (SELECT count(*) FROM runwick.hot JOIN runwick.attempt ON hot.told_xid = attempt.xid)"
        ) == [(1, 1)]
