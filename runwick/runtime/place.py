"""What kind of process this is. An executor starts no threads, so what would need one does without there."""

_is_executor = False


def enter_executor() -> None:
    """Said once by an executor when its life begins; what it forks later is one too."""
    global _is_executor
    _is_executor = True


def in_executor() -> bool:
    """Whether this process runs attempts for a supervisor."""
    return _is_executor
