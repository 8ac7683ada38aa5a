"""What a worker tells may be odd; its page shows what there is."""

from typing import Any

import pytest

from runwick.contracts.activity import ExecutorActivity
from runwick.management.dashboard import dashboard
from runwick.management.permissions import EVERYTHING
from runwick.management.web import BearerScheme, Management
from tests.conformance.ground import memory_bench
from tests.management.counter import opened
from tests.web.ground import Client, _bearer, bearer


@pytest.mark.parametrize("page", ["/workers", "/pools", "/queues/reports", "/"])
@pytest.mark.parametrize("known", [{"name": "x"}, {"job_id": bytes(16)}, {"attempt_id": bytes(16)}, {"begun_at_ms": 0}])
def test_an_executor_of_which_half_is_known_is_shown(page: str, known: dict[str, Any]) -> None:
    with opened(memory_bench()) as counter:
        counter.report()
        counter.bench.renew(executors=[ExecutorActivity(number=1, pool="main", phase="handle", **known)])
        management = Management(counter.desk, schemes=[BearerScheme(_bearer)], grants=lambda who: EVERYTHING)
        assert Client(dashboard(management), bearer()).get(page).status_code == 200
