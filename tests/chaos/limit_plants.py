"""Bugs in who may run next, to plant into the memory store and the policies: scopes, tokens, windows, keys, pauses."""

from typing import Any, Final

import msgspec

from runwick.contracts.dispatching import DuplicateMatch
from runwick.contracts.outcomes import Answer
from runwick.policy import admission, uniqueness
from runwick.policy.limits import Scope, Window
from runwick.policy.lines import Calling
from runwick.stores.memory import claim, dispatch, ending, release
from runwick.stores.memory.rows import JobRow
from runwick.stores.memory.tables import Tables
from tests.chaos.history import History
from tests.chaos.plants import Change, Patch, Plant


def _a_place_is_freed_twice(patch: Patch) -> None:
    free = Scope.free
    patch.setattr(Scope, "free", lambda scope, places: free(scope, 2 * places))


def _a_place_is_kept_on_release(patch: Patch) -> None:
    give_back = release._give_back

    def keeping(tables: Tables, row: JobRow, now_ms: int) -> Answer:
        assert row.lease is not None
        row.lease.holds = ()
        return give_back(tables, row, now_ms)

    patch.setattr(release, "_give_back", keeping)


def _a_lowered_capacity_is_not_seen(patch: Patch) -> None:
    resize = Scope.resize
    patch.setattr(Scope, "resize", lambda scope, capacity: resize(scope, max(capacity, scope.capacity)))


def _a_claim_takes_the_first_scope_alone(patch: Patch) -> None:
    candidate = claim._candidate

    def careless(*details: Any) -> admission.Candidate:
        made = candidate(*details)
        return made._replace(scopes=made.scopes[:1])

    patch.setattr(claim, "_candidate", careless)


def _a_full_scope_lets_one_more_in(patch: Patch) -> None:
    patch.setattr(Scope, "room", property(lambda scope: max(0, scope.capacity - scope.in_use + 1)))


def _a_call_is_lost(patch: Patch) -> None:
    """Whoever was called and goes elsewhere calls nobody instead."""
    patch.setattr(Calling, "pass_on", lambda *_: None)


def _nobody_is_called(patch: Patch) -> None:
    """When a place becomes free."""
    patch.setattr(Calling, "into_scope", lambda *_: None)


def _a_token_is_not_raised(patch: Patch) -> None:
    take = Scope.take

    def lazy(scope: Scope) -> int | None:
        before = scope.fence
        token = take(scope)
        if token is not None and before % 3:
            scope.fence = token = before
        return token

    patch.setattr(Scope, "take", lazy)


def _a_token_is_given_back(patch: Patch) -> None:
    """With the place, when an attempt is given back."""
    give_back = release._give_back

    def returning(tables: Tables, row: JobRow, now_ms: int) -> Answer:
        assert row.lease is not None
        for limit in row.lease.fences:
            tables.limits.scopes[limit].scope.fence -= 1
        return give_back(tables, row, now_ms)

    patch.setattr(release, "_give_back", returning)


def _a_window_is_a_moment_too_short(patch: Patch) -> None:
    leaves_ms = Window._leaves_ms
    patch.setattr(Window, "_leaves_ms", lambda window, number: max(0, leaves_ms(window, number) - 1))


def _a_promise_is_given_twice(patch: Patch) -> None:
    promise = Window.promise

    def forgetful(window: Window, job_id: bytes, now_ms: int) -> int:
        before = window.promised
        due_ms = promise(window, job_id, now_ms)
        window.promised = before
        return due_ms

    # A line's heads are promised in a loop that ends when nothing is left to promise.
    patch.setattr(Calling, "promise", lambda *_: None)
    patch.setattr(Window, "promise", forgetful)


def _a_grant_is_refunded(patch: Patch) -> None:
    """When its attempt is given back."""
    give_back = release._give_back

    def refunding(tables: Tables, row: JobRow, now_ms: int) -> Answer:
        for limit in row.rates:
            window = tables.limits.windows[limit].window
            window.granted -= 1
            window.slots.pop(window.granted % window.most)
        return give_back(tables, row, now_ms)

    patch.setattr(release, "_give_back", refunding)


def _a_key_is_freed_early(patch: Patch) -> None:
    """As soon as its job is claimed."""
    take, close = claim._take, Tables.close

    def freeing(tables: Tables, row: JobRow, *rest: Any) -> None:
        take(tables, row, *rest)
        if row.active is not None:
            tables.active.pop(row.active, None)

    def closing(tables: Tables, row: JobRow, *rest: Any) -> None:
        if row.active is not None:
            tables.active.setdefault(row.active, row.job)
        close(tables, row, *rest)

    patch.setattr(claim, "_take", freeing)
    patch.setattr(Tables, "close", closing)


