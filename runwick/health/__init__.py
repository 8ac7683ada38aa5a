"""Whether a process is alive and ready, per role: as a function, as ASGI endpoints, and for whoever stands outside.

::

    store ◀─ asks every 10 s ─ StoreWatch ─┐
    worker ─ once a second ──▶ Pulse ──────┼─▶ Watch.health() ─▶ health_app: /live, /ready
                  └──────────▶ StatusFile ─┘ judging: `checks`
                                   └─▶ `runwick health`, in another process

Whoever asks is answered at once from what was last seen; nothing here waits for a store, claims a job, or looks at how
much work there is.
"""

from runwick.health.asgi import health_app

__all__ = ["health_app"]
