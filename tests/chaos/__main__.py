"""``python -m tests.chaos``: every campaign at the size of the gate, or some of them, each with its seed.

It prints what was done and how long that took, and ends with status 1 and the broken invariants if there are any. A
campaign is repeated with its seed: the same kills and the same requests, as far as processes let that be the same. The
history of one that fails is kept, to be looked at.
"""

import collections
import secrets
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import click
import msgspec

from runwick.contracts.dispatching import DuplicateMatch
from tests.chaos import campaigns, hostile, models
from tests.chaos.checker import told, violations
from tests.chaos.history import History

STORES: Final = ("sqlite", "postgres", "redis")


class Campaign(NamedTuple):
    name: str
    what: str
    stores: tuple[str, ...]
    run: Callable[[str, int], History]


CAMPAIGNS: Final = (
    Campaign("R1", f"{campaigns.R1_KILLS} executors killed", STORES, campaigns.killed_executors),
    Campaign("R2", f"{campaigns.R2_KILLS} supervisors killed", STORES, campaigns.killed_supervisors),
    Campaign("R3", f"{campaigns.R3_KILLS} writers killed in a transaction", STORES[:1], campaigns.killed_writers),
    *(
        Campaign("R3", f"{crashes} crashes of the server", (store,), campaigns.crashed_servers)
        for store, crashes in campaigns.R3_CRASHES.items()
    ),
    Campaign("R9", "what can be done to a server", STORES[2:], hostile.hostile),
    Campaign("R6", f"{campaigns.R6_PAUSES} pauses past the lease", STORES, campaigns.paused),
)
MODEL: Final = "R12"
NAMES: Final = (*dict.fromkeys(campaign.name for campaign in CAMPAIGNS), MODEL)


@click.command(context_settings={"max_content_width": 100})
@click.option("--campaign", "names", type=click.Choice(NAMES), multiple=True, help="Only this one; may be repeated.")
@click.option("--store", "stores", type=click.Choice(STORES), multiple=True, help="Only on this one.")
@click.option("--seed", type=click.IntRange(min=0), help="Of everything that is chosen. [default: a new one]")
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(".runwick"),
    show_default=True,
    help="Where the history of a failed campaign is kept.",
)
def main(names: tuple[str, ...], stores: tuple[str, ...], seed: int | None, keep: Path) -> None:
    """Kill and pause what runs jobs, and check what became of them."""
    seed = secrets.randbelow(1_000_000) if seed is None else seed
    began_s, sound = time.monotonic(), True
    click.echo(f"seed {seed}")
    for store in stores or STORES:
        for campaign in CAMPAIGNS:
            if store in campaign.stores and campaign.name in (names or NAMES):
                sound &= _run(campaign, store, seed, keep)
        if MODEL in (names or NAMES):
            sound &= _run_model(store, seed)
    click.echo(f"{'sound' if sound else 'BROKEN'}, {time.monotonic() - began_s:.0f} s in all, seed {seed}")
    sys.exit(0 if sound else 1)


def _run(campaign: Campaign, store: str, seed: int, keep: Path) -> bool:
    title = f"{campaign.name} on {store}, {campaign.what}"
    began_s = time.monotonic()
    try:
        history = campaign.run(store, seed)
    except Exception as error:
        click.echo(f"{title}: FAILED after {time.monotonic() - began_s:.1f} s: {error}")
        return False
    found = violations(history)
    click.echo(f"{title}: {_counts(history)}, {time.monotonic() - began_s:.1f} s, {'BROKEN' if found else 'sound'}")
    for what, count in sorted(collections.Counter(fault.what for fault in history.faults).items()):
        click.echo(f"  {count:>4} × {what}")
    if found:
        keep.mkdir(parents=True, exist_ok=True)
        kept = keep / f"chaos-{campaign.name}-{store}-{seed}.json"
        kept.write_bytes(msgspec.json.encode(history))
        click.echo(
            f"{told(found)}\n  the history: {kept}; again: --campaign {campaign.name} --store {store} --seed {seed}"
        )
    return not found


def _counts(history: History) -> str:
    attempts = [attempt.outcome for job in history.jobs for attempt in job.record.attempts]
    outcomes = ", ".join(f"{count:,} {outcome}" for outcome, count in collections.Counter(attempts).most_common())
    given = [given for call in history.dispatches if call.answer is not None for given in call.answer.given]
    reused = sum(one.match is not DuplicateMatch.NONE for one in given)
    conflicts = sum(one.code is not None for one in given)
    limits = collections.Counter(change.what for change in history.limit_log)
    return (
        f"{len(history.calls):,} requests, {len(history.jobs):,} jobs, {len(attempts):,} attempts ({outcomes}), "
        f"{len(history.events):,} events; by keys {reused:,} found and {conflicts:,} refused, "
        f"{limits['take']:,} holds, {limits['grant']:,} grants, {len(history.steerings):,} steerings"
    )


def _run_model(store: str, seed: int) -> bool:
    title = f"{MODEL} on {store}, {models.EXAMPLES} histories of up to {models.STEPS} steps beside the memory store"
    began_s = time.monotonic()
    try:
        models.agreeing(store, seed)
    except (Exception, BaseExceptionGroup) as error:
        click.echo(f"{title}: BROKEN after {time.monotonic() - began_s:.1f} s: {type(error).__name__} {error}")
        return False
    click.echo(f"{title}: {time.monotonic() - began_s:.1f} s, sound")
    return True


if __name__ == "__main__":
    main()
