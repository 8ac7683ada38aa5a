"""What every store's administration decides alike, from how the applications stand."""

from collections.abc import Iterable, Sequence

from runwick.contracts.administration import LEGAL_ADMISSIONS, Admission, ApplicationStatus
from runwick.contracts.errors import InvalidArgument


def asked_for(statuses: Sequence[ApplicationStatus], application: str | None) -> list[ApplicationStatus]:
    """The application of that name, or all of them.

    Raises:
        InvalidArgument: there is none of that name (code ``unknown_application``).
    """
    found = [status for status in statuses if application in (None, status.name)]
    if application is not None and not found:
        known = ", ".join(status.name for status in statuses) or "none"
        raise InvalidArgument(
            "unknown_application",
            f'no application "{application}" has used this store (known: {known}); nothing was changed',
        )
    return found


def check_admission(statuses: Iterable[ApplicationStatus], mode: Admission) -> None:
    """Go on only if each of these may be put into the mode; the one it is in already is no change.

    Raises:
        InvalidArgument: one may not (code ``invalid_admission``).
    """
    for status in statuses:
        if mode is not status.admission and mode not in LEGAL_ADMISSIONS[status.admission]:
            raise InvalidArgument(
                "invalid_admission",
                f'application "{status.name}" is in {status.admission.value}, from where it cannot go to {mode.value}; '
                "nothing was changed, drain it first and wait until its work has ended",
            )


def check_offline(statuses: Iterable[ApplicationStatus]) -> None:
    """Go on only if nobody can be at work in the store.

    Raises:
        InvalidArgument: somebody may be (code ``store_in_use``).
    """
    for status in statuses:
        if status.admission is not Admission.MAINTENANCE:
            why = f"is in {status.admission.value}; put it into maintenance"
        elif status.leases_valid or status.workers:
            why = (
                f"has {status.leases_valid} leases that have not run out and {status.workers} workers that were seen "
                "of late; stop them, or wait"
            )
        else:
            continue
        raise InvalidArgument("store_in_use", f'application "{status.name}" {why}; nothing was changed')
