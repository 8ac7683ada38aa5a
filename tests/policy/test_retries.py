import pytest
from hypothesis import given
from hypothesis import strategies as st

from runwick.contracts.policies import JobPolicy
from runwick.policy.retries import retry_delay_ms, unstarted_delay_ms
from tests.ambient import FakeDice


@pytest.mark.parametrize(
    ("execution", "nominal_ms"), [(1, 5_000), (2, 10_000), (3, 20_000), (5, 60_000), (100, 60_000)]
)
def test_the_delay_lies_between_half_the_nominal_and_all_of_it(execution: int, nominal_ms: int) -> None:
    policy = JobPolicy()
    assert retry_delay_ms(policy, execution, FakeDice(0.0)) == nominal_ms // 2
    assert retry_delay_ms(policy, execution, FakeDice(0.999999)) == nominal_ms


@given(
    initial=st.integers(1, 86_400_000),
    longest=st.integers(1, 86_400_000),
    execution=st.integers(1, 100),
    fraction=st.floats(0, 1, exclude_max=True),
)
def test_no_delay_leaves_its_bounds(initial: int, longest: int, execution: int, fraction: float) -> None:
    policy = JobPolicy(retry_initial_ms=min(initial, longest), retry_max_ms=longest)
    nominal_ms = min(longest, policy.retry_initial_ms * 2 ** (execution - 1))
    delay_ms = retry_delay_ms(policy, execution, FakeDice(fraction))
    assert max(1, nominal_ms // 2) <= delay_ms <= nominal_ms


def test_claims_that_never_begin_wait_from_one_second_to_thirty() -> None:
    policy = JobPolicy()
    assert [unstarted_delay_ms(policy, n) for n in (1, 2, 3, 4, 5, 6, 7)] == [
        1_000,
        2_000,
        4_000,
        8_000,
        16_000,
        30_000,
        30_000,
    ]
