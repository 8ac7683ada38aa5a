"""How an executor died, in words for people."""

import signal

from runwick.contracts.outcomes import Death


def death_text(death: Death) -> str:
    """How it died, and in which phase of the attempt: ``killed by SIGSEGV in handle``."""
    match death.cause:
        case "out_of_memory":
            text = "killed for memory"
        case "memory_limit":
            text = "over its memory limit"
        case "signal":
            text = f"killed by {_signal_name(death.signal)}"
        case "exit":
            text = f"exited with status {death.status}"
        case _:
            text = "ended in an unknown way"
    return text if death.phase is None else f"{text} in {death.phase}"


def _signal_name(number: int | None) -> str:
    try:
        return signal.Signals(number or 0).name
    except ValueError:
        return f"signal {number}"
