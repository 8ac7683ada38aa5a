"""What grants allow, alone and together."""

import pytest

from runwick.contracts.controls import ControlAction
from runwick.contracts.listing import Reach
from runwick.contracts.revealing import Secret
from runwick.management.permissions import (
    ADMINISTRATOR,
    CONTROLS,
    EVERYTHING,
    OPERATOR,
    SECRETS,
    VIEWER,
    Allowed,
    Forbidden,
    Grant,
    Permission,
)

READ = Permission.JOBS_READ
PRIVATE = {Permission.JOBS_READ_PAYLOAD, Permission.JOBS_READ_ERROR, Permission.AUDIT_READ, Permission.JOBS_DISPATCH}


def of(*names: str, tenants: frozenset[str | None] | None = None) -> Grant:
    """The right to read jobs of these queues."""
    return Grant(READ, queues=frozenset(names) or None, tenants=tenants)


def test_presets_grow_and_hold_nothing_private() -> None:
    viewer, operator, administrator = (Allowed(each).permissions for each in (VIEWER, OPERATOR, ADMINISTRATOR))
    assert viewer < operator < administrator
    assert administrator == frozenset(Permission) - PRIVATE
    assert Allowed(EVERYTHING).permissions == frozenset(Permission)


def test_every_control_and_secret_needs_something() -> None:
    assert set(CONTROLS) == set(ControlAction)
    assert set(SECRETS) == set(Secret)


def test_without_a_grant_nothing_is_allowed() -> None:
    nothing = Allowed(())
    assert not any(nothing.has(each) for each in Permission)
    assert nothing.within(READ) == ()
    assert not nothing.covers(READ, "images", None)
    assert not nothing.covers_queue(READ, "images")
    assert not nothing.covers_whole(READ, "images")
    with pytest.raises(Forbidden, match=r"forbidden: this needs the permission Jobs\.Read"):
        nothing.need(READ)


def test_grants_of_one_permission_add_up() -> None:
    allowed = Allowed([of("images"), of(tenants=frozenset({"acme", None}))])
    assert allowed.within(READ) == (Reach(frozenset({"images"})), Reach(None, frozenset({"acme", None})))
    asked = {
        ("images", "other"): True,
        ("mails", "acme"): True,
        ("mails", None): True,
        ("mails", "other"): False,
    }
    assert {job: allowed.covers(READ, *job) for job in asked} == asked
    assert (allowed.covers_whole(READ, "images"), allowed.covers_whole(READ, "mails")) == (True, False)
    assert allowed.covers_queue(READ, "mails")
    assert not allowed.covers(Permission.JOBS_CANCEL, "images", None)
    assert Allowed([of("images"), of()]).within(READ) is None


@pytest.mark.parametrize(
    ("permission", "narrowed", "message"),
    [
        (Permission.CAPACITY_READ, {"queues": frozenset({"images"})}, "the whole application's and takes no queues"),
        (Permission.AUDIT_READ, {"tenants": frozenset({"acme"})}, "takes no tenants"),
        (Permission.QUEUES_READ, {"tenants": frozenset({"acme"})}, "takes no tenants"),
        (READ, {"queues": frozenset()}, "allows nothing; leave it out"),
        (READ, {"queues": "images"}, "queues is str; give a frozenset"),
        (READ, {"tenants": {"acme"}}, "tenants is set; give a frozenset"),
    ],
)
def test_a_grant_that_cannot_be_is_refused(permission: Permission, narrowed: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Grant(permission, **narrowed)  # type: ignore[arg-type]
