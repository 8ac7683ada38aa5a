"""How many threads numeric libraries use in each executor, and the variables by which they are told.

A library that starts one thread per core in every executor has them fight for the cores, and threads that exist before
a fork are left out of it. So each gets one thread, unless somebody says otherwise: an option of Runwick says it for all
of them, a library's own variable for that library. ``OMP_NUM_THREADS`` counts for every library that goes by it where
its own is not set, and is then not contradicted.
"""

from collections.abc import Mapping
from typing import Final

from runwick.contracts.errors import InvalidArgument

THREADS_MAX: Final = 1_024
THREADS_USUAL: Final = 1
INHERIT: Final = 0
"""Leave every library to itself."""
_INHERIT_TEXT: Final = "inherit"

_OF_ALL: Final = "OMP_NUM_THREADS"
"""Of OpenMP itself; PyTorch, PyArrow and scikit-learn go by it too."""
_FOLLOWS: Final[Mapping[str, bool]] = {
    "OPENBLAS_NUM_THREADS": True,
    "MKL_NUM_THREADS": True,
    "BLIS_NUM_THREADS": True,
    "NUMEXPR_NUM_THREADS": True,
    "NUMBA_NUM_THREADS": False,
    "RAYON_NUM_THREADS": False,
    "POLARS_MAX_THREADS": False,
}
"""By variable: whether its library goes by `_OF_ALL` where this is not set."""


def parse_numeric_threads(text: str) -> int:
    """``1`` to ``1024``, or ``inherit``, which is `INHERIT`.

    Raises:
        InvalidArgument: it is neither (code ``invalid_policy``).
    """
    if text == _INHERIT_TEXT:
        return INHERIT
    if text.isascii() and text.isdigit() and len(text) <= len(str(THREADS_MAX)) and 1 <= int(text) <= THREADS_MAX:
        return int(text)
    sentence = f"expected a whole number from 1 to {THREADS_MAX}, or {_INHERIT_TEXT}, got {text!r}"
    raise InvalidArgument("invalid_policy", sentence)


def thread_variables(threads: int, environ: Mapping[str, str]) -> dict[str, str]:
    """What to set beside what is set already, for so many threads in each library; nothing for `INHERIT`."""
    if threads == INHERIT:
        return {}
    told = [name for name, follows in _FOLLOWS.items() if not (follows and _OF_ALL in environ)]
    return {name: str(threads) for name in (_OF_ALL, *told) if name not in environ}
