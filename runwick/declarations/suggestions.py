"""The name that was probably meant: what makes a refusal about a name end in its remedy."""

import difflib
import json
from collections.abc import Iterable

SHOWN_MAX = 8


def quoted(name: object) -> str:
    """A name in double quotes, with everything escaped that is not for a terminal."""
    return json.dumps(name) if isinstance(name, str) else repr(name)


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """One sentence: which of the known names is near, or which there are; empty when there are none."""
    names = sorted(known)
    if isinstance(name, str) and (close := difflib.get_close_matches(name, names, n=1)):
        return f"Did you mean {quoted(close[0])}?"
    if not names:
        return ""
    more = ", …" if len(names) > SHOWN_MAX else ""
    return f"Known: {', '.join(quoted(each) for each in names[:SHOWN_MAX])}{more}."
