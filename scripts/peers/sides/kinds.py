"""What the harness and the sides know of the jobs alike: their lengths, their limits. Names are those in `work`."""

from typing import Final

LIMIT_S: Final = 2
"""The time limit with which a side declares the kinds in `LIMITED`, where its system has one."""
LINGER_S: Final = 0.5
"""How long `linger` takes."""
LIMITED: Final = ("python_loop", "c_call_releasing", "c_call_holding")
