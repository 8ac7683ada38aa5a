"""What an executor says an attempt cost, with the compiled part and without it: both say the same."""

import asyncio
from pathlib import Path

import pytest

from runwick import ExecutorOptions
from runwick.contracts.usage import Usage
from tests.supervisor.applications.deeds import Close, Hold, Nothing, Spend
from tests.supervisor.crew import until
from tests.supervisor.single import Single, single

MB = 1_000_000

both_ways = pytest.mark.parametrize(
    "options",
    [ExecutorOptions(), ExecutorOptions(record_allocations=False), ExecutorOptions(compiled_part=False)],
    ids=["compiled, counting", "compiled", "plain"],
)


async def cost(its: Single, job: Nothing | Spend | Close) -> Usage:
    outcome = await its.run(job)
    assert outcome.usage is not None
    return outcome.usage


def known(value: int | None) -> int:
    assert value is not None
    return value


@both_ways
def test_everything_that_an_attempt_uses_is_its_own(options: ExecutorOptions) -> None:
    async def scene() -> None:
        async with single(options) as its:
            await cost(its, Nothing())
            quiet = await cost(its, Nothing())
            busy = await cost(its, Spend(cpu_ms=60, megabytes=50, child_ms=40))
            after = await cost(its, Nothing())
            assert known(busy.wall_us) >= 100_000
            assert known(busy.cpu_us) >= 55_000
            assert known(busy.cpu_children_us) >= 35_000
            assert known(busy.rss_peak_bytes) - known(busy.rss_end_bytes) > 45 * MB
            assert known(busy.faults_minor) > 0
            assert known(busy.switches_voluntary) > 0
            for idle in (quiet, after):
                assert known(idle.cpu_us) < 30_000
                assert idle.cpu_children_us == 0
                assert idle.faults_major == 0
                assert 10 * MB < known(idle.rss_end_bytes) <= known(idle.rss_peak_bytes)
                assert known(busy.rss_peak_bytes) - known(idle.rss_peak_bytes) > 40 * MB

    asyncio.run(scene())


@both_ways
def test_what_was_used_before_an_attempt_is_left_for_whoever_asks_after_its_death(
    tmp_path: Path, options: ExecutorOptions
) -> None:
    async def scene() -> None:
        async with single(options) as its:
            spent = await cost(its, Spend(cpu_ms=60, megabytes=1, child_ms=40))
            its.put(Hold(str(tmp_path / "started"), str(tmp_path / "never")))
            await until((tmp_path / "started").exists, "the run")
            await its.kill()
            before = its.end.remains().progress.before
            assert before is not None
            assert before.utime_us + before.stime_us >= known(spent.cpu_us)
            assert before.children_us >= known(spent.cpu_children_us)
            assert before.minflt >= known(spent.faults_minor)
            assert before.nvcsw >= known(spent.switches_voluntary)
            assert before.children_maxrss_kib > 1_000
            assert (before.alloc_blocks > 0) == (spent.allocations_by == "counted")

    asyncio.run(scene())


def test_a_handler_that_takes_the_low_descriptors_is_measured_on_and_its_files_are_its_own(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("its own")

    async def scene() -> None:
        async with single() as its:
            assert (await cost(its, Close(str(taken)))).rss_end_bytes is not None
            after = await cost(its, Nothing())
            assert None not in (after.rss_end_bytes, after.rss_peak_bytes)

    asyncio.run(scene())
    assert taken.read_text() == "its own"
