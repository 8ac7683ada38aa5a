"""The shapes in which an application is deployed. The code is the same in all; every job runs once, wherever it can."""

from tests.shapes.conftest import Site


def test_a_web_process_that_only_dispatches_and_a_worker_beside_it(site: Site) -> None:
    jobs = site.web(8)
    worker = site.start_worker()
    jobs += site.web(8)
    site.assert_each_ran_once(jobs)
    worker.terminate()
    assert "stopped: 32 succeeded" in worker.rest()
    assert {pid for _, _, pid in site.ledger()} == {worker.pid}


def test_one_process_that_does_both(site: Site) -> None:
    app = site.start_both(12)
    jobs = app.until("dispatched")
    site.assert_each_ran_once(jobs)
    app.rest()
    assert {pid for _, _, pid in site.ledger()} == {app.pid}


def test_many_replicas_that_all_do_both(site: Site) -> None:
    replicas = [site.start_both(10) for _ in range(3)]
    jobs = [job for replica in replicas for job in replica.until("dispatched")]
    site.assert_each_ran_once(jobs)
    for replica in replicas:
        replica.rest()
    assert {pid for _, _, pid in site.ledger()} <= {replica.pid for replica in replicas}


def test_replicas_that_only_dispatch_and_a_tier_of_workers_for_each_queue(site: Site) -> None:
    packer, biller = site.start_worker("--queues", "packing"), site.start_worker("--queues", "billing")
    replicas = [site.start_web(8) for _ in range(2)]
    site.assert_each_ran_once([job for replica in replicas for job in replica.rest().split()])
    for worker in (packer, biller):
        worker.terminate()
        assert "stopped: 16 succeeded" in worker.rest()
    assert {(queue, pid) for _, queue, pid in site.ledger()} == {("packing", packer.pid), ("billing", biller.pid)}


def test_replicas_that_do_both_and_executors_of_a_supervisor_beside_them(site: Site) -> None:
    supervisor = site.start_supervisor("--queues", "packing", "--executors", "1")
    replicas = [site.start_both(10) for _ in range(2)]
    jobs = [job for replica in replicas for job in replica.until("dispatched")]
    site.assert_each_ran_once(jobs)
    for replica in replicas:
        replica.rest()
    more = site.web(2)
    site.assert_each_ran_once([*jobs, *more[::2]])  # with the replicas gone, nobody serves the other queue
    assert [site.rw.get(job).state.value for job in more[1::2]] == ["pending"] * 2
    supervisor.terminate()
    assert "failed" not in supervisor.rest().replace("0 failed", "")


def test_a_queue_that_nobody_serves_waits(site: Site) -> None:
    jobs = site.web(3)
    worker = site.start_worker("--queues", "packing", "--until-empty")
    assert "stopped: 3 succeeded" in worker.rest()
    assert [site.rw.get(job).state.value for job in jobs] == ["succeeded", "pending"] * 3
    assert {queue for _, queue, _ in site.ledger()} == {"packing"}
