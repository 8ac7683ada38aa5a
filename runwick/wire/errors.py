"""What the profile refuses, before the rooms above turn it into a dispatch error or an attempt's outcome."""

from typing import Final, NamedTuple

PATH_MAX_CHARACTERS: Final = 80


class Fault(NamedTuple):
    """One rule of the profile that a value breaks."""

    code: str
    """``invalid_payload``, ``invalid_text``, ``payload_too_large`` or ``payload_limit_exceeded``."""
    path: str
    """Where: ``$.width``, ``$.tags[3]``; ``$`` is the whole."""
    why: str
    """What was expected and what came, as one clause."""

    def below(self, step: str) -> "Fault":
        """The same fault seen from the parent, which reaches the faulty value by `step`."""
        return self._replace(path=f"${step}{self.path[1:]}")

    def __str__(self) -> str:
        path = self.path
        if len(path) > PATH_MAX_CHARACTERS:
            half = PATH_MAX_CHARACTERS // 2
            path = f"{path[:half]}…{path[-half:]}"
        return f"{path}: {self.why}"


class FaultFound(Exception):
    """Carries a fault out of a decoder's callback; never leaves the room."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class PayloadUndecodable(Exception):
    """Stored bytes that are not the record they should be: the run fails with ``payload_undecodable``, for good."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class ResultRefused(Exception):
    """A handler's return value that cannot be stored; `code` is ``result_too_large`` or ``invalid_result``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
