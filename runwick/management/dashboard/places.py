"""The pages of the navigation, and what each needs to be opened."""

from typing import Final

import msgspec

from runwick.management.permissions import Allowed, Permission


class Page(msgspec.Struct, frozen=True):
    """One entry."""

    name: str
    path: str
    needs: Permission


PAGES: Final = (
    Page("Overview", "/", Permission.JOBS_READ),
    Page("Jobs", "/jobs", Permission.JOBS_READ),
    Page("Types", "/types", Permission.JOBS_READ),
    Page("Queues", "/queues", Permission.QUEUES_READ),
    Page("Workers", "/workers", Permission.CAPACITY_READ),
    Page("Pools", "/pools", Permission.CAPACITY_READ),
    Page("Limits", "/scopes", Permission.CAPACITY_READ),
    Page("Audit", "/audit", Permission.AUDIT_READ),
    Page("Settings", "/settings", Permission.SETTINGS_READ),
)


class Place(msgspec.Struct, frozen=True):
    """An entry as one caller sees it."""

    name: str
    path: str
    is_here: bool


def places(allowed: Allowed, path: str) -> tuple[Place, ...]:
    """The pages that a caller may open; the one that shows `path` is marked."""
    return tuple(
        Place(page.name, page.path, path == page.path or (page.path != "/" and path.startswith(f"{page.path}/")))
        for page in PAGES
        if allowed.has(page.needs)
    )