def _a_key_is_not_freed(patch: Patch) -> None:
    """When a settlement ends its job."""
    end = ending.end

    def keeping(tables: Tables, row: JobRow, *rest: Any) -> Answer:
        answer = end(tables, row, *rest)
        if row.active is not None and row.state.terminal:
            tables.active.setdefault(row.active, row.job)
        return answer

    patch.setattr("runwick.stores.memory.settle.end", keeping)


def _a_window_slides(patch: Patch) -> None:
    """With each dispatch that finds its job."""
    apply = dispatch._apply

    def sliding(tables: Tables, answer: Any, now_ms: int) -> None:
        apply(tables, answer, now_ms)
        window, match = answer.item.window, getattr(answer, "match", None)
        if match in (DuplicateMatch.WINDOW, DuplicateMatch.ACTIVE_AND_WINDOW):
            kept = tables.window_keys[window]
            until_ms = uniqueness.window_until_ms(answer.item, now_ms)
            tables.window_keys[window] = kept._replace(until_ms=until_ms)

    patch.setattr(dispatch, "_apply", sliding)


def _a_window_ends_with_its_job(patch: Patch) -> None:
    close = Tables.close

    def closing(tables: Tables, row: JobRow, *rest: Any) -> None:
        close(tables, row, *rest)
        for key in [key for key, kept in tables.window_keys.items() if kept.job_id == row.command.job_id]:
            del tables.window_keys[key]

    patch.setattr(Tables, "close", closing)


def _any_request_is_the_same(patch: Patch) -> None:
    holders = dispatch._window_holders

    def blind(tables: Tables, items: Any) -> Any:
        asked = {item.window: item.command.fingerprint for item in items}
        return {window: holder._replace(fingerprint=asked[window]) for window, holder in holders(tables, items).items()}

    patch.setattr(dispatch, "_window_holders", blind)


def _a_reuse_is_not_recorded(patch: Patch) -> None:
    apply = dispatch._dispatch

    def forgetful(tables: Tables, *rest: Any) -> Any:
        tables.reused.clear()
        return apply(tables, *rest)

    patch.setattr(dispatch, "_dispatch", forgetful)


def _a_pause_is_ignored(patch: Patch) -> None:
    patch.setattr(Tables, "is_paused", lambda *_: False)


PLANTS: Final = (
    Plant("I3", _a_reuse_is_not_recorded),
    Plant("I20", _a_token_is_not_raised),
    Plant("I20", _a_token_is_given_back),
    Plant("I21", _a_place_is_freed_twice),
    Plant("I21", _a_place_is_kept_on_release),
    Plant("I21", _a_lowered_capacity_is_not_seen),
    Plant("I21", _a_claim_takes_the_first_scope_alone),
    Plant("I21", _a_full_scope_lets_one_more_in),
    Plant("I21", _a_call_is_lost),
    Plant("I21", _nobody_is_called),
    Plant("I23", _a_key_is_freed_early),
    Plant("I23", _a_key_is_not_freed),
    Plant("I24", _a_window_slides),
    Plant("I24", _a_window_ends_with_its_job),
    Plant("I24", _any_request_is_the_same),
    Plant("I25", _a_window_is_a_moment_too_short),
    Plant("I25", _a_promise_is_given_twice),
    Plant("I25", _a_grant_is_refunded),
    Plant("pauses", _a_pause_is_ignored),
)


def _a_steering_is_not_audited(history: History) -> History:
    done = next(record for record in history.audit if record.target is not None)
    return msgspec.structs.replace(history, audit=[record for record in history.audit if record is not done])


def _a_resource_takes_an_old_token(history: History) -> History:
    marks = [
        msgspec.structs.replace(mark, step="accepted") if mark.step == "refused" else mark for mark in history.marks
    ]
    last = next(mark for mark in reversed(marks) if mark.step == "accepted" and mark.fences[0].value > 1)
    fence = msgspec.structs.replace(last.fences[0], value=1)
    return msgspec.structs.replace(history, marks=[*marks, msgspec.structs.replace(last, fences=[fence])])


CHANGES: Final = (
    Change("I20", _a_resource_takes_an_old_token),
    Change("steering", _a_steering_is_not_audited),
)
