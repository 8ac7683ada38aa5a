"""A store in long use, for tests of what its statements cost there."""

from pathlib import Path
from typing import Final

from runwick.config.options import PostgresOptions
from runwick.contracts.policies import JobPolicy
from runwick.runtime.ambient import SystemIds
from runwick.stores.postgres.address import address_of
from runwick.stores.postgres.administer import PostgresAdministration
from runwick.stores.postgres.store import PostgresStore
from tests.ambient import FakeClock
from tests.conformance.ground import APPLICATION, HIGH, KINDS, LOW, MEDIUM, Bench
from tests.postgres.asking import execute

LANES: Final = (HIGH, MEDIUM, LOW)
FAR_MS: Final = 1 << 50
"""A time that never comes: these stores go by the server's clock."""


def server_time_bench(url: str) -> Bench:
    """A store in this database that goes by the server's time. Its own clock, which counts the time between sweeps,
    stands still; `Bench.store` is to be closed."""
    clock, ids, address = FakeClock(), SystemIds(), address_of(url)

    def opened() -> PostgresStore:
        return PostgresStore(address, options=PostgresOptions(), concurrent_calls=2, clock=clock, ids=ids)

    return Bench("postgres", opened(), clock, PostgresAdministration(address, ids), opened)


def crowd(url: str) -> None:
    """Fill an empty store as ``crowd.sql`` says."""
    bench = server_time_bench(url)
    bench.run(bench.store.register(APPLICATION, LANES, KINDS))
    bench.run(
        bench.store.dispatch([bench.command(lane=LOW, delay_ms=3_600_000, deadline_ms=FAR_MS, policy=JobPolicy())])
    )
    bench.store.close()
    execute(url, (Path(__file__).parent / "crowd.sql").read_text())
