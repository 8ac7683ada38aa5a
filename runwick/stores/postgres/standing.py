"""How the store takes work of one application."""

from runwick.contracts.administration import Admission, Standing
from runwick.contracts.stores import Act
from runwick.stores.postgres.bound import Bound
from runwick.stores.postgres.revision import REVISION
from runwick.stores.steps import Step, Steps


def standing(bound: Bound, application: str) -> Act[Standing]:
    """Open and capable of nothing, where the application has not used the store yet."""
    return Act("standing", lambda: _standing(bound, application), reads_only=True)


def _standing(bound: Bound, application: str) -> Steps[Standing]:
    rows = yield Step("standing", (*bound.reading(), application))
    admission, capabilities = rows[0] if rows else (Admission.OPEN.value, [])
    return Standing(
        store_id=bound.store_id,
        revision=REVISION,
        admission=Admission(admission),
        capabilities=sorted(capabilities),
    )
