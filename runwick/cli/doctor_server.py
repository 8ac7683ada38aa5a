"""What ``runwick doctor`` looks at on a server: reachable, signed in, of this release, and by the same clock."""

import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import click

from runwick.cli.contexts import read_contexts
from runwick.cli.failures import NotSignedIn, Rejected, Unreachable
from runwick.cli.modes import Mode
from runwick.cli.places import Place, server_desk
from runwick.cli.results import CheckBody
from runwick.contracts.errors import RunwickError
from runwick.version import __version__

NAMES: Final = ("server_reachable", "credentials", "api_version", "clock")
CLOCK_S: Final = 5
"""Clocks that differ by more than this fail the check."""


async def check_server(place: Place, mode: Mode, *, is_asked_for: bool) -> list[CheckBody]:
    """The checks of the server that is named, or of the current one.

    Args:
        place: which.
        mode: who may be asked for a secret.
        is_asked_for: somebody wants to know of a server, and there must be one.

    Raises:
        click.UsageError: there is none, and somebody asked for one.
        ConfigurationError: the file of contexts is damaged.
    """
    if place.context is None and place.url is None and read_contexts().current is None:
        if is_asked_for:
            raise click.UsageError(
                "There is nothing to check: name a server with --context or --url, or a store with --app or "
                "--connection-env."
            )
        return _unverified(NAMES, "no server is named")
    try:
        desk, server, _ = server_desk(place, mode)
    except NotSignedIn as missing:
        reachable, *others = NAMES
        return [*_unverified([reachable], "not asked"), _failed(others[0], missing.message), *_skipped(others[1:])]
    try:
        response = await desk.link.greet("/openapi.json")
    except (Unreachable, Rejected) as refused:
        return _refused(refused, server.url)
    finally:
        await desk.aclose()
    return [
        _passed(NAMES[0], server.url),
        _passed(NAMES[1], "signed in" if server.user is None else f"signed in as {server.user}"),
        _version(response.content),
        _clock(response.headers.get("date", "")),
    ]


def _refused(refused: RunwickError, url: str) -> list[CheckBody]:
    if isinstance(refused, Unreachable):
        return [_failed(NAMES[0], refused.message), *_skipped(NAMES[1:])]
    return [_passed(NAMES[0], url), _failed(NAMES[1], f"{refused.code}: {refused.message}"), *_skipped(NAMES[2:])]


def _version(document: bytes) -> CheckBody:
    import msgspec

    try:
        said: Any = msgspec.json.decode(document)["info"]["version"]
    except (msgspec.MsgspecError, KeyError, TypeError):
        return CheckBody(name=NAMES[2], status="unverified", detail="the server does not say its release")
    if said == __version__:
        return _passed(NAMES[2], f"release {said}")
    return _failed(NAMES[2], f"the server is release {said}, this is {__version__}")


def _clock(date: str) -> CheckBody:
    """By the answer's own date, which is whole seconds."""
    try:
        there = parsedate_to_datetime(date)
        apart_s = abs((datetime.datetime.now(datetime.UTC) - there).total_seconds())
    except (TypeError, ValueError):
        return CheckBody(name=NAMES[3], status="unverified", detail="the server does not say the time")
    if apart_s <= CLOCK_S:
        return _passed(NAMES[3], f"within {CLOCK_S} s")
    return _failed(NAMES[3], f"the clocks are {apart_s:.0f} s apart; {CLOCK_S} s are allowed")


def _passed(name: str, detail: str) -> CheckBody:
    return CheckBody(name=name, status="passed", detail=detail)


def _failed(name: str, detail: str) -> CheckBody:
    return CheckBody(name=name, status="failed", detail=detail)


def _skipped(names: Any) -> list[CheckBody]:
    return _unverified(names, "what it needs failed")


def _unverified(names: Any, detail: str) -> list[CheckBody]:
    return [CheckBody(name=each, status="unverified", detail=detail) for each in names]
