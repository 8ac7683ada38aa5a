"""Chaos: processes and servers are killed and paused under load, and the history of it all is checked afterwards.

::

    clients ──▶ book (what was asked and answered) ──┐
    handlers ─▶ marks (what ran, where and when) ────┼──▶ History ──▶ checker: one function per invariant
    store ────▶ rows, events, audit ─────────────────┤
    triggers ─▶ log of limits and keys ──────────────┤   (on Redis: functions that write it)
    campaign ─▶ faults and what is left over ────────┘

``make chaos`` runs the campaigns; ``make test`` runs the checker against histories with planted bugs.
"""
