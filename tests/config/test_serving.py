"""Which pools a worker serves, and from which queues."""

import pytest

from runwick.config.serving import served_pools
from runwick.contracts import LaneSelection
from runwick.declarations.pools import Pool

KNOWN = frozenset({"mails", "images", "reports"})
MAIN = Pool("main", ("mails", "images"), 8)
REPORTS = Pool("reports", ("reports", "images"), 2)


def test_without_a_restriction_all_of_them_serve_what_they_were_declared_for() -> None:
    assert served_pools([MAIN, REPORTS], KNOWN, None) == ([MAIN, REPORTS], [])


def test_a_pool_on_every_queue_is_one_on_all_that_are_known() -> None:
    pools, _ = served_pools([Pool("main", None, 3)], KNOWN, None)
    assert pools == [Pool("main", ("images", "mails", "reports"), 3)]
    pools, _ = served_pools([], KNOWN, None)
    assert [(pool.name, pool.concurrency) for pool in pools] == [("main", 4)]


def test_a_restriction_leaves_the_pools_that_serve_what_it_names_in_its_order() -> None:
    pools, problems = served_pools([MAIN, REPORTS], KNOWN, ["images", "mails"])
    assert pools == [Pool("main", ("images", "mails"), 8), Pool("reports", ("images",), 2)]
    assert problems == []
    pools, _ = served_pools([MAIN, REPORTS], KNOWN, ["reports"])
    assert pools == [Pool("reports", ("reports",), 2)]


@pytest.mark.parametrize(
    ("pools", "only", "text"),
    [
        ([MAIN], ["imgs"], '--queues: names "imgs", which no pool serves; the pool serves: mails, images.'),
        ([MAIN, REPORTS], [], "--queues: names no queue; the pools serve: mails, images, reports."),
    ],
)
def test_a_restriction_to_nothing_is_one_problem(pools: list[Pool], only: list[str], text: str) -> None:
    left, (problem,) = served_pools(pools, KNOWN, only)
    assert (left, problem.code, problem.text) == ([], "invalid_pool", text)


def test_what_is_left_of_a_pool_keeps_its_weights_and_its_choice() -> None:
    pool = Pool("main", {"mails": 3, "images": 2}, 8, (9, 2, 1), LaneSelection.STRICT)
    ([left], _) = served_pools([pool], KNOWN, ["images"])
    assert (left.queues, left.weight_of("images")) == (("images",), 2)
    assert (left.lane_weights, left.lane_selection) == ((9, 2, 1), LaneSelection.STRICT)
