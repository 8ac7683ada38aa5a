"""``runwick-supervise`` as the campaigns start it.

Its restart budget is for deaths that are the application's, and here they are not; its log tells of every attempt; it
obeys orders to kill an executor in the middle of the hand-off; it notes which attempts it gives back, of which the
store keeps no trace; its threads bear their names where others can read them; and a Redis store writes the log of
limits.
"""

import logging
import os
import threading
from collections.abc import Sequence
from pathlib import Path

from runwick.contracts.attempts import Attempt
from runwick.worker.releaser import Releaser
from runwick_supervisor import seats
from runwick_supervisor.command import main
from tests.chaos.book import Book
from tests.chaos.limit_log import logging_redis
from tests.supervisor import strikes


def note_what_is_given_back(book: Book) -> None:
    release = Releaser.release

    def noting(self: Releaser, attempts: Sequence[Attempt]) -> None:
        book.given_back(attempts)
        release(self, attempts)

    Releaser.release = noting  # type: ignore[method-assign]


def name_threads() -> None:
    run = threading.Thread.run

    def named(self: threading.Thread) -> None:
        Path("/proc/thread-self/comm").write_text(self.name.removeprefix("runwick-")[:15])
        run(self)

    threading.Thread.run = named  # type: ignore[method-assign]


if __name__ == "__main__":
    seats._DEATHS = 1_000_000  # type: ignore[misc]
    name_threads()
    strikes.obey_as_parent(Path(os.environ["CHAOS_STRIKES"]))
    note_what_is_given_back(Book(Path(os.environ["CHAOS_BOOK"])))
    logging.basicConfig(format="%(message)s")
    with logging_redis():
        main()
