"""A process that serves and works: it dispatches so many of each, and runs whatever is there until its input ends."""

import asyncio
import sys

from tests.shapes.shop.contracts import Bill, Pack
from tests.shapes.shop.work import rw


async def main() -> None:
    async with rw.worker():
        for number in range(int(sys.argv[1])):
            print((await rw.dispatch_async(Pack(number))).job_id)
            print((await rw.dispatch_async(Bill(number))).job_id)
        print("dispatched", flush=True)
        await asyncio.to_thread(sys.stdin.read)
    rw.close()


if __name__ == "__main__":
    asyncio.run(main())
