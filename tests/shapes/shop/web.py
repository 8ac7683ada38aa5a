"""A process that only dispatches: it knows the jobs and no handler. Run it with how many of each."""

import sys

from runwick import Runwick
from tests.shapes.shop import contracts
from tests.shapes.shop.contracts import Bill, Pack

rw = Runwick("shop")
rw.add_jobs(contracts)


def main() -> None:
    for number in range(int(sys.argv[1])):
        print(rw.dispatch(Pack(number)).job_id)
        print(rw.dispatch(Bill(number)).job_id)
    strangers = [name for name in sys.modules if name.startswith(("runwick.worker", "runwick.execution"))]
    assert "tests.shapes.shop.work" not in sys.modules
    assert not strangers, strangers
    rw.close()


if __name__ == "__main__":
    main()
