"""What ``runwick doctor`` looks at in a store: reachable, of this release's revision, and durable."""

import contextlib
from typing import Final

from runwick.app.stores import open_administration, open_store
from runwick.cli.connection import store_options
from runwick.cli.results import CheckBody
from runwick.contracts.errors import StoreError
from runwick.runtime.ambient import SystemClock, SystemIds

NAMES: Final = ("store_reachable", "store_revision", "store_durability")


def check_store(url: str | None) -> list[CheckBody]:
    """The checks of the store at a resolved URL; None: no store is named."""
    reachable, revision, durability = NAMES
    if url is None:
        return [_check(name, "unverified", "no store is named") for name in NAMES]
    try:
        with contextlib.closing(open_administration(url, SystemClock(), SystemIds())) as administration:
            status, description = administration.status(), administration.description
    except StoreError as refused:
        rest = [_check(name, "unverified", "what it needs failed") for name in NAMES[1:]]
        return [_check(reachable, "failed", f"{refused.code}: {refused.message}"), *rest]
    checks = [_check(reachable, "passed", description)]
    if status.revision != status.revision_expected:
        detail = f"the store has revision {status.revision}, this release works with {status.revision_expected}"
        return [*checks, _check(revision, "failed", detail), _check(durability, "unverified", "what it needs failed")]
    return [*checks, _check(revision, "passed", f"revision {status.revision}"), _durability(url)]


def _durability(url: str) -> CheckBody:
    """By opening it as an application does: what could lose confirmed jobs is refused there."""
    name = NAMES[2]
    try:
        with contextlib.closing(open_store(url, store_options(), SystemClock(), SystemIds())) as store:
            store.check()
            return _check(name, "passed", "; ".join([store.description, *store.notes]))
    except StoreError as refused:
        return _check(name, "failed", f"{refused.code}: {refused.message}")


def _check(name: str, status: str, detail: str) -> CheckBody:
    return CheckBody(name=name, status=status, detail=detail)
