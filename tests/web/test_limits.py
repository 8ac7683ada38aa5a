"""How much callers may ask for, and how much is served at once."""

import asyncio
import datetime
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from runwick import Runwick
from runwick.management.http import api
from runwick.management.web import ManagementLimits
from runwick.management.web.counting import KEYS_MAX, RollingCounts
from tests.ambient import FakeClock
from tests.web.ground import GONE, Client, Site, bearer, change, error_of

READ = "/v1/antiforgery"


def reveal() -> dict[str, Any]:
    return change(what="payload")


class TestCallers:
    @pytest.fixture
    def site(self, rw: Runwick) -> Site:
        return Site(rw, limits=ManagementLimits())

    def test_the_documented_numbers(self, site: Site) -> None:
        robot = Client(api(site.management), bearer())
        asked: list[tuple[int, Callable[[], Any]]] = [
            (120, lambda: robot.get(READ)),
            (30, lambda: robot.post("/v1/queues/own/pause", change(expectedRevision=0))),
            (10, lambda: robot.post(f"/v1/jobs/{GONE}/reveal", reveal())),
        ]
        for number, ask in asked:  # each kind is counted by itself
            assert 429 not in {ask().status_code for _ in range(number)}
            refused = ask()
            assert (refused.status_code, error_of(refused)["code"]) == (429, "rate_limited")
            assert refused.headers["retry-after"] == "60"
            assert error_of(refused)["retryable"] is True

    def test_each_caller_is_counted_by_himself_over_the_last_minute(self, site: Site) -> None:
        robot, other = (Client(api(site.management), bearer(name)) for name in ("robot", "other"))
        for _ in range(60):
            robot.get(READ)
        site.clock.advance_ms(30_000)
        for _ in range(60):
            robot.get(READ)
        site.clock.advance_ms(10_500)
        refused = robot.get(READ)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, "20")
        assert other.get(READ).status_code == 200
        site.clock.advance_ms(19_500)
        assert [robot.get(READ).status_code for _ in range(61)] == [200] * 60 + [429]

    def test_what_is_refused_counts_and_who_is_not_signed_in_does_not(self, site: Site) -> None:
        site.grants = ()
        robot, nobody = Client(api(site.management), bearer()), Client(api(site.management))
        assert [robot.get("/v1/jobs").status_code for _ in range(121)] == [403] * 120 + [429]
        assert {nobody.get("/v1/jobs").status_code for _ in range(125)} == {401}

    def test_they_hold_with_sixteen_connections_at_once(self, site: Site) -> None:
        robot = Client(api(site.management), bearer())

        async def connection() -> list[int]:
            return [(await robot.ask_async("GET", READ)).status_code for _ in range(10)]

        async def all_at_once() -> list[int]:
            return [status for each in await asyncio.gather(*(connection() for _ in range(16))) for status in each]

        assert sorted(asyncio.run(all_at_once())) == [200] * 120 + [429] * 40


class TestGate:
    LIMITS = ManagementLimits(active_requests=2, waiting_requests=1, wait=datetime.timedelta(milliseconds=200))

    def held(self, rw: Runwick, ask: Callable[[Client, asyncio.Event], Awaitable[None]]) -> None:
        """Ask while every place is taken by a call of the desk that ends with the event."""
        site, end = Site(rw, limits=self.LIMITS), asyncio.Event()
        workers = site.management.desk.workers

        async def slow(caller: Any) -> Any:
            await end.wait()
            return await workers(caller)

        robot = Client(api(site.management), bearer())

        async def scene() -> None:
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(site.management.desk, "workers", slow)
                held = [asyncio.ensure_future(robot.ask_async("GET", "/v1/workers")) for _ in range(2)]
                async with asyncio.timeout(10):
                    while not site.management.gate._inside.locked():
                        await asyncio.sleep(0)
                await ask(robot, end)
                end.set()
                assert {(await each).status_code for each in held} == {200}

        asyncio.run(scene())

    def test_who_waits_too_long_is_told_to_come_again(self, rw: Runwick) -> None:
        async def ask(robot: Client, end: asyncio.Event) -> None:
            refused = await robot.ask_async("GET", READ)
            assert (refused.status_code, error_of(refused)["code"]) == (503, "busy")
            assert refused.headers["retry-after"] == "1"

        self.held(rw, ask)

    def test_who_waits_a_moment_is_served(self, rw: Runwick) -> None:
        async def ask(robot: Client, end: asyncio.Event) -> None:
            waiting = asyncio.ensure_future(robot.ask_async("GET", READ))
            await asyncio.sleep(0)
            end.set()
            assert (await waiting).status_code == 200

        self.held(rw, ask)

    def test_more_than_may_wait_are_refused_at_once(self, rw: Runwick) -> None:
        async def ask(robot: Client, end: asyncio.Event) -> None:
            asking = [asyncio.ensure_future(robot.ask_async("GET", READ)) for _ in range(3)]
            done, waiting = await asyncio.wait(asking, return_when=asyncio.FIRST_COMPLETED)
            assert {each.result().status_code for each in done} == {503}
            end.set()
            assert len(waiting) >= 1
            await asyncio.gather(*waiting)

        self.held(rw, ask)


def test_limits_are_whole_numbers_within_bounds() -> None:
    for bad in (
        {"reads_per_minute": 0},
        {"changes_per_minute": True},
        {"reveals_per_minute": 1.5},
        {"active_requests": 0},
        {"waiting_requests": -1},
        {"wait": datetime.timedelta(0)},
        {"wait": datetime.timedelta(minutes=2)},
    ):
        with pytest.raises(ValueError, match=next(iter(bad))):
            ManagementLimits(**bad)
    assert ManagementLimits(waiting_requests=0).waiting_requests == 0


def test_counts_are_kept_for_so_many_keys_and_the_longest_silent_goes_first() -> None:
    counts = RollingCounts(1, 60, FakeClock())
    assert counts.take("first") is None
    assert counts.take("second") is None
    assert counts.take("first") == 60
    for number in range(KEYS_MAX - 1):
        counts.take(number)
    assert counts.take("first") == 60
    assert counts.take("second") is None
