"""What an executor does for each run of a job that does nothing: a real one, forked by a real zygote. All runs lie in
its hand-off before it begins, so that it waits for nobody.
"""

import sys
from pathlib import Path
from typing import Final

from runwick import Job
from runwick.execution.run import Run
from runwick_supervisor.handoff import RecordKind
from scripts.benchmarks.application import Nothing
from tests.attempts import an_attempt
from tests.hot_paths import counting_application
from tests.hot_paths.counting_application import Begin, End
from tests.hot_paths.system_calls import PROJECT, between_marks, traced
from tests.supervisor.single import Single, single

FEW: Final = 50
MANY: Final = 250
"""Runs in a row. What the longer row takes more than the other has nothing of its beginning and its end in it."""


def executor_path(folder: Path) -> dict[str, float]:
    """By ``executor no-op: COUNT``, one run's share; `folder` is empty."""
    ended = traced([sys.executable, "-m", "tests.hot_paths.scripted", "executor"], "", folder / "calls")
    few, many = map(int, ended.said.split())
    few_calls, many_calls = [sum(calls.values()) for calls in between_marks(ended.calls)]
    return {
        "executor no-op: instructions per job": (many - few) / (MANY - FEW),
        "executor no-op: system calls per job": (many_calls - few_calls) / (MANY - FEW),
    }


async def executed() -> None:
    """Let one run both rows, and print how many instructions each takes."""
    async with single(target=counting_application.__name__, app_dir=PROJECT) as executor:
        for runs in (FEW, MANY):
            print(await _counted(executor, [Begin(), *[Nothing()] * runs, End()]))


async def _counted(executor: Single, jobs: list[Job]) -> int:
    executor.outcomes.clear()
    for number, job in enumerate(jobs, 1):
        entry = counting_application.rw.catalog.by_record[type(job)]
        run = Run.of(an_attempt(number, kind=entry.kind, payload=b""))
        assert executor.end.put(RecordKind.RUN, run.encode(), entry.codec.encode(job))
    executor.end.announce()
    while len(executor.outcomes) < len(jobs):
        await executor.ended()
    result = executor.outcomes[-1].result
    assert result is not None, executor.outcomes[-1]
    return int(result)
