"""Who asks, and the ways in which he proves it. A scheme looks at a request and nothing else; what its caller may do is
decided elsewhere, by the host's grants."""

import unicodedata
from collections.abc import Mapping
from typing import Any, Final, Literal, Protocol

import msgspec
from starlette.requests import Request

SUBJECT_MAX_CHARACTERS: Final = 256
"""Of a subject and of what is displayed of it, as the audit trail takes them."""

SchemeKind = Literal["basic", "bearer", "session"]


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody who has proven who he is.

    Raises:
        ValueError: subject or display name are not what the audit trail can keep: 1 to 256 characters, none of them a
            control character.
    """

    subject: str
    """The stable name, for the audit trail, limits and tokens: ``ops@example.com``."""
    display: str
    """For people."""
    scheme: str
    """The name of the scheme that proved it: a name such as ``session``."""
    is_browser: bool
    """His client sends the proof by itself, with whatever page told it to: then changes need an antiforgery token."""
    session: str = ""
    """Which of his sessions it is, where there are several; antiforgery tokens of one are useless in another."""
    claims: Mapping[str, Any] = {}
    """What else the host's scheme says of him, for the host's grants."""

    def __post_init__(self) -> None:
        for text in (self.subject, self.display):
            if not is_subject(text):
                raise ValueError("a principal's subject and display have 1 to 256 characters, no control characters")

    @property
    def key(self) -> str:
        """What his limits and cursors belong to."""
        return f"{self.scheme}\n{self.subject}"


class Scheme(Protocol):
    """One way to prove who asks. The host's own are welcome."""

    @property
    def name(self) -> str:
        """How the audit trail calls it, in the grammar of names."""
        ...

    @property
    def kind(self) -> SchemeKind:
        """``bearer`` only if no browser ever sends the proof by itself."""
        ...

    async def authenticate(self, request: Request) -> Principal | None:
        """Who asks; None if the request holds no proof of this kind, or one that is not good.

        Raises:
            Refusal: it cannot be told now, such as after too many failures.
        """
        ...


def is_subject(text: str) -> bool:
    """Whether the audit trail can keep it as somebody's name."""
    return (
        bool(text.strip())
        and len(text) <= SUBJECT_MAX_CHARACTERS
        and not any(unicodedata.category(character) in ("Cc", "Cs") for character in text)
    )
