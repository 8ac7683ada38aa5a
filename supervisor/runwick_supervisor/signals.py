"""The signals that the parent sends to an executor, and nobody else does: real-time ones, which programs leave alone.

INTERRUPT   look at the cancel word: somebody asks the running attempt to stop. Handled in Python, between two
            steps of the interpreter, so what runs in C without letting the interpreter look does not see it
DUMP        write the Python stack into the executor's stack file. Handled in C, whatever the interpreter does
"""

import signal
from typing import Final

INTERRUPT: Final = signal.SIGRTMIN + 10
DUMP: Final = signal.SIGRTMIN + 11
