"""Named crossings: places where a test waits or injects a fault. They do nothing unless a test installed a hook.

A crossing is named ``room.event``, e.g. ``sqlite.committed``. A hook runs in the thread that reaches the crossing and
may raise, block or kill the process. Hooks are inherited by a fork, so a child's crossings can be hooked too.
"""

from collections.abc import Callable

_hooks: dict[str, Callable[[], None]] = {}


def reach(name: str) -> None:
    """Say that the code is at the crossing `name`."""
    if _hooks and (hook := _hooks.get(name)) is not None:
        hook()


def on(name: str, hook: Callable[[], None]) -> Callable[[], None]:
    """Install `hook` at the crossing `name`; returns the function that removes it. For tests alone."""
    _hooks[name] = hook

    def remove() -> None:
        _hooks.pop(name, None)

    return remove
