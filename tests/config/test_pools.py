"""Pools: names, queues, sizes."""

import pytest

from runwick.config.check import check_pools
from runwick.contracts import Problem
from runwick.declarations.pools import Pool

QUEUES = frozenset({"images", "emails", "default"})


def pool(name: str = "main", queues: tuple[str, ...] | None = ("images",), concurrency: int = 4) -> Pool:
    return Pool(name=name, queues=queues, concurrency=concurrency)


@pytest.mark.parametrize(
    "pools",
    [
        [],
        [pool(queues=None)],
        [pool(queues=("images", "emails"), concurrency=16)],
        [pool("a", concurrency=8), pool("b", concurrency=8)],
    ],
    ids=len,
)
def test_pools_that_pass(pools: list[Pool]) -> None:
    assert check_pools(pools, QUEUES, 16) == []


@pytest.mark.parametrize(
    ("refused", "code", "text"),
    [
        (
            pool(queues=("imgaes",)),
            "invalid_pool",
            'pool "main" subscribes to queue "imgaes", which no job uses and nothing declares. Did you mean "images"?',
        ),
        (
            pool(queues=("zzz",)),
            "invalid_pool",
            'pool "main" subscribes to queue "zzz", which no job uses and nothing declares. '
            'Known: "default", "emails", "images".',
        ),
        (
            pool(queues=("images", "images")),
            "invalid_pool",
            'pool "main" subscribes to queue "images" 2 times. Name each queue once.',
        ),
        (
            pool(concurrency=0),
            "invalid_pool",
            'pool "main" has concurrency 0; it must be a whole number from 1.',
        ),
        (
            Pool("main", queues="images"),  # type: ignore[arg-type]
            "invalid_pool",
            "pool \"main\" has queues 'images'; they must be a tuple of names, or names with weights.",
        ),
        (
            Pool("main", queues=5),  # type: ignore[arg-type]
            "invalid_pool",
            'pool "main" has queues 5; they must be a tuple of names, or names with weights.',
        ),
        (
            pool(queues=()),
            "pool_without_queue",
            'pool "main" subscribes to no queue. Give it at least one queue that a job uses or rw.queue declares.',
        ),
        (
            pool("\x1b[2J"),
            "invalid_name",
            "pool \"\\u001b[2J\": is not a name: it must be letters, digits, '.', '_' or '-', starting with a letter "
            "or digit (ASCII).",
        ),
        (
            pool(concurrency=17),
            "pool_budget_exceeded",
            "pools: concurrency adds up to 17 (main 17), must be ≤ max_outstanding_attempts (16). "
            "Raise max_outstanding_attempts to at least 17, or shrink the pools.",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_pool_that_breaks_one_rule_gives_exactly_its_problem(refused: Pool, code: str, text: str) -> None:
    (problem,) = check_pools([refused], QUEUES, 16)
    assert (problem.code, problem.text) == (code, text)


def test_pools_of_one_name() -> None:
    assert check_pools([pool(), pool()], QUEUES, 16) == [
        Problem("invalid_pool", 'pool "main"', 'pool "main" is declared 2 times. Give each pool a name of its own.')
    ]


def test_without_any_queue_a_pool_has_nothing_to_take() -> None:
    (problem,) = check_pools([pool(queues=None)], frozenset(), 16)
    assert problem.code == "pool_without_queue"
    (problem,) = check_pools([pool(queues=("images",))], frozenset(), 16)
    assert problem.message.endswith('nothing declares. Declare it with rw.queue("images").')


def test_all_problems_of_pools_come_at_once() -> None:
    pools = [pool(queues=("imgaes", "emials"), concurrency=9), pool(queues=(), concurrency=8)]
    assert [problem.code for problem in check_pools(pools, QUEUES, 16)] == [
        "invalid_pool",
        "invalid_pool",
        "pool_without_queue",
        "invalid_pool",
        "pool_budget_exceeded",
    ]


def test_a_limit_that_is_no_number_is_another_checks_problem() -> None:
    assert check_pools([pool(concurrency=17)], QUEUES, 0) == []
