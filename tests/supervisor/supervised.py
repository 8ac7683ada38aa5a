"""A supervisor of its own process, for tests that kill it:

    python -m tests.supervisor.supervised FOLDER [zygote]

It has two executors, each of which has started a child, and writes the pids of all into ``FOLDER/pids``. With
``zygote`` the first zygote was killed before that, so that the executors are an earlier zygote's.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path

from runwick_supervisor.events import EventKind
from tests.supervisor.applications.deeds import Beget
from tests.supervisor.crew import crew, until


async def main(folder: Path, lose_zygote: bool) -> None:
    async with crew(2) as its:
        files = [folder / "first", folder / "second"]
        its.hand_over(*[Beget(str(file), str(folder / "never")) for file in files])
        await until(lambda: all(file.exists() for file in files), "the children")
        assert its.zygote._running is not None
        if lose_zygote:
            os.kill(its.zygote._running.process.pid, signal.SIGKILL)
            await until(lambda: its.heard(EventKind.ZYGOTE_REPLACED), "the next zygote")
        pids = [its.zygote._running.process.pid, *(pid for file in files for pid in file.read_text().split())]
        unfinished = folder / "pids.unfinished"
        unfinished.write_text(" ".join(map(str, pids)))
        unfinished.rename(folder / "pids")
        await asyncio.sleep(60)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), "zygote" in sys.argv[2:]))
