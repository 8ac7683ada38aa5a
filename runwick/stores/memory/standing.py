"""How the store takes work of one application."""

from runwick.contracts.administration import Admission, Standing
from runwick.contracts.stores import Act
from runwick.stores.memory.tables import Tables, act


def standing(tables: Tables, application: str) -> Act[Standing]:
    """Open and capable of nothing, where the application has not used the store yet."""
    return act("standing", lambda: _standing(tables, application), reads_only=True)


def _standing(tables: Tables, application: str) -> Standing:
    stands = tables.applications.get(application)
    return Standing(
        store_id=tables.store_id,
        revision=1,
        admission=Admission.OPEN if stands is None else stands.admission,
        capabilities=() if stands is None else sorted(stands.capabilities),
    )
