"""The grammar of names, one place for all of them.

A name is ASCII letters, digits, ``.``, ``_`` and ``-``, and starts with a letter or a digit. Names are
case-sensitive and never trimmed. Job names take up to 200 characters, every other name up to 128.
"""

import re
from typing import Final

JOB_NAME_MAX_CHARACTERS: Final = 200
NAME_MAX_CHARACTERS: Final = 128

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def name_problem(name: object, *, max_characters: int = NAME_MAX_CHARACTERS) -> str | None:
    """Say in one phrase why `name` is not a name, or None when it is one."""
    if not isinstance(name, str):
        return f"a name is text, this is {type(name).__name__}"
    if not name:
        return "it is empty"
    if len(name) > max_characters:
        return f"it has {len(name)} characters, the limit is {max_characters}"
    if not _NAME.fullmatch(name):
        return "it must be letters, digits, '.', '_' or '-', starting with a letter or digit (ASCII)"
    return None
