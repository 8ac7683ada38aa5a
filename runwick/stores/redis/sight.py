"""What a list may show, as the functions take it; see `lua/sight.lua`."""

from collections.abc import Collection
from typing import Any

from runwick.contracts.listing import JobFilter, Within


def asked(chosen: JobFilter, within: Within) -> list[Any]:
    """What is asked for, and what whoever asks may see."""
    return [
        chosen.queue,
        chosen.name,
        chosen.tenant,
        chosen.code,
        chosen.created_from_ms,
        chosen.created_until_ms,
        None if within is None else [[_listed(reach.queues), _listed(reach.tenants)] for reach in within],
    ]


def _listed(names: Collection[str | None] | None) -> list[str | bool] | None:
    """False stands for none: what follows a nil in a list is lost in Lua."""
    return None if names is None else [False if name is None else name for name in names]
