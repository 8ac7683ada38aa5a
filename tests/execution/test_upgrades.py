"""What becomes of a payload that was stored in an older shape."""

import sys
from collections.abc import Generator
from typing import Any

import pytest

from runwick.contracts.attempts import Kind
from runwick.contracts.context import JobContext
from runwick.contracts.errors import PermanentJobFailure
from runwick.contracts.jobs import Job, JobSettings, job
from runwick.contracts.outcomes import Outcome, OutcomeKind
from runwick.contracts.results import Result
from runwick.declarations.catalog import Catalog
from runwick.declarations.declarations import Declarations
from runwick.declarations.handlers import DeclaredHandler
from runwick.declarations.middleware import DeclaredMiddleware
from runwick.declarations.upgrades import DeclaredUpgrade
from tests.execution.declared import a_run, an_invoker


class BillV1(Job):
    euros: int


class BillV2(Job):
    cents: int


@job("bills.send", version=3)
class Bill(Job):
    cents: int
    currency: str


seen: list[tuple[Any, ...]] = []


def handler(bill: Bill, ctx: JobContext) -> None:
    seen.append((bill, ctx.payload, ctx.original_payload_version, ctx.current_payload_version))


def in_cents(old: BillV1) -> BillV2:
    return BillV2(old.euros * 100)


def with_currency(old: BillV2) -> Bill:
    return Bill(old.cents, "EUR")


def a_catalog(first: Any = in_cents, second: Any = with_currency, middleware: tuple[Any, ...] = ()) -> Catalog:
    names = sys._getframe(1).f_locals
    declarations = Declarations("shop", JobSettings(), lambda *_: [], lambda *_: [])
    declarations.add_handler(DeclaredHandler(handler, names))
    for each in middleware:
        declarations.add_middleware(DeclaredMiddleware(each, names), None)
    for version, step in ((1, first), (2, second)):
        declarations.add_upgrade(DeclaredUpgrade(Bill, version, step, names, "here"))
    return declarations.freeze()


def outcome_of(version: int, payload: bytes, *steps: Any, **parts: Any) -> Outcome:
    seen.clear()
    run = a_run(kind=Kind("bills.send", version))
    return an_invoker(a_catalog(*steps, **parts)).invoke_blocking(run, payload)


@pytest.mark.parametrize(
    ("version", "payload"),
    [(1, b'{"euros":5}'), (2, b'{"cents":500}'), (3, b'{"cents":500,"currency":"EUR"}')],
    ids=["1", "2", "3"],
)
def test_handler_and_middleware_see_the_current_record(version: int, payload: bytes) -> None:
    def noting(ctx: JobContext) -> Generator[None, Result, Result]:
        seen.append((ctx.payload, ctx.original_payload_version))
        return (yield)

    assert outcome_of(version, payload, middleware=(noting,)).kind is OutcomeKind.SUCCEEDED
    bill = Bill(500, "EUR")
    assert seen == [(bill, version), (bill, bill, version, 3)]


def test_a_version_that_nothing_leads_from_is_not_known() -> None:
    outcome = outcome_of(4, b"{}")
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")
    assert outcome.error is not None
    assert outcome.error.message == "no handler for bills.send version 4 is loaded here"


@pytest.mark.parametrize("payload", [b"", b"{", b'{"cents":5}', b'{"euros":"5"}', b"\xff\xfe"])
def test_what_is_not_the_old_shape_is_undecodable(payload: bytes) -> None:
    outcome = outcome_of(1, payload)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "payload_undecodable")
    assert outcome.error is not None
    assert outcome.error.message.startswith("the payload is no BillV1")
    assert seen == []


def raising(old: BillV2) -> Bill:
    raise KeyError("currency")


def stopping(old: BillV2) -> Bill:
    raise SystemExit(3)


def giving_another(old: BillV2) -> Bill:
    return old  # type: ignore[return-value]


def giving_nothing(old: BillV2) -> Bill: ...  # type: ignore[empty-body]


def giving_wrong_types(old: BillV2) -> Bill:
    return Bill("many", "EUR")  # type: ignore[arg-type]


def giving_too_much(old: BillV2) -> Bill:
    return Bill(1, "x" * 2_000_000)


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (raising, "'currency'"),
        (stopping, "3"),
        (giving_another, "giving_another gave BillV2, not Bill"),
        (giving_nothing, "giving_nothing gave NoneType, not Bill"),
        (giving_wrong_types, "giving_wrong_types gave what is no payload: Bill $.cents: expected `int`, got `str`"),
        (giving_too_much, "gave what is no payload: Bill $: a payload may have"),
    ],
)
def test_an_upgrade_that_fails_fails_the_job_for_good(step: Any, message: str) -> None:
    outcome = outcome_of(2, b'{"cents":500}', in_cents, step)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "payload_upgrade_failed")
    assert outcome.error is not None
    assert message in outcome.error.message
    assert seen == []


def refusing(old: BillV1) -> BillV2:
    raise PermanentJobFailure("too_old", "Bills from before the reform are void.")


def running_out(old: BillV1) -> BillV2:
    raise MemoryError


def test_an_upgrade_may_refuse_by_a_code_and_run_out_of_memory() -> None:
    outcome = outcome_of(1, b'{"euros":5}', refusing)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED_PERMANENTLY, "too_old")
    outcome = outcome_of(1, b'{"euros":5}', running_out)
    assert (outcome.kind, outcome.code) == (OutcomeKind.FAILED, "handler_failed")
