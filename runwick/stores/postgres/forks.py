"""What a fork means to this package: the child leaves everything of its parent's alone and opens its own.

A connection is one conversation, and its socket is shared after a fork; a good-bye by the child would end its parent's.
So the child keeps what it inherited for ever, without using or closing it, not even at its exit. The parent goes on
undisturbed. A fork waits for nothing but connections that are just being opened (`quiet`).
"""

import ctypes


def keep_untouched(inherited: object) -> None:
    """Never let go of `inherited`, so that nothing that it does at its end happens in this process."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))
