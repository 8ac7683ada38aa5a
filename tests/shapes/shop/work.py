"""The handlers; each leaves a line in the ledger: job, queue, process."""

import os

from runwick import JobContext, Runwick
from tests.shapes.shop import contracts
from tests.shapes.shop.contracts import Bill, Pack

rw = Runwick("shop")
rw.add_jobs(contracts)
rw.pool("packing", queues=("packing",), concurrency=2)
rw.pool("billing", queues=("billing",), concurrency=1)


@rw.handler
def pack(job: Pack, ctx: JobContext) -> None:
    enter(ctx)


@rw.handler
async def bill(job: Bill, ctx: JobContext) -> None:
    enter(ctx)


def enter(ctx: JobContext) -> None:
    ledger = os.open(os.environ["LEDGER"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(ledger, f"{ctx.job_id} {ctx.queue} {os.getpid()}\n".encode())
    os.close(ledger)
