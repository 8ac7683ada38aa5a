"""What strace looks at, each between marks: ``python -m tests.hot_paths.scripted acts|worker|executor``.

The acts of a job on the store of ``RUNWICK_STORE``; the life of a worker; what an executor does for its runs, of which
the number of instructions is told.
"""

import asyncio
import os
import sys

from tests.hot_paths.acts import Readings, acts, opened
from tests.hot_paths.executor_path import executed
from tests.hot_paths.system_calls import mark
from tests.hot_paths.whole_worker import NO_OPS, lived


def _marked() -> Readings:
    mark()
    return {}


def main() -> None:
    match sys.argv[1]:
        case "acts":
            with opened(os.environ["RUNWICK_STORE"]) as rw:
                acts(rw, _marked)
        case "worker":
            lived(NO_OPS)
        case "executor":
            asyncio.run(executed())


if __name__ == "__main__":
    main()
