"""The black box, as an executor fills it: the last lines that the running attempt logged, and on demand its stack.

    log record ─ made, by whichever logger ─▶ one line in the log ring ─▶ the parent reads it when the executor is dead
    DUMP, or a fault such as a segmentation fault ─▶ the stack of every thread, in the stack file

Lines are taken where records are made, and not by a handler: one at the root logger would keep `logging.basicConfig`
and the handler of last resort from doing what an application expects of them.
"""

import faulthandler
import logging
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from runwick.execution.errors import message_of
from runwick_supervisor.control import ControlWriter
from runwick_supervisor.signals import DUMP

_LINE_MAX_BYTES: Final = 1024


class LogTail:
    """Writes a line for each log record of this process, whatever becomes of the record."""

    def __init__(self, control: ControlWriter) -> None:
        self._control = control
        self._owner = os.getpid()
        self._writing = threading.local()
        """Where a message logs while its text is made."""

    def install(self) -> None:
        """Begin, in front of whatever makes log records here now."""
        make: Callable[..., logging.LogRecord] = logging.getLogRecordFactory()

        def make_and_write(*args: Any, **kwargs: Any) -> logging.LogRecord:
            record = make(*args, **kwargs)
            self.write(record)
            return record

        logging.setLogRecordFactory(make_and_write)

    def write(self, record: logging.LogRecord) -> None:
        """Write one record. Foreign code may be in it, so nothing that it raises is let through."""
        if os.getpid() != self._owner or getattr(self._writing, "now", False):
            return
        self._writing.now = True
        try:
            self._control.log(_line(record))
        except Exception:
            return  # a line less; the record itself goes its way
        finally:
            self._writing.now = False


def _line(record: logging.LogRecord) -> bytes:
    moment = time.strftime("%H:%M:%S", time.gmtime(record.created))
    text = f"{moment}.{int(record.msecs):03} {record.levelname} {record.name}: {_message(record)}"
    if record.exc_info and (error := record.exc_info[1]) is not None:
        text += f" ({type(error).__name__}: {message_of(error)})"
    line = text.encode(errors="replace")
    return line[:_LINE_MAX_BYTES] + b"\n"


def _message(record: logging.LogRecord) -> str:
    try:
        return message_of(record.getMessage())
    except Exception:
        return f"{message_of(record.msg)} (its arguments do not fit)"


def write_stacks_to(descriptor: int) -> None:
    """From now on DUMP writes the stack of every thread there, and so does a fault unless the application has said
    where that goes. It is done in C, so it needs nothing that the interpreter would have to let it have."""
    faulthandler.register(DUMP, file=descriptor, all_threads=True, chain=False)
    if not faulthandler.is_enabled():
        faulthandler.enable(file=descriptor, all_threads=True)
