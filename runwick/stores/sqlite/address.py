"""Where a SQLite store lies: from the URL that names it to one absolute path. Nothing is opened or created here.

``sqlite:///jobs.db`` is relative to a directory that the caller gives, ``sqlite:////srv/jobs.db`` is absolute;
characters with a meaning in URLs are percent-encoded. A URL has no host and no options.
"""

import os
import urllib.parse
from pathlib import Path
from typing import Final

from runwick.contracts.errors import ConfigurationError, Problem

_FORMS: Final = "sqlite:///FILE (relative) or sqlite:////PATH (absolute)"
_UNSAFE: Final = {
    "mode": "it always opens the file for reading and writing",
    "cache": "connections that share a cache do not lock each other out",
    "immutable": "the file changes",
    "nolock": "without locks two writers destroy the file",
    "foreign_keys": "foreign keys are always checked",
    "vfs": "only SQLite's own file locking is supported",
}
"""Options of SQLite's that would break a promise, and why."""


def path_of(url: str, base: Path) -> Path:
    """The absolute path of the file that `url` names.

    Args:
        url: begins with ``sqlite://``.
        base: what a relative path is relative to.

    Raises:
        ConfigurationError: ``invalid_store`` for what is not such a URL, ``invalid_policy`` for a place or an option
            that cannot keep jobs safe. The message does not repeat the URL.
    """
    parts = urllib.parse.urlsplit(url)
    if not url.startswith("sqlite://"):
        raise _refusal("invalid_store", f"the URL of a SQLite store is {_FORMS}")
    if parts.netloc:
        raise _refusal("invalid_store", f"a SQLite store has no host: write {_FORMS}")
    if parts.fragment or "#" in url:
        raise _refusal("invalid_store", "write # in the file's name as %23")
    _refuse_options(parts.query, marked="?" in url)
    name = _decoded(parts.path.removeprefix("/"))
    if not name:
        raise _refusal("invalid_policy", "the URL names no file; a store in a temporary file would be lost")
    if name.startswith(":memory:"):
        raise _refusal("invalid_policy", "a database in memory is lost with its process; name a file")
    if name.startswith("file:"):
        raise _refusal("invalid_store", "write sqlite:///FILE, without a file: URL inside")
    return Path(os.path.abspath(base / name))  # noqa: PTH100 - resolving links is not wanted: messages name this path


def _refuse_options(query: str, *, marked: bool) -> None:
    if not marked:
        return
    for option in sorted(urllib.parse.parse_qs(query, keep_blank_values=True)):
        if option in _UNSAFE:
            raise _refusal("invalid_policy", f"the option {option!r} is refused: {_UNSAFE[option]}; remove it")
        raise _refusal("invalid_store", f"the URL of a SQLite store takes no options, this has {option!r}; remove it")
    raise _refusal("invalid_store", "write ? in the file's name as %3F")


def _decoded(text: str) -> str:
    try:
        name = urllib.parse.unquote(text, errors="strict")
    except UnicodeDecodeError:
        raise _refusal("invalid_store", "the percent-encoded file name is not UTF-8") from None
    if "\0" in name:
        raise _refusal("invalid_store", "a file name cannot hold a NUL character")
    return name


def _refusal(code: str, text: str) -> ConfigurationError:
    return ConfigurationError([Problem(code, "store", text)])
