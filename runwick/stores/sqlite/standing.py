"""How the store takes work of one application."""

import msgspec

from runwick.contracts.administration import Admission, Standing
from runwick.contracts.stores import Act
from runwick.stores.sqlite.revision import REVISION
from runwick.stores.steps import Step, Steps


def standing(application: str) -> Act[Standing]:
    """Open and capable of nothing, where the application has not used the store yet."""
    return Act("standing", lambda: _standing(application), reads_only=True)


def _standing(application: str) -> Steps[Standing]:
    ((store_id, admission, capabilities),) = yield Step("standing", (application,))
    return Standing(
        store_id=store_id,
        revision=REVISION,
        admission=Admission(admission),
        capabilities=msgspec.json.decode(capabilities, type=list[str]),
    )
