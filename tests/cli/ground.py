"""An application that can be reached in three ways: on its SQLite file, on a PostgreSQL database, and over the API of a
real server. Commands run in this process."""

import asyncio
import contextlib
import datetime
import json
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import uvicorn
from click.testing import CliRunner, Result

from runwick import Job, PerResource, Receipt, Runwick
from runwick.cli.main import main
from runwick.cli.web_server import listen
from runwick.contracts.errors import PermanentJobFailure
from runwick.management.http import api
from runwick.management.permissions import EVERYTHING, VIEWER, Grant
from runwick.management.web import BasicScheme, BearerScheme, Management, ManagementLimits, Principal, Scheme
from runwick.management.web.basic import passwords

SECRET: Final = "correct-horse"
"""Password of ``ops`` and ``viewer``, and the robot's token."""
_PLENTY: Final = ManagementLimits(reads_per_minute=100_000, changes_per_minute=100_000, reveals_per_minute=100_000)

RUNWICK: Final = Path(sys.executable).parent / "runwick"
"""The command as it is installed."""

SHOP: Final = """
from tests.cli.ground import shop

rw = shop(None)
"""
"""A module of the application, whose store the environment names."""


class Pack(Job):
    number: int = 0
    note: str = ""


LONG: Final = 99
"""The number of an order that takes until it is `released`."""
released = threading.Event()


def pack(job: Pack) -> dict[str, int]:
    if job.number == LONG:
        assert released.wait(timeout=60)
    if job.number < 0:
        raise PermanentJobFailure("no_such_order", f"there is no order {job.note}")
    return {"number": job.number}


def shop(url: str | None) -> Runwick:
    """The application, on the store at a URL or where the environment says."""
    rw = Runwick("shop", store=url)
    rw.queue("bulk")
    rw.job("order.pack", queue="own", per_resource=(PerResource(lambda job: f"line/{job.number}", 2),))(Pack)
    rw.handler(pack)
    return rw


def work(rw: Runwick, *receipts: Receipt) -> None:
    """Run jobs to their ends."""

    async def until_they_ended() -> None:
        async with rw.worker():
            for receipt in receipts:
                await rw.wait_async(receipt, timeout=datetime.timedelta(seconds=30))

    asyncio.run(until_they_ended())


def run(*arguments: str, typed: str | None = None, status: int = 0) -> Result:
    """A command that ends with this status."""
    ran = CliRunner().invoke(main, arguments, input=typed)
    assert ran.exit_code == status, (arguments, ran.stdout, ran.stderr, ran.exception)
    return ran


def said(*arguments: str, typed: str | None = None, status: int = 0) -> Any:
    """The one JSON object that a command prints."""
    return json.loads(run(*arguments, typed=typed, status=status).stdout)


def asked(*arguments: str, typed: str | None = None, status: int = 0) -> Any:
    """The one envelope that a command gives an agent."""
    lines = run("--agent", *arguments, typed=typed, status=status).stdout.splitlines()
    assert len(lines) == 1
    return json.loads(lines[0])


async def _robot(token: str) -> Principal | None:
    if token != SECRET:
        return None
    return Principal(subject="robot", display="Robot", scheme="bearer", is_browser=False)


def _grants(principal: Principal) -> Sequence[Grant]:
    return VIEWER if principal.subject == "viewer" else EVERYTHING


@contextlib.contextmanager
def served(rw: Runwick) -> Iterator[str]:
    """The application's API on a port of this machine, while it lasts; its address."""
    schemes: list[Scheme] = [BasicScheme(passwords({"ops": SECRET, "viewer": SECRET})), BearerScheme(_robot)]
    management = Management(rw.desk, schemes=schemes, grants=_grants, limits=_PLENTY)
    with answering(api(management)) as address:
        yield address


@contextlib.contextmanager
def answering(application: Any, **options: Any) -> Iterator[str]:
    """An ASGI application on a port of this machine; its address."""
    with contextlib.closing(listen("127.0.0.1", 0)) as bound:
        config = uvicorn.Config(
            application, http="h11", ws="none", loop="asyncio", lifespan="off", log_config=None, **options
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(timeout=30)
