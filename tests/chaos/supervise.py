"""``runwick-supervise`` as the campaigns start it.

Its restart budget is for deaths that are the application's, and here they are not; and its log tells of every attempt.
"""

import logging

from runwick_supervisor import seats
from runwick_supervisor.command import main

if __name__ == "__main__":
    seats._DEATHS = 1_000_000  # type: ignore[misc]
    logging.basicConfig(format="%(message)s")
    main()
